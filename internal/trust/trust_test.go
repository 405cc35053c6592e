package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/internal/config"
)

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func status(t *testing.T, p config.Paths, dir string) Status {
	t.Helper()
	st, _, err := Check(p, dir)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestTrustIsBoundToWhatWasSeen(t *testing.T) {
	p, dir := config.Paths{State: t.TempDir()}, t.TempDir()
	put(t, dir, "README.md", "x")
	put(t, dir, ".elfhost/skills/a/SKILL.md", "text is data")
	if got := status(t, p, dir); got != Nothing {
		t.Fatalf("an ordinary folder is %q", got)
	}
	put(t, dir, ".elfhost/config.toml", "[mcp.servers.a]\ncommand = \"touch\"\n")
	if got := status(t, p, dir); got != Unknown {
		t.Fatalf("before anybody was asked: %q", got)
	}
	_, s, _ := Check(p, dir)
	if err := Give(p, s); err != nil {
		t.Fatal(err)
	}
	if got := status(t, p, dir); got != Trusted {
		t.Fatalf("after a yes: %q", got)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err == nil && status(t, p, link) != Trusted {
		t.Error("another name of the folder is not trusted")
	}
	put(t, dir, ".elfhost/skills/a/SKILL.md", "other text")
	if got := status(t, p, dir); got != Trusted {
		t.Errorf("a skill's text changed: %q", got)
	}
	for _, c := range []struct { // in this order: the last one leaves others behind
		name   string
		change func()
	}{
		{"changed", func() { put(t, dir, ".elfhost/config.toml", "[mcp.servers.a]\ncommand = \"rm\"\n") }},
		{"new", func() { put(t, dir, ".elfhost/commands/deep/x.md", "!`touch PWN`") }},
		{"mcp", func() { put(t, dir, ".mcp.json", "{}") }},
		{"agent", func() { put(t, dir, ".elfhost/agents/a.md", "---\nmcpServerIds: [a]\n---\nx") }},
		{"gone", func() { os.Remove(filepath.Join(dir, ".elfhost/config.toml")) }},
	} {
		name, change := c.name, c.change
		_, before, _ := Check(p, dir)
		if err := Give(p, before); err != nil {
			t.Fatal(err)
		}
		change()
		if got := status(t, p, dir); got != Changed {
			t.Errorf("%s: %q", name, got)
		}
		r, err := Load(p, dir)
		if _, now, _ := Check(p, dir); err != nil || len(r.Difference(now)) != 1 {
			t.Errorf("%s: %v %v", name, r.Difference(now), err)
		}
	}
}

// What was looked at is kept: who uses it need not read the files again.
func TestASurveyKeepsWhatItSaw(t *testing.T) {
	p, dir := config.Paths{State: t.TempDir()}, t.TempDir()
	put(t, dir, ".mcp.json", "{}")
	_, s, _ := Check(p, dir)
	put(t, dir, ".mcp.json", `{"mcpServers":{}}`)
	put(t, dir, ".elfhost/config.toml", "x")
	if b, ok := s.File(".mcp.json"); !ok || string(b) != "{}" || !s.Holds(".mcp.json", []byte("{}")) || s.Holds(".mcp.json", []byte(`{"mcpServers":{}}`)) {
		t.Errorf("%q %v", b, ok)
	}
	if _, ok := s.File(".elfhost/config.toml"); ok || s.Holds(".elfhost/config.toml", []byte("x")) || s.Holds("gone", nil) {
		t.Error("a file that was not there is held")
	}
}

// A yes to a survey is no yes to what came between.
func TestAYesIsNoYesToLaterChanges(t *testing.T) {
	p, dir := config.Paths{State: t.TempDir()}, t.TempDir()
	put(t, dir, ".elfhost/commands/a.md", "harmless")
	_, s, _ := Check(p, dir)
	put(t, dir, ".elfhost/commands/a.md", "!`touch PWN`")
	if err := Give(p, s); err != nil {
		t.Fatal(err)
	}
	if got := status(t, p, dir); got != Changed {
		t.Errorf("the change is %q", got)
	}
}

// A file that a repository ships says nothing about trust, whatever its name.
func TestAProjectCannotTrustItself(t *testing.T) {
	p, dir := config.Paths{State: t.TempDir()}, t.TempDir()
	other := t.TempDir()
	put(t, dir, ".elfhost/config.toml", "x")
	put(t, dir, ".elfhost/trust.toml", "dir = \""+dir+"\"\n")
	if got := status(t, p, dir); got != Unknown {
		t.Errorf("%q", got)
	}
	// Nor does a record that was made for another folder.
	put(t, other, ".elfhost/config.toml", "x")
	_, s, _ := Check(p, other)
	if err := Give(p, s); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(file(p, canonical(other)))
	put(t, filepath.Dir(file(p, canonical(dir))), "trust.toml", string(b))
	if got := status(t, p, dir); got != Changed {
		t.Errorf("another folder's record: %q", got)
	}
}

func TestRevokeAndList(t *testing.T) {
	p := config.Paths{State: filepath.Join(t.TempDir(), "a[b]*")}
	var want []string
	for range 2 {
		dir := t.TempDir()
		put(t, dir, ".mcp.json", "{}")
		_, s, _ := Check(p, dir)
		if err := Give(p, s); err != nil {
			t.Fatal(err)
		}
		want = append(want, s.Dir)
	}
	list, err := List(p)
	if err != nil || len(list) != 2 {
		t.Fatalf("%v %v", list, err)
	}
	if got := []string{list[0].Dir, list[1].Dir}; !reflect.DeepEqual(got, want) && !reflect.DeepEqual(got, []string{want[1], want[0]}) {
		t.Errorf("%v", got)
	}
	os.RemoveAll(want[0])
	if ok, err := Revoke(p, want[0]); !ok || err != nil {
		t.Errorf("of a folder that is gone: %v %v", ok, err)
	}
	if ok, err := Revoke(p, want[0]); ok || err != nil {
		t.Errorf("twice: %v %v", ok, err)
	}
	if _, err := Load(p, want[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	put(t, p.State, "projects/bad/trust.toml", "nonsense = [")
	if list, err := List(p); len(list) != 1 || err == nil || !strings.Contains(err.Error(), "bad") {
		t.Errorf("%v %v", list, err)
	}
}

func TestHostileFolders(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a right of their own there")
	}
	p := config.Paths{State: t.TempDir()}
	for name, build := range map[string]func(dir string){
		"circle": func(dir string) {
			os.MkdirAll(filepath.Join(dir, ".elfhost/commands"), 0o755)
			os.Symlink(".", filepath.Join(dir, ".elfhost/commands/again"))
		},
		"device": func(dir string) {
			os.MkdirAll(filepath.Join(dir, ".elfhost"), 0o755)
			os.Symlink("/dev/zero", filepath.Join(dir, ".elfhost/config.toml"))
		},
		"many": func(dir string) {
			for i := range maxItems + 1 {
				put(t, dir, ".elfhost/commands/"+strings.Repeat("x", i/100+1)+string(rune('a'+i%26))+string(rune('a'+i/26%26))+".md", "")
			}
		},
		"large": func(dir string) { put(t, dir, ".mcp.json", strings.Repeat("x", maxBytes+1)) },
	} {
		dir := t.TempDir()
		build(dir)
		if st, _, err := Check(p, dir); err == nil || st == Trusted {
			t.Errorf("%s: %q %v", name, st, err)
		}
	}
}
