package outline

import (
	"context"
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// symbolsOf parses with the worker, without the tool around it.
func (d *desk) symbolsOf(file string, src []byte) []Symbol {
	d.Helper()
	_, parse := d.parser(file)
	if parse == nil {
		d.Skipf("nothing parses %s here", file)
	}
	r, err := parse(d.Context(), src)
	if err != nil {
		d.Fatalf("%s: %v", file, err)
	}
	return r.Symbols
}

// TestGoRecall: every top-level name that go/ast knows is in the outline, under
// its kind.
func TestGoRecall(t *testing.T) {
	needNative(t)
	d := newDesk(t, Options{})
	files, total, missing := 0, 0, 0
	for _, pkg := range []string{"fmt", "net/http", "go/types", "reflect", "runtime", "strings", "encoding/json", "cmd/compile/internal/ssa"} {
		list, _ := filepath.Glob(filepath.Join(goEnv("GOROOT"), "src", pkg, "*.go"))
		for _, f := range list {
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if len(src) > 1<<20 || strings.Contains(string(src), "//go:build ignore") {
				continue
			}
			files++
			have := map[string]bool{}
			for _, s := range d.symbolsOf(f, src) {
				have[s.Label+" "+s.Name] = true
			}
			for _, want := range goNames(t, f, src) {
				total++
				if !have[want] {
					t.Errorf("%s: %q is missing", f, want)
					missing++
				}
			}
		}
	}
	if files < 100 {
		t.Skipf("only %d files of the standard library are here", files)
	}
	recall("go-ast", total-missing, total, 1)
}

func goNames(t *testing.T, file string, src []byte) (names []string) {
	t.Helper()
	f, err := goparser.ParseFile(token.NewFileSet(), file, src, goparser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			label := "function "
			if d.Recv != nil {
				label = "method "
			}
			names = append(names, label+d.Name.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, "type "+s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names = append(names, d.Tok.String()+" "+n.Name)
					}
				}
			}
		}
	}
	return names
}

// corpora are files that others wrote, and the kinds of ctags that outlines have too.
var corpora = []struct {
	lang, kinds string
	roots       []string
	exts        []string
	as          string // the extension under which it is parsed; "": its own
}{
	{"Go", "fcvtsi", []string{"$GOROOT/src/net", "$GOROOT/src/crypto"}, []string{".go"}, ""},
	{"Python", "cf", []string{"/usr/lib/python3"}, []string{".py"}, ""},
	{"TypeScript", "cgfian", []string{"$GOMODCACHE/github.com/sigstore", "$GOMODCACHE/golang.org/x"}, []string{".ts"}, ""},
	{"C", "fsugt", []string{"$GOMODCACHE/github.com/smacker", "$GOMODCACHE/github.com/tree-sitter", "$GOMODCACHE/kernel.org"}, []string{".c", ".h"}, ""},
	{"C++", "cfsugtn", []string{"/usr/include/llvm-14/llvm/IR", "/usr/include/llvm-14/llvm/ADT", "/usr/include/llvm-14/llvm/Support"}, []string{".h"}, ".hpp"},
	{"Kotlin", "cioT", []string{"testdata"}, []string{".kt"}, ""},
}

// TestCtagsRecall: of the top-level names that universal-ctags finds, at least
// 99 in 100 are in the outline.
func TestCtagsRecall(t *testing.T) {
	if out, err := exec.Command("ctags", "--version").Output(); err != nil || !strings.Contains(string(out), "Universal Ctags") {
		t.Skip("universal-ctags is not installed")
	}
	needNative(t)
	d := newDesk(t, Options{Packs: optionalPacks(t)})
	for _, c := range corpora {
		t.Run(c.lang, func(t *testing.T) {
			if _, err := embedded("kotlin"); c.lang == "Kotlin" && err != nil {
				t.Skip("modern Kotlin needs its grammar pack, which this build lacks: make grammars")
			}
			want, found := 0, 0
			var missing []string
			for _, f := range corpusFiles(c.roots, c.exts) {
				src, err := os.ReadFile(f)
				if err != nil {
					continue
				}
				have := map[string]bool{}
				for _, s := range d.symbolsOf(f+c.as, src) {
					have[bare(s.Name)] = true
				}
				for _, name := range ctags(t, c.lang, c.kinds, f) {
					want++
					if have[bare(name)] {
						found++
					} else {
						missing = append(missing, filepath.Base(f)+":"+name)
					}
				}
			}
			if want < 10 {
				t.Skipf("there are only %d names to compare here", want)
			}
			t.Logf("%d of %d names", found, want)
			recall("ctags."+c.lang, found, want, 0.99)
			if float64(found) < 0.99*float64(want) {
				t.Errorf("%d of %d names; missing: %v", found, want, missing[:min(len(missing), 40)])
			}
		})
	}
}

// recall prints a figure for make bench-tools.
func recall(name string, found, want int, goal float64) {
	share, word := float64(found)/float64(want), "ok"
	if share < goal {
		word = "short"
	}
	fmt.Printf("figure\toutline.recall.%s\t%.4f\t>=%g\t%s\n", name, share, goal, word)
}

// optionalPacks are those of the build, none where it has none.
func optionalPacks(t *testing.T) *Packs {
	p := &Packs{Cache: filepath.Join(os.TempDir(), "elfhost-test-grammars"), Compiler: os.Args[0]}
	t.Cleanup(func() { p.Close() })
	return p
}

// bare is a name without its qualifiers and template arguments.
func bare(n string) string {
	if i := strings.LastIndex(n, "::"); i >= 0 {
		n = n[i+2:]
	}
	return strings.ReplaceAll(n, " ", "")
}

func corpusFiles(roots, exts []string) (files []string) {
	cache, root := goEnv("GOMODCACHE"), goEnv("GOROOT")
	for _, r := range roots {
		r = strings.NewReplacer("$GOROOT", root, "$GOMODCACHE", cache).Replace(r)
		_ = filepath.WalkDir(r, func(p string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !slices.Contains(exts, filepath.Ext(p)) || len(files) >= 150 {
				return nil
			}
			// Tables of other grammars' parsers are data, not code.
			if info, err := e.Info(); err == nil && info.Size() < 256<<10 && !strings.Contains(p, "testdata/fuzz") && filepath.Base(p) != "scanner.cc" {
				files = append(files, p)
			}
			return nil
		})
	}
	return files
}

// ctags lists the top-level names of a file.
func ctags(t *testing.T, lang, kinds, file string) (names []string) {
	t.Helper()
	out, err := exec.Command("ctags", "-f", "-", "--sort=no", "--fields=ks", "--language-force="+lang, "--kinds-"+lang+"="+kinds, file).Output()
	if err != nil {
		t.Fatalf("ctags %s: %v", file, err)
	}
	for l := range strings.Lines(string(out)) {
		cols := strings.Split(strings.TrimSpace(l), "\t")
		if len(cols) < 4 || strings.HasPrefix(cols[0], "!") || strings.HasPrefix(cols[0], "__anon") || strings.Count(l, ":") > 0 && scoped(cols) {
			continue
		}
		names = append(names, cols[0])
	}
	return names
}

// scoped reports whether a tag lies inside another.
func scoped(cols []string) bool {
	for _, c := range cols[3:] {
		for _, k := range []string{"class:", "struct:", "union:", "enum:", "namespace:", "function:", "interface:", "method:", "member:", "object:", "typedef:"} {
			if strings.HasPrefix(c, k) {
				return true
			}
		}
	}
	return false
}

// goEnv asks the Go command; "" where there is none.
func goEnv(name string) string {
	out, err := exec.CommandContext(context.Background(), "go", "env", name).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
