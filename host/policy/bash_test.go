package policy

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestWordsAreBashWords compares what is known of words with what bash makes
// of them.
func TestWordsAreBashWords(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this machine to compare with")
	}
	for _, words := range []string{
		`a b  c`, `'a b'"c d"e\ f`, `$'\x41\101\u00e9\n\'\\'`, `"a\"b\$c\d\\"`, `''`, `a''`, `{a,b}c{d,e}`, `{a}`, `{a,{b,c}}`, `\{a,b}`, `'{a,b}'`,
		"a\\\nb", "\"a\\\nb\"", `a#b`, `*.none`, `\*`, `"*"`, `a=b`, `--x='y z'`, `\~`, `'~'`, `$'a\eb'`, `$'\1234'`, `$'\x4142'`, `é漢`, `"it's"`, `'a'\''b'`, `a\\b`, `{,x}`, `"$'x'"`, `[a]`, `!x`, `a!`, `x{1,2}{3,4}{5,6}`, `-{a,b}`, `{,}`, `{'',x}`, `x{,}`,
	} {
		cmd := exec.Command(bash, "--norc", "--noprofile", "-c", `args(){ [ $# -eq 0 ] || printf '%s\0' "$@"; }; args `+words)
		cmd.Dir, cmd.Env = t.TempDir(), []string{"LC_ALL=C.UTF-8"}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", words, err)
		}
		var want []string
		if len(out) > 0 {
			want = strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		}
		c, err := ParseCommand("args " + words)
		if err != nil || len(c.Segments) != 1 {
			t.Errorf("%s: %+v, %v", words, c, err)
			continue
		}
		if g := c.Segments[0]; !g.Dynamic && !slices.Equal(g.Argv[1:], want) {
			t.Errorf("%s: %q, bash has %q", words, g.Argv[1:], want)
		}
	}
}
