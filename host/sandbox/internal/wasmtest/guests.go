package wasmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Guests are the real modules that the engine is tested and measured with.
// Each is built once a process; where its compiler is absent the test skips.
var (
	goGuest = sync.OnceValues(func() ([]byte, error) {
		return build([]string{"GOOS=wasip1", "GOARCH=wasm"}, "go", "build", "-trimpath", "-buildmode=c-shared",
			"-ldflags=-s -w", "-o", "OUT", "./testdata/kernels")
	})
	cGuest = sync.OnceValues(func() ([]byte, error) {
		return build(nil, "clang", "--target=wasm32-wasi", "-O2", "-mexec-model=reactor", "-mbulk-memory",
			"-o", "OUT", "testdata/kernels.c")
	})
)

// Go is testdata/kernels built with standard Go for wasip1.
func Go(t testing.TB) []byte { return guest(t, "standard Go", goGuest) }

// C is testdata/kernels.c built with clang and wasi-libc.
func C(t testing.TB) []byte { return guest(t, "clang with wasi-libc", cGuest) }

func guest(t testing.TB, compiler string, get func() ([]byte, error)) []byte {
	t.Helper()
	b, err := get()
	if err != nil {
		t.Skipf("%s cannot build the guest here: %v", compiler, err)
	}
	return b
}

func build(env []string, name string, args ...string) ([]byte, error) {
	// The go command knows where the sources are even where paths are trimmed.
	here, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/elfhost/elfhost/host/sandbox/internal/wasmtest").Output()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "elf-guest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "guest.wasm")
	for i := range args {
		if args[i] == "OUT" {
			args[i] = out
		}
	}
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = strings.TrimSpace(string(here)), append(os.Environ(), env...), os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}
