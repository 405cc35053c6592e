package reach

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is copied into bubblewrap's root is what everybody may read, and a
// folder with much in it is left to a bind.
func TestCopies(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size int, mode os.FileMode) {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("small/a", 10, 0o644)
	write("small/key", 10, 0o640)
	write("small/sub/b", 10, 0o644)
	write("small/private/c", 10, 0o644)
	if err := os.Chmod(filepath.Join(dir, "small/private"), 0o750); err != nil {
		t.Fatal(err)
	}
	link(t, "../a", filepath.Join(dir, "small/sub/l"))
	link(t, "small/a", filepath.Join(dir, "file"))
	link(t, "small", filepath.Join(dir, "folder"))
	write("big", copiedSize+1, 0o644)
	for i := range copiedEntries {
		write("many/"+strings.Repeat("x", i+1), 1, 0o644)
	}
	for name, want := range map[string]bool{"small": true, "file": true, "folder": false, "big": false, "many": false, "none": false} {
		if got := entries(filepath.Join(dir, name)) != nil; got != want {
			t.Errorf("%s: copied %v, want %v", name, got, want)
		}
	}
	args, files := copied(append(entries(filepath.Join(dir, "small")), entries(filepath.Join(dir, "file"))...), nil)
	defer closeFiles(files)
	var got []string
	for i, a := range args {
		if rel, ok := strings.CutPrefix(a, dir+"/"); ok {
			got = append(got, rel)
			if args[i-1] == "3" && files[0].Name() != a || args[i-1] == "5" && files[2].Name() != a {
				t.Errorf("descriptor %s is not %s", args[i-1], a)
			}
		}
	}
	slices.Sort(got)
	if want := "file small small/a small/sub small/sub/b small/sub/l"; strings.Join(got, " ") != want || len(files) != 3 {
		t.Errorf("copied %q, %d files; want %q", got, len(files), want)
	}
	if args, files = copied([]entry{{path: filepath.Join(dir, "gone")}}, nil); len(args)+len(files) != 0 {
		t.Errorf("a file that is gone: %q", args)
	}
}
