// Package shared finds test material that lives beside the project rather
// than in it: recorded exchanges, article pages, case tables.
package shared

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir returns the folder ../shared/rel, seen from the module's root. The test
// is skipped where it is absent: a clone alone does not have it.
func Dir(t testing.TB, rel string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = up
	}
	path := filepath.Join(filepath.Dir(dir), "shared", filepath.FromSlash(rel))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no ../shared/%s beside the project: this test reads its material there", rel)
	}
	return path
}
