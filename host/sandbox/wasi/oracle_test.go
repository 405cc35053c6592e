package wasi_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// corpus finds the commands that wazero tests its implementation with, in the
// module cache, and builds the one in Go.
func corpus(t *testing.T) map[string][]byte {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "imports", "wasi_snapshot_preview1", "testdata")
	all := map[string][]byte{}
	for _, name := range []string{"cargo-wasi", "tinygo", "zig-cc", "zig"} {
		b, err := os.ReadFile(filepath.Join(dir, name, "wasi.wasm"))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = b
	}
	wasm := filepath.Join(t.TempDir(), "go.wasm")
	cmd := exec.Command("go", "build", "-o", wasm, filepath.Join(dir, "go", "wasi.go"))
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	if all["go"], err = os.ReadFile(wasm); err != nil {
		t.Fatal(err)
	}
	return all
}

// forGo are the commands that the guest in Go has of its own, and one of files.
var forGo = []string{"ls", "stat", "stdout", "largestdout"}

// TestOracle runs wazero's own test programs on both implementations.
func TestOracle(t *testing.T) {
	guests := corpus(t)
	ls := files(t)
	for name, wasm := range guests {
		for _, args := range [][]string{
			{"ls", "./a-"}, {"ls", "-"}, {"ls", "."}, {"ls", ".", "repeat"}, {"ls", "tons"}, {"stat"}, {"preopen"},
			{"poll", "0", "50"}, {"sleepmillis", "30"}, {"open-rdonly"}, {"open-wronly"},
			{"largestdout"}, {"stdout"}, {"unknown"},
		} {
			if args[0] == "preopen" && name != "zig" || args[0] == "poll" && name != "zig-cc" {
				continue // others do not have it, or ask a terminal
			}
			if name == "go" && !slices.Contains(forGo, args[0]) || name != "go" && strings.HasSuffix(args[0], "stdout") {
				continue
			}
			t.Run(name+"/"+strings.Join(args, " "), func(t *testing.T) {
				p := program{wasm: wasm, args: append([]string{"wasi"}, args...), base: "/ws", rights: all(t)}
				p.dir = ls
				if strings.HasPrefix(args[0], "open") {
					p.dir = t.TempDir()
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				us := ours(t, ctx, p)
				if strings.HasPrefix(args[0], "open") {
					p.dir = t.TempDir()
				}
				them := theirs(t, ctx, p)
				us.out, them.out = sorted(us.out), sorted(them.out)
				if us.String() != them.String() {
					t.Errorf("here: %v\nwazero: %v", us, them)
				}
			})
		}
	}
}

// files makes the folder that the programs list.
func files(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"a-", "tons"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"-", "ab-"}
	for i := range 5000 { // more than one window of a listing
		names = append(names, fmt.Sprintf("tons/%d", i))
	}
	for _, n := range names {
		if err := os.WriteFile(filepath.Join(dir, n), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// sorted makes listings comparable: their order is the file system's.
func sorted(s string) string {
	lines := strings.Split(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
