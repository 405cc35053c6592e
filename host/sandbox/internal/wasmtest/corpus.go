package wasmtest

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Corpus visits the .wasm files that the runtime's own repository keeps for
// its tests, smallest directories first, as found in the module cache. The
// test is skipped where the cache has none.
func Corpus(t testing.TB, visit func(name string, wasm []byte)) {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	root := strings.TrimSpace(string(out))
	if err != nil || root == "" {
		t.Skip("the module cache does not hold wazero's sources")
	}
	n := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".wasm" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		visit(filepath.ToSlash(rel), b)
		n++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Skip("wazero's sources are here but hold no .wasm files")
	}
}
