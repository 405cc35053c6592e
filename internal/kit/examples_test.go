package kit_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/kit"
	"github.com/elfhost/elfhost/pdk/golden"
)

// TestExamples: what authors copy from builds, and has nothing that plugin
// check would hold against it.
func TestExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds eight plugins")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := filepath.Glob("../../examples/*/elf.toml")
	if err != nil || len(dirs) < 8 {
		t.Fatalf("%d examples, %v", len(dirs), err)
	}
	for _, file := range dirs {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			if exists(filepath.Join(dir, "fetch.sh")) && !exists(filepath.Join(dir, "sqlite", "sqlite3.c")) {
				t.Skip("sh examples/sqlite-query/fetch.sh brings SQLite; it needs a network")
			}
			if missing := new(kit.MissingToolchain); buildExample(t, dir, missing) {
				t.Skip(missing)
			}
			pkg, _, err := app.ReadPackage(dir)
			if err != nil {
				t.Fatal(err)
			}
			in, err := kit.Inspect(pkg)
			if err != nil {
				t.Fatal(err)
			}
			cases, err := golden.Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			b, err := kit.Open(t.Context(), pkg, self, filepath.Join(os.TempDir(), "elfhost-kit-test"))
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close(context.Background())
			for _, f := range kit.Check(t.Context(), b, in, cases) {
				if !f.OK {
					t.Errorf("%s: %s", f.What, f.Why)
				}
			}
		})
	}
}

func buildExample(t *testing.T, dir string, missing *kit.MissingToolchain) (skip bool) {
	t.Helper()
	if exists(filepath.Join(dir, "fetch.sh")) && exists(filepath.Join(dir, kit.Module)) {
		return false // a minute of work; its library does not change
	}
	_, err := kit.Build(t.Context(), dir, io.Discard)
	if err != nil && !errors.As(err, &missing) {
		t.Fatal(err)
	}
	return err != nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
