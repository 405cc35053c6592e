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
)

// patterns are searched in Go's own sources with both engines.
var patterns = [][]string{
	{"TODO"}, {"func main"}, {"ZZnoSuchThing"}, {"e"}, {"^package"}, {"}$"}, {"^$"}, {`\bfunc\b`}, {"-w", "err"}, {"-x", "}"},
	{"-i", "todo"}, {"-i", "todo|fixme"}, {"todo|fixme|xxx|hack"}, {"-i", "mutex"}, {"-S", "http"}, {"-S", "HTTP"},
	{`[0-9]{5,}`}, {`\w+\s+\d{5}`}, {`[A-Z]{10,}`}, {`"[^"]*error[^"]*"`}, {`func \(\w+ \*?\w+\) String\(\) string`},
	{`(foo|bar|baz)qux`}, {`a.*b.*c.*d.*e.*f`}, {`if err := .*; err != nil`}, {`0x[0-9a-f]{8}\b`}, {`//go:build .*windows`},
	{"-F", "a.b"}, {"-F", "[]byte("}, {"-F", `\n`}, {"-F", "-i", "Sync.Mutex"}, {"-e", "--help"}, {"--", "-pre"},
	{"-v", "-g", "*.{go,s}", "a"}, {"-v", "-g", "*.go", "^.{0,200}$"}, {"-c", "return"}, {"--count-matches", "int"}, {"--files-without-match", "-g", "*.{go,s,txt}", "func"},
	{"-l", "unsafe\\.Pointer"}, {"-m", "1", "import"}, {"-o", `[a-z]+Error`}, {"-g", "*_test.go", "Benchmark"}, {"-g", "!*_test.go", "testing"},
	{"-g", "*.{s,h}", "TEXT"}, {"-t", "go", "cgo"}, {"-T", "go", "go"}, {"--hidden", "linguist"}, {"-A1", "-n", "^import"}, {"-B2", "-n", "^}"},
	{"-C1", "-n", "unreachable"}, {"-U", `\{\n\n`}, {"-U", "--multiline-dotall", `/\*.{0,80}\*/`}, {"--iglob", "*README*", "the"},
	{`(a+)+$`}, {`(?i)[aeiou]{4}`}, {`x{3}`}, {`\t{4}return`}, {"-g", "*.go", `[^\x00-\x7F]`}, {`é|ü|ß`}, {"-i", "straße|größe"}, {`\p{Greek}`},
	{`(?:read|write|open)(?:File|Dir)\b`}, {`\.\.\.\)$`}, {"--max-depth", "2", "package"}, {"--trim", "-n", "goto"},
}

var globs = []string{
	"*.go", "**/*.go", "*_test.go", "src/**/*.s", "**/testdata/**", "*.{md,txt}", "src/net/*.go", "src/*/*.go", "**/doc.go", "[A-Z]*",
	"**/[a-c]*_test.go", "src/{net,os}/**/*.go", "**/*.{s,h,c}", "!*.go", "**/x?x*", "**/internal/**/*.go", "*.nosuch", "VERSION", "src/**/z*.go",
	"src/cmd/**", "**/*_{linux,darwin}.go", "*amd64*", "**/go.mod", "src/crypto/**/*_test.go", "doc/**", "lib/**/*", "**/README*", "*.pl", "src/runtime/*.[sh]", "**/a/**",
}

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

func TestSameAsRipgrepInModules(t *testing.T) {
	if testing.Short() {
		t.Skip("short: the module cache is large")
	}
	sameLines(t, modcache(t))
}

func sameLines(t *testing.T, root string) {
	rg := ripgrep(t)
	w := over(t, root, Options{})
	for _, p := range patterns {
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
	for _, g := range globs {
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
