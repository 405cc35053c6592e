package config

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/policy/packages"
)

// TestPOL03EveryProblemHasItsPlace: one look at a file tells all that is wrong
// with it, with line and column.
func TestPOL03EveryProblemHasItsPlace(t *testing.T) {
	src := `default = "maybe"
mods = 1
require_sandbox = "yes"
[[deny]]
cap = "net.tcp"
[[allow]]
cap = "net.http"
scope = [
  "https://a.test",
    "gopher://x",
]
[network]
proxy = "proxy:3128"
offf = true
[packages]
signature = "gold"
never_together = [["fs.read"]]
[packages.allow]
names = ["Fetch", "fetch >=abc"]
keys = ["RWQshort"]
hubs = ["ftp://x"]
[[packages.ceiling]]
cap = "tool.call"
scope = "a b"
`
	problems, _ := checkPolicy([]byte(src), policy.System, "p.toml")
	var got []string
	for _, e := range problems {
		got = append(got, fmt.Sprintf("%d:%d", e.Line, e.Column))
	}
	want := []string{"1:1", "2:1", "3:19", "5:1", "10:5", "13:1", "14:1", "16:1", "17:1", "19:10", "19:19", "20:9", "21:9", "24:1"}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("nothing at %s", w)
		}
	}
	if !strings.Contains(fmt.Sprint(problems), "require_sandbox: it is a string, and a boolean is wanted") {
		t.Errorf("the type is not named in TOML's words: %v", problems)
	}
	if len(got) != len(want) {
		t.Errorf("places %v, want %v", got, want)
		for _, e := range problems {
			t.Logf("%d:%d %v", e.Line, e.Column, e.Err)
		}
	}
}

func TestCheckPolicyStopsAtSyntax(t *testing.T) {
	for src, want := range map[string]string{
		"modes = [\"ask\"\n\n= 3":                    "3:",
		"[[modes]]\nx = 1\nrequire_sandbox = true":   "1:",
		"\xff\xfed\x00":                              "1:",
		strings.Repeat("[", 100):                     "1:",
		"deny_multilink = true\ndeny_multilink = 1 ": "2:",
	} {
		problems, _ := checkPolicy([]byte(src), policy.System, "p.toml")
		if len(problems) == 0 || !strings.HasPrefix(fmt.Sprintf("%d:", problems[0].Line), want) {
			t.Errorf("%q: %v", src, problems)
		}
	}
	problems, notes := checkPolicy([]byte("[tools]\nallow = [\"Bash\"]\n"), policy.Project, "p.toml")
	if len(problems) != 0 || len(notes) != 1 || !strings.Contains(notes[0], "p.toml:2") {
		t.Errorf("%v, %v", problems, notes)
	}
}

func TestNetworkOffInOneWord(t *testing.T) {
	for src, off := range map[string]bool{"network = \"off\"": true, "[network]\noff = true": true, "network = { off = true }": true, "[network]\n": false} {
		l, err := readPolicy([]byte(src), policy.User, "p.toml")
		if err != nil || l.Network.Off != off {
			t.Errorf("%q: %v, %v", src, l.Network, err)
		}
	}
	if _, err := readPolicy([]byte("\nnetwork = \"on\""), policy.User, "p.toml"); err == nil || !strings.Contains(err.Error(), "p.toml:2:") {
		t.Errorf("%v", err)
	}
}

func TestPackagesOfThePolicyFiles(t *testing.T) {
	p, project := home(t, map[string]string{
		"system/policy.toml": "[packages]\nsignature = \"signed\"\n[packages.deny]\nnames = [\"fetch <1.2.3\"]\n[[packages.ceiling]]\ncap = \"exec\"\n",
		"user/policy.toml":   "[packages]\nsignature = \"unsigned\"\n[packages.allow]\nnames = [\"fetch\"]\n",
	})
	pol, err := LoadPolicy(p, project)
	if err != nil {
		t.Fatal(err)
	}
	key := "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
	for _, c := range []struct {
		f    packages.Facts
		want string // the place of the refusal
	}{
		{packages.Facts{Name: "fetch", Version: "1.2.3", Key: key}, ""},
		{packages.Facts{Name: "fetch", Version: "1.2.2", Key: key}, p.SystemPolicy + ":4"},
		{packages.Facts{Name: "fetch", Version: "1.2.3"}, p.SystemPolicy + ":2"},
		{packages.Facts{Name: "other", Version: "1.0.0", Key: key}, p.UserPolicy() + ":4"},
	} {
		where := ""
		if d := pol.Package(c.f).Denied(); len(d) > 0 {
			where = d[0].Where
		}
		if where != c.want {
			t.Errorf("%+v: refused by %q, want %q", c.f, where, c.want)
		}
	}
	if pol.PluginCeiling().Allows("exec") || !pol.Ceiling().Allows("exec") {
		t.Error("the ceiling of packages is that of plugins, not of builtin tools")
	}
}

// The policies that SECURITY.md and README.md show are right, all of them.
func TestPoliciesInTheDocuments(t *testing.T) {
	for _, doc := range []string{"../../SECURITY.md", "../../README.md"} {
		b, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, part := range strings.Split(string(b), "```toml\n")[1:] {
			text, _, _ := strings.Cut(part, "```")
			if !strings.Contains(text, "policy.toml") {
				continue
			}
			n++
			if problems, notes := checkPolicy([]byte(text), policy.System, doc); len(problems)+len(notes) > 0 {
				t.Errorf("%s: %v %v\n%s", doc, problems, notes, text)
			}
		}
		if n == 0 {
			t.Errorf("%s shows no policy", doc)
		}
	}
}
