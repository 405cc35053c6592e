package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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

// TestThePageNamesWhatIsThere: docs/layout.md leads to files of this module.
func TestThePageNamesWhatIsThere(t *testing.T) {
	root := moduleRoot(t)
	for _, page := range []string{"docs/layout.md", "CONTRIBUTING.md"} {
		b, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		files := regexp.MustCompile("`([a-z][a-z0-9_]*(?:/[a-z0-9_]+)+\\.go)`").FindAllStringSubmatch(string(b), -1)
		if len(files) == 0 {
			t.Errorf("%s names no file", page)
		}
		for _, m := range files {
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s: %v", page, err)
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

// TestPackagesExportFewNames counts the types, functions and variables that a
// package exports. Constants, errors and methods come with what they belong to.
func TestPackagesExportFewNames(t *testing.T) {
	all := exported(t)
	for pkg, names := range all {
		if n := len(names); n > maxExported {
			t.Errorf("%q exports %d names, at most %d can be kept in mind: unexport what nobody uses, or find the subject that is a room of its own", pkg, n, maxExported)
		}
	}
	if n := len(all["host/policy"]); n == 0 {
		t.Error("nothing was counted")
	}
}

const maxExported = 30

// exported lists what each package of the module, main packages and tests aside,
// exports in any of its files.
func exported(t *testing.T) map[string]map[string]bool {
	t.Helper()
	out := map[string]map[string]bool{}
	sources(t, parser.SkipObjectResolution, func(pkg, file string, f *ast.File) {
		if f.Name.Name == "main" || strings.HasSuffix(file, "_test.go") {
			return
		}
		if out[pkg] == nil {
			out[pkg] = map[string]bool{}
		}
		for _, name := range names(f) {
			if ast.IsExported(name) && !strings.HasPrefix(name, "Err") && !strings.HasSuffix(name, "Error") {
				out[pkg][name] = true
			}
		}
	})
	return out
}

// names are the types, functions and variables of a file.
func names(f *ast.File) (out []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				out = append(out, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					out = append(out, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						if d.Tok == token.VAR {
							out = append(out, n.Name)
						}
					}
				}
			}
		}
	}
	return out
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
	out := map[string]imports{}
	sources(t, parser.ImportsOnly, func(pkg, file string, f *ast.File) {
		if !tests && strings.HasSuffix(file, "_test.go") {
			return
		}
		if out[pkg] == nil {
			out[pkg] = imports{}
		}
		for _, s := range f.Imports {
			imp, _ := strconv.Unquote(s.Path.Value)
			out[pkg][imp] = file
		}
	})
	return out
}

// sources parses every Go file of the module, those of tests among them.
func sources(t *testing.T, mode parser.Mode, each func(pkg, file string, f *ast.File)) {
	t.Helper()
	root := moduleRoot(t)
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
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, mode)
		if err != nil {
			return err
		}
		file, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		each(filepath.ToSlash(filepath.Dir(file)), file, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
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
