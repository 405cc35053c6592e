package search

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/builtins/internal/textfile"
	"github.com/elfhost/elfhost/internal/queries"
)

func goroot(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("no go command here")
	}
	root := strings.TrimSpace(string(out))
	if _, err := os.Stat(filepath.Join(root, "src", "fmt")); err != nil {
		t.Skip("GOROOT has no sources here")
	}
	return root
}

func ripgrep(t testing.TB) string {
	t.Helper()
	name, err := exec.LookPath("rg")
	if err != nil {
		t.Skip("ripgrep is not installed: there is nothing to compare with")
	}
	return name
}

// theirs runs ripgrep and gives its lines, sorted.
func theirs(t *testing.T, rg, dir string, args ...string) []string {
	t.Helper()
	cmd := exec.Command(rg, append([]string{"--no-config", "--no-require-git", "--color=never", "--no-messages"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	var failed *exec.ExitError
	if err != nil && (!errors.As(err, &failed) || failed.ExitCode() > 1) {
		t.Fatalf("rg %q: %v", args, err)
	}
	return lines(string(out))
}

func lines(text string) []string {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return nil
	}
	out := strings.Split(text, "\n")
	slices.Sort(out)
	return out
}

// modcache is the tree of the modules that this one is built from: other
// people's code, with ignore files, links and encodings of its own.
func modcache(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Skip("no go command here")
	}
	root := strings.TrimSpace(string(out))
	if _, err := os.Stat(filepath.Join(root, "github.com")); err != nil {
		t.Skip("there is no module cache here")
	}
	return root
}

// TestSameAsRipgrep compares which files match, and how many lines of each.
func TestSameAsRipgrep(t *testing.T) { sameLines(t, filepath.Join(goroot(t), "src")) }

// The content of the whole cache is searched with ELFHOST_LONG_TESTS set (give
// go test a -timeout of 30m); otherwise that of one large part of it.
func TestSameAsRipgrepInModules(t *testing.T) {
	root := modcache(t)
	if os.Getenv("ELFHOST_LONG_TESTS") == "" {
		root = filepath.Join(root, "golang.org")
	}
	sameLines(t, root)
}

func sameLines(t *testing.T, root string) {
	rg := ripgrep(t)
	w := over(t, root, Options{})
	for _, p := range queries.Patterns() {
		t.Run(strings.Join(p, " "), func(t *testing.T) {
			mode := []string{"-c"}
			for _, arg := range p {
				switch arg {
				case "-l", "--files-without-match", "--count-matches", "-c":
					mode = nil
				case "-U", "-o": // counted in other ways
					mode = []string{"-l"}
				}
			}
			all := append(mode, p...)
			want := theirs(t, rg, root, append(ascii(all), ".")...)
			for i := range want {
				want[i] = strings.TrimPrefix(want[i], "./")
			}
			got := w.ours(t, all)
			compare(t, got, want, func(s string) bool { return readOtherwise(root, s) })
		})
	}
}

// ascii gives ripgrep the classes of RE2: its own are Unicode's.
func ascii(args []string) []string {
	out := slices.Clone(args)
	for i := range out {
		for _, c := range []string{`\w`, `\d`, `\s`} {
			out[i] = strings.ReplaceAll(out[i], c, "(?-u:"+c+")")
		}
	}
	return out
}

// readOtherwise reports a line about a file that both read differently: one in UTF-16 without a mark, which ripgrep takes for
// binary, and one with bytes that are not UTF-8, which no dot of ripgrep's
// matches. Grep reads the first as Read does, and a dot matches any byte.
func readOtherwise(root, line string) bool {
	name := line
	if i := strings.LastIndexByte(line, ':'); i > 0 {
		name = line[:i]
	}
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return false
	}
	v := textfile.Sniff(data, len(data) <= textfile.HeadSize)
	if i := bytes.IndexByte(data, 0); i >= textfile.HeadSize {
		return true // ripgrep gives up there, Grep has begun
	}
	return v.Wide() && !v.BOM || v.Encoding == textfile.Legacy || !v.Wide() && v.Name == "UTF-8 with invalid bytes"
}

func TestSameFilesAsRipgrep(t *testing.T) { sameFiles(t, goroot(t)) }

func TestSameFilesAsRipgrepInModules(t *testing.T) {
	if testing.Short() {
		t.Skip("short: the module cache is large")
	}
	sameFiles(t, modcache(t))
}

func sameFiles(t *testing.T, root string) {
	rg := ripgrep(t)
	w := over(t, root, Options{})
	for _, g := range queries.Globs() {
		t.Run(g, func(t *testing.T) {
			compare(t, w.ours(t, []string{"--files", "-g", g}), theirs(t, rg, root, "--files", "-g", g), func(string) bool { return false })
		})
	}
}

// ours runs the same without the bound on what is shown.
func (w *workspace) ours(t *testing.T, args []string) []string {
	t.Helper()
	c, err := parseRG(args)
	if err != nil {
		t.Fatal(err)
	}
	r := w.room()
	found, err := c.run(t.Context(), r, readRights(t), "/ws", []string{"/ws"})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := found.list(layout{display: func(n string) string { return strings.TrimPrefix(n, "/ws/") }}, c.mode)
	return lines(text)
}

func compare(t *testing.T, got, want []string, but func(string) bool) {
	t.Helper()
	for _, s := range want {
		if _, ok := slices.BinarySearch(got, s); !ok && !but(s) {
			t.Errorf("rg alone has %q", s)
		}
	}
	for _, s := range got {
		if _, ok := slices.BinarySearch(want, s); !ok && !but(s) {
			t.Errorf("rg does not have %q", s)
		}
	}
}
