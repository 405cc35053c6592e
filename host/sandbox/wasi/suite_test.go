package wasi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	oracle "github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/sandbox/wasi"
)

// program is one run of a command, for both implementations.
type program struct {
	wasm   []byte
	args   []string
	env    []string
	dir    string // shown as "/"
	base   string // shown there: "/ws", or "" for the root with /ws in it
	rights policy.Rights
	conf   func(*wasi.Config)
}

// outcome is what a run leaves.
type outcome struct {
	code     uint32
	out, err string
	fail     error
}

func (o outcome) String() string {
	if o.fail != nil { // the stack says less than the test's own words
		reason, _, _ := strings.Cut(o.fail.Error(), "\n")
		o.fail = errors.New(reason)
	}
	return fmt.Sprintf("exit %d, %v\nstdout: %s\nstderr: %s", o.code, o.fail, o.out, o.err)
}

func all(t testing.TB) policy.Rights {
	t.Helper()
	var list []policy.Grant
	for _, s := range []string{"fs.read /ws/**", "fs.write /ws/**"} {
		g, err := policy.ParseGrant(s)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, g)
	}
	g, err := policy.New("test", list...)
	if err != nil {
		t.Fatal(err)
	}
	return policy.Rights{Grants: g}
}

var cache = wazero.NewCompilationCache()

func newRuntime(ctx context.Context) wazero.Runtime {
	// The interpreter: the programs run for a moment, compiling them would not.
	return wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCompilationCache(cache).WithCloseOnContextDone(true))
}

// ours runs a command on this package.
func ours(t testing.TB, ctx context.Context, p program) (o outcome) {
	t.Helper()
	var out, errs bytes.Buffer
	tree, err := reach.NewTree(reach.Mount{Name: "/ws", Dir: p.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	conf := wasi.Config{Tree: tree, Base: p.base, Rights: p.rights, Args: p.args, Env: p.env, Stdout: &out, Stderr: &errs}
	if p.conf != nil {
		p.conf(&conf)
	}
	s := wasi.New(conf)
	defer s.Close()
	rt := newRuntime(ctx)
	defer rt.Close(ctx)
	b := rt.NewHostModuleBuilder(wasi.ModuleName)
	wasi.Export(b, func(ctx context.Context, mod api.Module, f *wasi.Func, stack []uint64) {
		f.Call(ctx, s, wasi.MemoryOf(mod, nil), stack)
	})
	if _, err := b.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	_, err = rt.InstantiateWithConfig(ctx, p.wasm, wazero.NewModuleConfig())
	return outcome{exitCode(err), out.String(), errs.String(), notExit(err)}
}

// theirs runs it on wazero's.
func theirs(t testing.TB, ctx context.Context, p program) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	rt := newRuntime(ctx)
	defer rt.Close(ctx)
	oracle.MustInstantiate(ctx, rt)
	at := "/"
	if p.base == "" {
		at = "/ws"
	}
	conf := wazero.NewModuleConfig().WithArgs(p.args...).WithStdout(&out).WithStderr(&errs).
		WithFSConfig(wazero.NewFSConfig().WithDirMount(p.dir, at)).WithSysNanosleep().WithSysNanotime().WithSysWalltime()
	for _, e := range p.env {
		k, v, _ := strings.Cut(e, "=")
		conf = conf.WithEnv(k, v)
	}
	_, err := rt.InstantiateWithConfig(ctx, p.wasm, conf)
	return outcome{exitCode(err), out.String(), errs.String(), notExit(err)}
}

func exitCode(err error) uint32 {
	var e *sys.ExitError
	if errors.As(err, &e) {
		return e.ExitCode()
	}
	return 0
}

func notExit(err error) error {
	var e *sys.ExitError
	if errors.As(err, &e) {
		return nil
	}
	return err
}

// stricter are the tests of the suite that cannot pass here: a guest makes no
// links, and descriptor 3 is always open.
var stricter = map[string]string{
	"path_symlink_trailing_slashes": "makes a link", "readlink": "makes a link",
	"symlink_create": "makes a link", "symlink_filestat": "makes a link",
	"sock_shutdown-invalid_fd": "takes descriptor 3 for closed",
	"nofollow_errors":          "makes a link", "path_link": "makes a hard link", "path_exists": "makes a link",
}

// TestSuite runs the preview 1 modules of the WASI test suite: what wazero's
// implementation passes, this one passes. WASI_TESTSUITE names a checkout of
// the branch prod/testsuite-base of github.com/WebAssembly/wasi-testsuite.
func TestSuite(t *testing.T) {
	root := os.Getenv("WASI_TESTSUITE")
	if root == "" {
		t.Skip("WASI_TESTSUITE does not name a checkout of the WASI test suite")
	}
	files, err := filepath.Glob(filepath.Join(root, "tests/*/testsuite/wasm32-wasip1/*.wasm"))
	if err != nil || len(files) == 0 {
		t.Fatal("no modules in ", root, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".wasm")
		t.Run(name, func(t *testing.T) { suiteTest(t, file, name) })
	}
}

type suiteSpec struct {
	Args     []string
	Root     string
	Env      map[string]string
	ExitCode uint32 `json:"exit_code"`
	Stdout   *string
}

func suiteTest(t *testing.T, file, name string) {
	var spec suiteSpec
	if b, err := os.ReadFile(strings.TrimSuffix(file, ".wasm") + ".json"); err == nil {
		if err := json.Unmarshal(b, &spec); err != nil {
			t.Fatal(err)
		}
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	run := func(f func(testing.TB, context.Context, program) outcome) error {
		dir := t.TempDir()
		if spec.Root != "" {
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(filepath.Dir(file), spec.Root))); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		p := program{wasm: wasm, args: append([]string{name}, spec.Args...), dir: dir, base: "/ws", rights: all(t)}
		for _, k := range slices.Sorted(maps.Keys(spec.Env)) {
			p.env = append(p.env, k+"="+spec.Env[k])
		}
		o := f(t, ctx, p)
		if o.fail != nil || o.code != spec.ExitCode || spec.Stdout != nil && o.out != *spec.Stdout {
			return errors.New(o.String())
		}
		return nil
	}
	us, them := run(ours), run(theirs)
	why := stricter[name]
	switch {
	case us != nil && them == nil && why == "":
		t.Errorf("wazero passes, and here: %v", us)
	case us == nil && why != "":
		t.Errorf("it passes, although it %s", why)
	case us != nil && why == "":
		t.Logf("neither passes: %v", us)
	}
}
