package frontmatter

import (
	"encoding/json"
	"slices"
	"strings"
)

// piece is one top-level key with the lines that belong to it.
type piece struct {
	key   string
	lines []string // the first without its key
}

// piecewise reads a block that is no YAML key by key, so that one bad line
// does not take the others with it.
func (d *Document) piecewise(block string, why error) {
	pieces, stray := cut(block)
	if len(pieces) == 0 {
		d.warn("the block of fields cannot be read: %v", why)
		return
	}
	if stray > 0 {
		d.warn("%d lines of the block belong to no key", stray)
	}
	if len(pieces) > maxKeys {
		d.warn("%v, the others were not read", errKeys)
		pieces = pieces[:maxKeys]
	}
	var quoted []string
	for _, p := range pieces {
		v, ok := p.strict()
		if !ok {
			v = p.text()
			quoted = append(quoted, p.key)
		}
		if !d.Fields.add(p.key, v) {
			d.warn("%q is there twice, the first counts", p.key)
		}
	}
	if len(quoted) == 0 {
		d.warn("the block of fields is no YAML as a whole (%v), its keys were read one by one", why)
		return
	}
	quoted = quoted[:min(len(quoted), 6)]
	d.warn("the value of %s is no YAML and was taken as plain text; quote it", strings.Join(quoted, ", "))
}

// cut parts the block at its top-level keys.
func cut(block string) (out []piece, stray int) {
	for line := range strings.SplitSeq(block, "\n") {
		key, rest, ok := topKey(line)
		switch {
		case ok:
			out = append(out, piece{key, []string{rest}})
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
			if len(out) > 0 {
				out[len(out)-1].lines = append(out[len(out)-1].lines, "")
			}
		case len(out) == 0:
			stray++
		default:
			out[len(out)-1].lines = append(out[len(out)-1].lines, strings.ReplaceAll(line, "\t", "  "))
		}
	}
	return out, stray
}

// topKey reads "key: value" or "key:" at the start of a line.
func topKey(line string) (key, rest string, ok bool) {
	key, rest, ok = strings.Cut(line, ":")
	if !ok || key == "" || len(key) > 64 || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return "", "", false
	}
	bare := strings.Trim(strings.TrimRight(key, " \t"), `"'`)
	for i := range len(bare) {
		c := bare[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.')) {
			return "", "", false
		}
	}
	return bare, strings.TrimSpace(rest), bare != ""
}

// strict reads the piece as YAML, or as JSON where it looks like that: a
// tab, or a comma too many, spoils YAML only.
func (p piece) strict() (any, bool) {
	var ignored []string
	v, err := parseYAML(p.key+": "+strings.Join(p.lines, "\n"), &ignored)
	if f, ok := v.(Fields); ok && err == nil && len(f) == 1 && f[0].Key == p.key {
		return f[0].Value, true
	}
	text := strings.TrimSpace(strings.Join(p.lines, "\n"))
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") || shallow(text) != nil {
		return nil, false
	}
	var j any
	if json.Unmarshal([]byte(text), &j) != nil {
		return nil, false
	}
	left := maxNodes
	return plain(j, &left), true
}

// plain turns decoded JSON into the values of this package.
func plain(v any, left *int) any {
	if *left--; *left < 0 {
		return nil
	}
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return v
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i], left)
		}
		return out
	case map[string]any:
		out := Fields{}
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			out.add(k, plain(v[k], left))
		}
		return out
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return string(b)
}

// text is the value as its author must have meant it: the words of all lines.
// A list of dashes stays a list.
func (p piece) text() any {
	first := strings.TrimSpace(p.lines[0])
	var words []string
	var list []any
	dashes := first == ""
	for i, l := range p.lines {
		l = strings.TrimSpace(l)
		switch item, ok := strings.CutPrefix(l, "- "); {
		case l == "":
		case ok && i > 0:
			list = append(list, unquote(item))
			words = append(words, l)
		default:
			dashes = dashes && i == 0
			words = append(words, l)
		}
	}
	if dashes && len(list) > 0 {
		return list
	}
	if len(first) > 0 && len(words) > 1 && (strings.Trim(first, "|>+-0123456789") == "") {
		words = words[1:] // the mark of a block whose indentation is wrong
	}
	return unquote(strings.Join(words, " "))
}

func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}
