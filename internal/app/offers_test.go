package app_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/elfhost/elfhost/host/mcp"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/skillhub"
)

// Skills and commands that come while a session is served are noticed, be their
// folders made only then, and packages that bring a skill alone.
func TestOffersAreNoticed(t *testing.T) {
	m := newMachine(t)
	a, other := m.open(), m.open()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	skill := func(name string) string {
		return "---\nname: " + name + "\ndescription: How to " + name + "\n---\nDo it.\n"
	}
	for _, c := range []struct {
		name string
		make func()
	}{
		{"mine", func() { write(filepath.Join(m.paths.Config, "skills", "mine", "SKILL.md"), skill("mine")) }},
		{"second", func() { write(filepath.Join(m.paths.Config, "skills", "second", "SKILL.md"), skill("second")) }},
		{"ours", func() { write(filepath.Join(m.dir, ".elfhost", "skills", "ours", "SKILL.md"), skill("ours")) }},
		{"tidy", func() { write(filepath.Join(m.paths.Config, "commands", "tidy.md"), "Tidy up.\n") }},
		{"packed", func() {
			dir := filepath.Join(m.dir, "..", "packed")
			write(filepath.Join(dir, "elf.toml"), "abi = \"elf/1\"\nname = \"packed\"\nversion = \"1.0.0\"\n")
			write(filepath.Join(dir, "SKILL.md"), skill("packed"))
			m.install(other, skillhub.Ref{Kind: skillhub.Local, Location: dir})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := a.OffersChanged()
			if offers(t, a, c.name) {
				t.Fatal("it is there before it is made")
			}
			c.make()
			end := time.After(patience)
			for told := false; !told || !offers(t, a, c.name); told = true {
				select {
				case <-changed:
					changed = a.OffersChanged()
				case <-end:
					t.Fatal("nobody was told")
				}
			}
		})
	}
}

func offers(t *testing.T, a *app.App, name string) bool {
	t.Helper()
	return slices.ContainsFunc(a.Prompts(context.Background()), func(p mcp.Prompt) bool { return p.Name == name })
}
