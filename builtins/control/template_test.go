package control

import (
	"slices"
	"strings"
	"testing"
)

// show fills a body in as Expand does, with directives shown rather than carried out.
func show(body, args string) string {
	var b strings.Builder
	words := split(args)
	for _, p := range parse(body) {
		switch p.kind {
		case shellLine:
			b.WriteString("«" + p.text + "»")
		case mention:
			b.WriteString("‹" + fill(p.text, args, words) + "›")
		default:
			b.WriteString(p.fill(args, words))
		}
	}
	return b.String()
}

func TestTemplate(t *testing.T) {
	for _, c := range []struct{ body, args, want string }{
		{"fix $ARGUMENTS now", "issue 42", "fix issue 42 now"},
		{"$1 and $2", `"a b" c`, "a b and c"},
		{"$1$2", "x", "x"},
		{"$12", "a b", ""},
		{"$ARGUMENTSX $ $$ $x ${1} $0 $01", "a", "$ARGUMENTSX $ $$ $x ${1} $0 $01"},
		{"see @a/b.go, then", "", "see ‹a/b.go›, then"},
		{"see (@$1).", "main.go", "see (‹main.go›)."},
		{"mail me@example.org or @@x or @ x", "", "mail me@example.org or @@x or @ x"},
		{"now: !`git status` here", "", "now: «git status» here"},
		{"wow!`git status`", "", "wow!`git status`"},
		{"say `!` and `x !`y`` z", "", "say `!` and `x !`y`` z"},
		{"`` !`rm` ``", "", "`` !`rm` ``"},
		{"!`open", "", "!`open"},
		{"!``", "", "!``"},
		{"`@a.go` is code", "", "`@a.go` is code"},
		// Nothing in an argument is a directive, and nothing is filled in twice.
		{"$ARGUMENTS", "!`touch pwn` @/etc/passwd $1", "!`touch pwn` @/etc/passwd $1"},
		{"run !`echo $1`", "a", "run «echo $1»"},
	} {
		if got := show(c.body, c.args); got != c.want {
			t.Errorf("%q with %q gives %q, want %q", c.body, c.args, got, c.want)
		}
	}
}

// TestX03FencesAreNotRun: a command in a fenced block is text, and a missing
// argument is empty.
func TestX03FencesAreNotRun(t *testing.T) {
	for _, body := range []string{
		"```\n!`cmd`\n@a.go\n```\n",
		"~~~sh\n!`cmd`\n```\n!`cmd`\n~~~\n",
		"````\n```\n!`cmd`\n````\n",
		"  ```\n!`cmd`\n", // never closed
		"```\n!`cmd`\n``` not the end\n!`cmd`\n",
	} {
		if got := show(body, ""); got != body {
			t.Errorf("%q became %q", body, got)
		}
	}
	if got := show("```\na\n```\n!`b` [$3]\n", "x y"); got != "```\na\n```\n«b» []\n" {
		t.Errorf("after a fence: %q", got)
	}
}

// TestX04DollarsThatMeanNothing stay as they are; a missing argument is empty.
func TestX04DollarsThatMeanNothing(t *testing.T) {
	if got := show(`awk '{print $NF, $(2)}' costs $ 5, got "$2"`, "one"); got != `awk '{print $NF, $(2)}' costs $ 5, got ""` {
		t.Errorf("got %q", got)
	}
	// An argument that nobody gave is empty: in words, and in double quotes.
	if got := show(`awk "{print $2}" of $1`, "one"); got != `awk "{print }" of one` {
		t.Errorf("got %q", got)
	}
}

func TestSplit(t *testing.T) {
	for args, want := range map[string][]string{
		"":                       nil,
		"  a\tb\n":               {"a", "b"},
		`"a b" 'c d' e"f`:        {"a b", "c d", `e"f`},
		"don't try $(touch pwn)": {"don't", "try", "$(touch", "pwn)"},
		`"open and`:              {`"open`, "and"},
		`"" x`:                   {"", "x"},
		`'a'b`:                   {"'a'b"},
		`--flag="a b"`:           {`--flag="a`, `b"`},
		"\u00a0x":                {"\u00a0x"},
	} {
		if got := split(args); !slices.Equal(got, want) {
			t.Errorf("split(%q) = %q, want %q", args, got, want)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add("a $1 @x !`y` ```\n$ARGUMENTS", "b 'c d'")
	f.Add("~~~\n!`x`\n~~~", "")
	f.Fuzz(func(t *testing.T, body, args string) {
		// Literal parts and directives put together give the body again.
		var b strings.Builder
		for _, p := range parse(body) {
			switch p.kind {
			case literal:
				b.WriteString(p.text)
			case shellLine:
				b.WriteString("!`" + p.text + "`")
			case mention:
				b.WriteString("@" + p.text)
			case all:
				b.WriteString("$ARGUMENTS")
			case argument:
				b.WriteString("$" + itoa(p.n))
			}
		}
		if b.String() != body {
			t.Fatalf("%q was read as %q", body, b.String())
		}
		for _, w := range split(args) {
			if !strings.Contains(args, w) {
				t.Fatalf("split(%q) made up %q", args, w)
			}
		}
	})
}

func itoa(n int) string {
	return strings.TrimLeft(string([]byte{byte('0' + n/10), byte('0' + n%10)}), "0")
}
