package compile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// A husk is a module whose functions have the same types and no bodies. The
// runtime takes a module's code from its cache by the digest of the module's
// bytes, and looks at bodies only to validate them, which is most of the time
// of a load and was done when the module was compiled. So the code of a module
// is filed under the name of its husk, and the host loads that. What else the
// code relies on (types, imports, memories, tables, globals, segments) is the
// same in both. A husk that were compiled itself would trap at every call:
// [Artifact.Loaded] makes sure that it was not.
func husk(module []byte) ([]byte, error) {
	m, err := wasmbin.Parse(module)
	if err != nil {
		return nil, err
	}
	n := m.Count(wasmbin.CodeSection)
	if n == 0 {
		return module, nil
	}
	const body = "\x03\x00\x00\x0b" // three bytes: no locals, unreachable, end
	h := *m
	h.Set(wasmbin.CodeSection, n, []byte(strings.Repeat(body, int(n))))
	return h.Encode(), nil
}

// compileInto makes the code of module in dir, under the name of its husk.
func compileInto(ctx context.Context, dir string, module []byte) error {
	code, err := compileOne(ctx, dir, module)
	if err != nil {
		return err
	}
	h, err := husk(module)
	if err != nil || bytes.Equal(h, module) {
		return err
	}
	other := filepath.Join(dir, "husk")
	if err := os.Mkdir(other, 0o700); err != nil {
		return err
	}
	name, err := compileOne(ctx, other, h)
	if err != nil {
		return err
	}
	if err := os.Rename(code, filepath.Join(filepath.Dir(code), filepath.Base(name))); err != nil {
		return err
	}
	return os.RemoveAll(other)
}

// rejected is what the runtime says of a module.
type rejected struct{ error }

// compileOne compiles into an empty folder and gives the one file made there.
func compileOne(ctx context.Context, dir string, module []byte) (string, error) {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return "", err
	}
	rt := wazero.NewRuntimeWithConfig(ctx, compiler().WithCompilationCache(cache))
	// The code is the same however many work on it.
	ctx = experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0))
	if _, err := rt.CompileModule(ctx, module); err != nil {
		if file := (*fs.PathError)(nil); errors.As(err, &file) { // a full disk is not the module's fault
			return "", fmt.Errorf("writing the machine code: %w", err)
		}
		return "", &rejected{err}
	}
	return onlyFile(dir)
}

// onlyFile finds the one file of an entry, its checksum excepted.
func onlyFile(dir string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("%w: it holds %d files", errDamaged, len(found))
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// errNotUsed is an entry that the runtime did not take.
var errNotUsed = fmt.Errorf("%w: the compiled code was not used", os.ErrNotExist)

// Loaded says, after the runtime has compiled Module, whether it took the code
// of this entry. After an error, which is os.ErrNotExist, the compiled module
// must not be called.
func (a *Artifact) Loaded() error {
	if a.dir == "" {
		return nil
	}
	name, err := onlyFile(a.dir)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotUsed, err)
	}
	now, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotUsed, err)
	}
	if a.code == nil || !os.SameFile(a.code, now) || a.code.Size() != now.Size() || !a.code.ModTime().Equal(now.ModTime()) {
		return errNotUsed
	}
	return nil
}
