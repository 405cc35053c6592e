package app

import (
	"slices"
	"testing"
)

func TestMentions(t *testing.T) {
	for in, want := range map[string][]mention{
		"":                                 nil,
		"look at @a.go, and (@b/c.go).":    {{path: "a.go"}, {path: "b/c.go"}},
		"@a.go @a.go":                      {{path: "a.go"}},
		"@a.go#3 @b.go#L3-L9 @c.go#9-3":    {{path: "a.go", from: 3}, {path: "b.go", from: 3, lines: 7}, {path: "c.go", from: 9, lines: 1}},
		"mail me@example.com, `@code`, @@": nil,
		`see @"my notes.txt"`:              {{path: "my notes.txt"}},
		"/tmp/a.png":                       {{path: "/tmp/a.png", bare: true}},
		`/tmp/my\ shot\ (1).png`:           {{path: "/tmp/my shot (1).png", bare: true}},
		`'/tmp/my shot.PNG' `:              {{path: "/tmp/my shot.PNG", bare: true}},
		"file:///tmp/my%20shot.jpg":        {{path: "/tmp/my shot.jpg", bare: true}},
		`C:\shots\a.png`:                   {{path: `C:\shots\a.png`, bare: true}},
		"describe /tmp/a.png":              nil,
		"/tmp/a.txt":                       nil,
		"a.png\nb.png":                     nil,
		"'":                                nil,
		"file://%zz.png":                   nil,
	} {
		if got := mentions(in); !slices.Equal(got, want) {
			t.Errorf("%q: %+v, want %+v", in, got, want)
		}
	}
}

func FuzzMentions(f *testing.F) {
	f.Add("look at @a.go#3-4 and @\"b c\"")
	f.Add(`'/tmp/a b.png'`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range mentions(text) {
			if m.path == "" || m.from < 0 || m.lines < 0 {
				t.Errorf("%q: %+v", text, m)
			}
		}
	})
}
