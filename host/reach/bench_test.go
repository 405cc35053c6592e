package reach

import (
	"os"
	"testing"
)

// BenchmarkOpen compares an open through the tree (checked, confined, known to
// be regular) with the bare one and with os.Root.
func BenchmarkOpen(b *testing.B) {
	w := newWorld(b)
	r := readWrite(b)
	b.Run("tree", func(b *testing.B) {
		for b.Loop() {
			f, err := w.Open(bg, r, "/ws/sub/b.txt", os.O_RDONLY, 0)
			if err != nil {
				b.Fatal(err)
			}
			f.Close()
		}
	})
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	b.Run("os.Root", func(b *testing.B) {
		for b.Loop() {
			f, err := root.Open("sub/b.txt")
			if err != nil {
				b.Fatal(err)
			}
			f.Close()
		}
	})
	b.Run("os", func(b *testing.B) {
		for b.Loop() {
			f, err := os.Open(w.host("sub/b.txt"))
			if err != nil {
				b.Fatal(err)
			}
			f.Close()
		}
	})
}

// BenchmarkSandbox is what each rung adds to a program's start.
func BenchmarkSandbox(b *testing.B) {
	grant := give(b, "exec /bin/true")
	for _, kind := range []string{"", Namespaces, Bubblewrap, Landlock} {
		s, why := Sandbox{}, ""
		if kind != "" {
			s, why, _ = try(bg, kind)
		}
		b.Run("rung="+kind, func(b *testing.B) {
			if why != "" {
				b.Skip(why)
			}
			runner := Runner{Sandbox: s}
			p := Program{Argv: []string{"/bin/true"}, Dir: b.TempDir()}
			for b.Loop() {
				if e, err := runner.Run(bg, grant, p); err != nil || e.Code != 0 {
					b.Fatal(e, err)
				}
			}
		})
	}
}
