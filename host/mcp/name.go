package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

const (
	prefix  = "mcp__"
	maxName = 64 // what every model vendor takes
)

// Name is the name under which a model sees a tool of a server: at most 64
// characters of [A-Za-z0-9_-]. A name that had to be changed or cut ends in a
// hash of both full names, so that it is unique and the same in every session.
func Name(server, tool string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, tool)
	plain := prefix + server + "__" + clean
	// A leading underscore could be taken for the end of the server's name.
	if clean == tool && clean != "" && clean[0] != '_' && len(plain) <= maxName {
		return plain
	}
	return hashed(server, tool, clean)
}

func hashed(server, tool, clean string) string {
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	tail := "_" + hex.EncodeToString(sum[:5])
	head := prefix + shorten(server) + "__" + strings.TrimLeft(clean, "_")
	return head[:min(len(head), maxName-len(tail))] + tail
}

// shorten leaves room for something of the tool's name behind a long server's.
func shorten(server string) string {
	const most = 28
	if len(server) <= most {
		return server
	}
	sum := sha256.Sum256([]byte(server))
	return strings.TrimRight(server[:most-7], "_") + "-" + hex.EncodeToString(sum[:3])
}

// SplitName takes the server out of a tool's name; ok is false for names of
// other tools.
func SplitName(name string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return "", "", false
	}
	server, tool, ok = strings.Cut(rest, "__")
	return server, tool, ok && server != "" && tool != ""
}

// names gives every tool of a server its name. Tools that differ by case alone
// would collide: all of them get a hash, whatever their order.
func names(server string, tools []string) map[string]string {
	out := make(map[string]string, len(tools))
	fold := map[string][]string{}
	for _, t := range tools {
		if !slices.Contains(fold[strings.ToLower(Name(server, t))], t) {
			k := strings.ToLower(Name(server, t))
			fold[k] = append(fold[k], t)
		}
	}
	for _, same := range fold {
		for _, t := range same {
			out[t] = Name(server, t)
			if len(same) > 1 {
				out[t] = hashed(server, t, strings.TrimPrefix(Name(server, t), prefix+server+"__"))
			}
		}
	}
	return out
}
