package frontmatter

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// maxTools is how many entries a list of tools may have.
const maxTools = 256

// Tools reads a list of tools in every form that is in use: a YAML list, words
// between commas or spaces, JSON in a string, keys with yes and no. Arguments
// stay with their tool: "Bash(git add:*)" is one entry.
//
// A file can only give tools up this way, so what cannot be read is left out:
// the list gets shorter, never longer. set says that there is a list, be it
// empty; without one nothing is given up.
func (f Fields) Tools(key string) (tools []string, set bool, warnings []string) {
	v, ok := f.Get(key)
	if !ok {
		return nil, false, nil
	}
	if v == nil {
		return nil, false, []string{key + " is empty and says nothing"}
	}
	warn := func(format string, args ...any) {
		if len(warnings) < 3 {
			warnings = append(warnings, fmt.Sprintf(format, args...))
		}
	}
	tools = []string{}
	var take func(v any, depth int)
	take = func(v any, depth int) {
		switch v := v.(type) {
		case string:
			words, bad := splitTools(v)
			if bad != "" {
				warn("%s: %.60q lacks its closing parenthesis and was left out", key, bad)
			}
			tools = append(tools, words...)
		case []any:
			for _, x := range v {
				if depth > 2 {
					warn("%s is nested and was cut", key)
					return
				}
				take(x, depth+1)
			}
		case Fields:
			for _, x := range v {
				if yes, set, err := v.Bool(x.Key); err == nil && set && yes {
					tools = append(tools, x.Key)
				}
			}
		}
	}
	take(v, 0)
	if len(tools) > maxTools {
		warn("%s has over %d entries and was cut", key, maxTools)
		tools = tools[:maxTools]
	}
	return slices.Compact(tools), true, warnings
}

// splitTools parts a text at commas and spaces outside parentheses.
func splitTools(s string) (out []string, bad string) {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "[") {
		var list []string
		if json.Unmarshal([]byte(s), &list) == nil {
			return list, ""
		}
		s = strings.Trim(s, "[]")
	}
	depth, from := 0, 0
	flush := func(to int) {
		if w := unquote(s[from:to]); w != "" {
			out = append(out, w)
		}
		from = to + 1
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '(':
			depth++
		case c == ')':
			depth = max(0, depth-1)
		case depth == 0 && (c == ',' || c == ' ' || c == '\t' || c == '\n'):
			flush(i)
		}
	}
	if depth > 0 {
		return out, s[from:]
	}
	flush(len(s))
	return out, ""
}
