package outline

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/host/sandbox/vet"
)

// newPacks gives the packs of this build, or skips where it has none.
func newPacks(t *testing.T) *Packs {
	t.Helper()
	if _, err := embedded("core"); err != nil {
		t.Skip("this build has no grammar packs: make grammars brings them")
	}
	p := &Packs{Dir: t.TempDir(), Cache: filepath.Join(os.TempDir(), "elfhost-test-grammars"), Compiler: os.Args[0]}
	t.Cleanup(func() { p.Close() })
	return p
}

// need skips where the build lacks one pack.
func (p *Packs) need(t *testing.T, id string) []byte {
	t.Helper()
	b, err := embedded(id)
	if err != nil {
		t.Skipf("not run: this build has no grammar pack for %s; `make grammars` (npm, clang) brings it", id)
	}
	return b
}

// TestModern holds the whole answer about today's Dart, Swift and Kotlin.
func TestModern(t *testing.T) {
	p := newPacks(t)
	d := newDesk(t, Options{Packs: p})
	for id, file := range map[string]string{"dart": "sample.dart", "swift": "sample.swift", "kotlin": "sample.kt"} {
		t.Run(id, func(t *testing.T) {
			p.need(t, id)
			golden(t, d, filepath.Join("testdata/modern", file))
		})
	}
	if d.worker.live != nil {
		t.Error("a worker was started where packs do")
	}
}

// TestPacksOnly: without a worker, packs serve their languages and the others
// are named.
func TestPacksOnly(t *testing.T) {
	p := newPacks(t)
	p.need(t, "dart")
	d := newDesk(t, Options{Packs: p})
	d.worker = nil
	if got := d.outlineOf("a.dart", "class A {}\n"); !strings.Contains(got, "class A (line 1)") {
		t.Error(got)
	}
	if got := d.outlineOf("a.zig", ""); !strings.Contains(got, notSupported+"Files that end in .zig are not known.") {
		t.Error(got)
	}
	list := p.List()
	if has := func(id string) bool {
		for _, g := range list {
			if g.ID == id {
				return true
			}
		}
		return false
	}; !has("python") {
		got := d.outlineOf("a.py", "x = 1\n")
		if !strings.Contains(got, notSupported+"The parser of Python is not in this build.") ||
			!strings.Contains(got, "elfhost grammar add npm:@repomix/tree-sitter-wasms@0.1.17#python") {
			t.Error(got)
		}
	}
}

func TestAddAndRemove(t *testing.T) {
	p := newPacks(t)
	dart := p.need(t, "dart")
	g, err := p.Add(t.Context(), dart, "a file", nil)
	if err != nil || g.ID != "dart" || g.Language != "Dart" || len(g.Digest) != 64 {
		t.Fatal(g, err)
	}
	var found int
	for _, l := range p.List() {
		if l.ID == "dart" {
			found++
			if l.Embedded || l.Source != "a file" {
				t.Errorf("%+v", l)
			}
		}
	}
	if found != 1 {
		t.Errorf("dart is listed %d times", found)
	}
	// A person may give it other files.
	if _, err := p.Add(t.Context(), dart, "a file", []string{".dartx", ".JS"}); err != nil {
		t.Fatal(err)
	}
	d := newDesk(t, Options{Packs: p})
	if got := d.outlineOf("a.dartx", "class A {}\n"); !strings.Contains(got, "class A") {
		t.Error(got)
	}
	if got := d.outlineOf("a.js", "class A {}\n"); !strings.Contains(got, "Language: Dart") {
		t.Error(got)
	}
	// A changed module is not run.
	mods, _ := filepath.Glob(filepath.Join(p.Dir, "*.wasm"))
	if len(mods) != 1 {
		t.Fatal(mods)
	}
	if err := os.WriteFile(mods[0], append(bytes.Clone(dart), 0, 1, 0), 0o644); err != nil {
		t.Fatal(err)
	}
	q := &Packs{Dir: p.Dir, Cache: p.Cache, Compiler: p.Compiler}
	defer q.Close()
	if got := newDesk(t, Options{Packs: q}).outlineOf("a.dartx", "class A {}\n"); !strings.Contains(got, "was changed after it was installed") {
		t.Error(got)
	}
	if err := p.Remove("dart"); err != nil {
		t.Fatal(err)
	}
	if rest, _ := os.ReadDir(p.Dir); len(rest) != 0 {
		t.Error(rest)
	}
	if err := p.Remove("dart"); !errors.Is(err, ErrNoPack) {
		t.Error(err)
	}
	for _, id := range []string{"", "../x", "a/b", "Dart", "."} {
		if err := p.Remove(id); !errors.Is(err, ErrNoPack) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestAddRefuses(t *testing.T) {
	p := newPacks(t)
	dart := p.need(t, "dart")
	core, _ := embedded("core")
	for name, c := range map[string]struct {
		module []byte
		ext    []string
		want   string
	}{
		"text":        {[]byte("hello"), nil, "WebAssembly"},
		"the core":    {core, nil, "tree_sitter_NAME"},
		"cut":         {dart[:len(dart)/2], nil, ""},
		"too large":   {make([]byte, maxPack+1), nil, "at most"},
		"extension":   {dart, []string{"dart"}, "begins with a dot"},
		"extension /": {dart, []string{"./x"}, "begins with a dot"},
	} {
		_, err := p.Add(t.Context(), c.module, "test", c.ext)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if rest, _ := os.ReadDir(p.Dir); len(rest) != 0 {
		t.Errorf("something was left: %v", rest)
	}
}

// TestLinkDamaged flips bytes of a pack: the linker must not panic, and what it
// makes must still pass the vetting, or be refused.
func TestLinkDamaged(t *testing.T) {
	p := newPacks(t)
	dart := p.need(t, "dart")
	core, _ := embedded("core")
	m := bytes.Clone(dart)
	for i := 8; i < 400; i++ {
		for _, bit := range []byte{1, 0x10, 0x80, 0xff} {
			m[i] ^= bit
			if joined, err := link(core, m); err == nil {
				if _, err := vet.Check(joined, vet.Grammars()); err != nil {
					var r *vet.Refusal
					if !errors.As(err, &r) {
						t.Logf("byte %d: %v", i, err)
					}
				}
			}
			m[i] ^= bit
		}
	}
}

func FuzzLink(f *testing.F) {
	core, err := embedded("core")
	if err != nil {
		f.Skip("this build has no grammar packs: make grammars brings them")
	}
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x00\x0f\x08dylink.0\x01\x04\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, pack []byte) {
		if len(pack) > 1<<16 {
			return
		}
		_, _ = build(core, pack)
	})
}

// TestPackLimits: hostile texts end at the limits of the sandbox.
func TestPackLimits(t *testing.T) {
	p := newPacks(t)
	p.need(t, "dart")
	d := newDesk(t, Options{Packs: p, Timeout: 300 * time.Millisecond})
	start := time.Now()
	got := d.outlineOf("a.dart", strings.Repeat("a<b<(c[{", 500_000))
	if !strings.Contains(got, "Note: AST parse error:") || time.Since(start) > 25*time.Second { // the default is 30 s
		t.Errorf("%v: %s", time.Since(start), got)
	}
	d.answers("b.dart", "class B {}\n", "class B")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := d.call(ctx, map[string]any{"path": "a.dart"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// FuzzTree: a tree that a parser made up does no harm.
func FuzzTree(f *testing.F) {
	f.Add([]byte("func f() {}\n"), make([]byte, 5*recordSize))
	f.Fuzz(func(t *testing.T, src, records []byte) {
		for _, l := range languages {
			if l.kinds == nil {
				continue
			}
			tr := &tree{src: src, fields: []string{"", "name", "body", "declarator", "type", "path"}}
			for k := range l.kinds {
				tr.kinds = append(tr.kinds, k)
			}
			slices.Sort(tr.kinds) // so that a finding can be found again
			tr.kinds = append(tr.kinds, "identifier", "comment", "{", "block")
			for b := records; len(b) >= recordSize; b = b[recordSize:] {
				tr.nodes = append(tr.nodes, readRecord(b, uint16(len(tr.kinds)-1)))
			}
			r := l.answer(tr)
			for _, s := range r.Symbols {
				if s.Last < s.First || s.Depth < 0 {
					t.Fatalf("%+v", s)
				}
			}
		}
	})
}
