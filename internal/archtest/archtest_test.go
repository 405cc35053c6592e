package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/elfhost/elfhost"

// imports of one package: import path to the first file that has it.
type imports map[string]string

func TestRoomsImportOnlyThroughTheirDoors(t *testing.T) {
	for pkg, imps := range packages(t, false) {
		r, ok := find(pkg)
		if !ok {
			t.Errorf("package %q is not in the plan: add it to internal/archtest/doors.go and docs/layout.md on purpose", pkg)
			continue
		}
		for imp, file := range imps {
			if rel, own := strings.CutPrefix(imp, module+"/"); own && !allowed(r.may, rel) {
				t.Errorf("%s: %q may not import %q", file, pkg, rel)
			}
		}
	}
}

func TestDangerousThingsHaveOneRoom(t *testing.T) {
	for pkg, imps := range packages(t, false) {
		for imp, file := range imps {
			for _, x := range touches {
				hit := imp == x.pkg || strings.HasSuffix(x.pkg, "/") && strings.HasPrefix(imp, x.pkg)
				if hit && !allowed(x.rooms, pkg) {
					t.Errorf("%s: %q may not import %q: %s", file, pkg, imp, x.why)
				}
			}
		}
	}
}

// TestAbiIsStandardLibraryOnly: guests of every kind compile it.
func TestAbiIsStandardLibraryOnly(t *testing.T) {
	for imp, file := range packages(t, true)["abi"] {
		if strings.Contains(strings.SplitN(imp, "/", 2)[0], ".") && !strings.HasPrefix(imp, module) {
			t.Errorf("%s: abi imports %q", file, imp)
		}
	}
}

// TestPlanSeesABreach plants imports that the plan forbids.
func TestPlanSeesABreach(t *testing.T) {
	for _, c := range []struct{ pkg, imp string }{
		{"host/policy", "host/reach"}, {"abi", "host"}, {"plugins/webfetch", "host"}, {"host", "host/reach"},
		{"host/sandbox/vet", "host"}, {"builtins/files", "host/sandbox"}, {"host/model/openai", "host"},
	} {
		r, ok := find(c.pkg)
		if !ok || allowed(r.may, c.imp) {
			t.Errorf("%q importing %q was not refused", c.pkg, c.imp)
		}
	}
	if _, ok := find("host/newroom"); ok {
		t.Error("an unknown package was found in the plan")
	}
}

// find returns the room of a package: an exact entry, else the deepest tree.
func find(pkg string) (room, bool) {
	best, n := room{}, -1
	for _, r := range rooms {
		if r.path == pkg {
			return r, true
		}
		if tree, ok := strings.CutSuffix(r.path, "/..."); ok && strings.HasPrefix(pkg, tree+"/") && len(tree) > n {
			best, n = r, len(tree)
		}
	}
	return best, n >= 0
}

func allowed(rooms []string, pkg string) bool {
	return slices.ContainsFunc(rooms, func(r string) bool {
		tree, isTree := strings.CutSuffix(r, "/...")
		return r == "*" || r == pkg || isTree && strings.HasPrefix(pkg, tree+"/")
	})
}

func packages(t *testing.T, tests bool) map[string]imports {
	t.Helper()
	root := moduleRoot(t)
	out := map[string]imports{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "dist" || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || !tests && strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, filepath.Dir(path))
		pkg := filepath.ToSlash(rel)
		if out[pkg] == nil {
			out[pkg] = imports{}
		}
		file, _ := filepath.Rel(root, path)
		for _, s := range f.Imports {
			imp, _ := strconv.Unquote(s.Path.Value)
			out[pkg][imp] = file
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
}
