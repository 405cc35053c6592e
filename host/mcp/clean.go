package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxDescription = 8 << 10 // bytes that a model is told of one tool
	maxTitle       = 200
)

// clean takes out of a stranger's text what a person would not see: control,
// format and tag characters, and what is not UTF-8. It counts them.
func clean(s string) (out string, hidden int) {
	if plain(s) {
		return s, 0
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		if r == utf8.RuneError && n == 1 || invisible(r) {
			hidden++
			continue
		}
		b.WriteRune(r)
	}
	return b.String(), hidden
}

func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// invisible holds for what shows nothing, or moves what others show. The
// joiners stay: scripts and emoji need them, alone they hide nothing.
func invisible(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == 0x200c || r == 0x200d:
		return false
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp):
		return true
	case r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0:
		return true // letters that are blank
	case r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef:
		return r != 0xfe0f // variation selectors can carry bytes; the emoji one is common
	}
	return false
}

// told makes a text that a model may be told, and says what was done to it.
func told(what, s string, most int) (string, []string) {
	var flags []string
	out, hidden := clean(s)
	if hidden > 0 {
		flags = append(flags, fmt.Sprintf("%s held %d invisible characters", what, hidden))
	}
	if len(out) > most {
		flags = append(flags, fmt.Sprintf("%s has %d bytes, of which %d are shown", what, len(out), most))
		for most > 0 && !utf8.RuneStart(out[most]) {
			most--
		}
		out = out[:most] + " (cut)"
	}
	return out, flags
}

// cleanSchema does the same to every string in a schema: descriptions reach the
// model too. Order, numbers and everything visible stay as they were written.
func cleanSchema(raw json.RawMessage) (json.RawMessage, int) {
	if plain(string(raw)) && !bytes.Contains(raw, []byte(`\u`)) {
		return raw, 0
	}
	var out bytes.Buffer
	hidden := 0
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			out.WriteByte(raw[i])
			i++
			continue
		}
		end := i + 1
		for end < len(raw) && raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(raw))
		var text string
		if err := json.Unmarshal(raw[i:end], &text); err != nil {
			return raw, hidden // not JSON: the compiler says so
		}
		visible, n := clean(text)
		if hidden += n; n == 0 {
			out.Write(raw[i:end])
		} else {
			b, _ := json.Marshal(visible)
			out.Write(b)
		}
		i = end
	}
	return out.Bytes(), hidden
}
