package search

import (
	"fmt"
	"strings"
)

// expandBraces spells out {a,b}. It fails where the alternatives would be
// more than max, before making them. Braces without a comma are themselves.
func expandBraces(s string, max int) ([]string, error) {
	open, commas, end := -1, []int(nil), -1
	depth, class := 0, false
scan:
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = strings.IndexByte(s[i:], ']') > 0
		case c == '{':
			if depth == 0 {
				open, commas = i, nil
			}
			depth++
		case c == ',' && depth == 1:
			commas = append(commas, i)
		case c == '}' && depth > 0:
			if depth--; depth == 0 {
				end = i
				break scan
			}
		}
	}
	if depth > 0 {
		return nil, fmt.Errorf("the glob %q has a { without its }; write \\{ for the character itself", s)
	}
	if end < 0 {
		return []string{s}, nil
	}
	rest, err := expandBraces(s[end+1:], max)
	if err != nil {
		return nil, err
	}
	inner, err := alternativesOf(s, open, end, commas, max)
	if err != nil {
		return nil, err
	}
	if len(inner)*len(rest) > max {
		return nil, fmt.Errorf("the braces of the glob stand for more than %d alternatives", max)
	}
	out := make([]string, 0, len(inner)*len(rest))
	for _, a := range inner {
		for _, b := range rest {
			out = append(out, s[:open]+a+b)
		}
	}
	return out, nil
}

func alternativesOf(s string, open, end int, commas []int, max int) ([]string, error) {
	if len(commas) == 0 {
		return []string{`\{` + s[open+1:end] + `\}`}, nil
	}
	var out []string
	from := open + 1
	for _, c := range append(commas, end) {
		more, err := expandBraces(s[from:c], max)
		if err != nil {
			return nil, err
		}
		if out = append(out, more...); len(out) > max {
			return nil, fmt.Errorf("the braces of the glob stand for more than %d alternatives", max)
		}
		from = c + 1
	}
	return out, nil
}
