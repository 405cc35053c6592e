// Package compile turns vetted, metered modules into native code, in a child
// process, and keeps the result on disk.
//
// It guarantees: the host's own process never runs the compiler on a plugin's
// bytes. A child does, with an empty environment, bounded memory, processor
// time and wall clock, and, on Linux where the kernel can, without any file
// but its output directory, without network and without starting programs; it
// is killed at its limit, and on Linux with its parent. An entry of the cache appears
// whole or not at all, belongs to exactly one module, engine version, platform
// and set of processor features, and its code is compared with its checksum at
// each load; a damaged entry is compiled again. Processes may share a cache.
//
// Why what is loaded is what a child wrote: the child's folder gets its name
// when the child has ended, and lies, with its checksum, in a folder where only
// this user can write ([Private]). The checksum is against damage: half-written
// files, disks that forget. Who can write there can also write the checksum, and
// is this user. Between the check and the runtime's own reading nobody else can
// come, therefore; and a runtime that finds something else than was there before
// it began is noticed by [Artifact.Loaded].
//
// The host loads what was compiled through [Artifact.Config] and
// [Artifact.Module], which compiles nothing.
//
//	a, err := compile.Run(ctx, module, compile.Options{Cache: dir})
//	config, cache, err := a.Config()
//	defer cache.Close(ctx)          // after the runtime
//	rt := wazero.NewRuntimeWithConfig(ctx, config)
//	code, err := rt.CompileModule(ctx, a.Module)
//	err = a.Loaded()
//
// The program must call [Child] when its first argument is [Verb], before it
// does anything else:
//
//	if len(os.Args) > 1 && os.Args[1] == compile.Verb {
//		os.Exit(compile.Child(os.Args[2:], os.Stdin, os.Stderr))
//	}
package compile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"golang.org/x/sys/cpu"
)

// Limits of one compilation. A zero field means the default.
type Limits struct {
	Memory int64         // bytes of address space; 3 GiB: a standard-Go guest of 8.5 MB takes 1.1 GB, and the Go runtime reserves more than it uses
	CPU    time.Duration // 60 s: the same guest takes 7 s
	Wall   time.Duration // 10 min: CPU bounds the work, and on a busy machine it may take that long to get it
	Output int64         // bytes of native code; 512 MiB: the same guest gives 30 MB
}

func (l Limits) withDefaults() Limits {
	def := Limits{Memory: 3 << 30, CPU: 60 * time.Second, Wall: 10 * time.Minute, Output: 512 << 20}
	if l.Memory <= 0 {
		l.Memory = def.Memory
	}
	if l.CPU <= 0 {
		l.CPU = def.CPU
	}
	if l.Wall <= 0 {
		l.Wall = def.Wall
	}
	if l.Output <= 0 {
		l.Output = def.Output
	}
	return l
}

// Options of Run.
type Options struct {
	Cache  string // folder; it is created. Only its owner may be able to write there
	Limits Limits
	// Self is the program whose first argument Verb leads to Child. Empty:
	// the running program.
	Self string
}

// Errors of Run; the error wraps one of them or the context's cause.
var (
	// ErrRejected: the module is not valid. The message is the runtime's.
	ErrRejected = errors.New("the module is not valid WebAssembly")
	// ErrLimit: the child reached a limit and was killed.
	ErrLimit = errors.New("compiling the module took more than is allowed")
	// ErrChild: the child could not run, or died for another reason.
	ErrChild = errors.New("the compiler process failed")
	// ErrShared: others can write to the cache, and what lies there is run.
	ErrShared = errors.New("the folder of compiled code is not this user's alone")
)

// Artifact is an entry of the cache.
type Artifact struct {
	Key    string
	Hit    bool   // it was there before
	Module []byte // what the runtime is to compile, which finds the code by it; nil after Find
	dir    string // empty where the engine interprets
	code   os.FileInfo
	// checked is set while Run's own look at the entry has not been used.
	checked atomic.Bool
}

// Find gives what an earlier Run made, by its key; the caller has kept its
// Module. The error is os.ErrNotExist when there is nothing (any more), or
// nothing sound, and for a key that no module has: it need not be trusted. It is
// ErrShared for a folder that must not be trusted.
func Find(key, cache string) (*Artifact, error) {
	a := &Artifact{Key: key, Hit: true}
	if !native() {
		return a, nil
	}
	if !isKey(key) {
		return nil, fmt.Errorf("%w: %q is no key of compiled code", os.ErrNotExist, key)
	}
	if err := Private(cache); err != nil {
		return nil, err
	}
	a.dir = filepath.Join(cache, key)
	if err := verify(a.dir); err != nil {
		return nil, fmt.Errorf("%w: compiled code %s: %v", os.ErrNotExist, key, err)
	}
	a.checked.Store(true)
	now := time.Now()
	_ = os.Chtimes(a.dir, now, now) // for Prune; a read-only cache still works
	return a, nil
}

// Run gives the compiled form of module, from the cache or from a child. Of
// the processes that want the same, one compiles.
func Run(ctx context.Context, module []byte, o Options) (*Artifact, error) {
	a := &Artifact{Key: Key(module), Module: module}
	if !native() {
		return a, nil
	}
	h, err := husk(module)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRejected, err)
	}
	if a, err := Find(a.Key, o.Cache); err == nil {
		a.Module = h
		return a, nil
	}
	if err := os.MkdirAll(o.Cache, 0o700); err != nil {
		return nil, fmt.Errorf("creating the compilation cache: %w", err)
	}
	if err := Private(o.Cache); err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, filepath.Join(o.Cache, a.Key+lockSuffix))
	if err != nil {
		return nil, fmt.Errorf("locking a cache entry: %w", err)
	}
	defer unlock()
	if a, err := Find(a.Key, o.Cache); err == nil { // made while we waited
		a.Module = h
		return a, nil
	}
	a.Module, a.dir = h, filepath.Join(o.Cache, a.Key)
	if err := os.RemoveAll(a.dir); err != nil { // it is damaged
		return nil, fmt.Errorf("removing a damaged cache entry: %w", err)
	}
	tmp, err := os.MkdirTemp(o.Cache, tmpPrefix)
	if err != nil {
		return nil, fmt.Errorf("creating a cache entry: %w", err)
	}
	defer os.RemoveAll(tmp)
	if err := spawn(ctx, module, tmp, o); err != nil {
		return nil, fmt.Errorf("compiling a module of %d bytes: %w", len(module), err)
	}
	if err := publish(tmp, a.dir); err != nil {
		return nil, err
	}
	a.checked.Store(true)
	return a, nil
}

// Interpreted is an artifact without machine code: its Config is that of the
// interpreter, and nothing is compiled.
func Interpreted(module []byte) *Artifact { return &Artifact{Module: module} }

// Config gives a runtime configuration that finds the artifact, and the cache
// that it uses, which is closed after the runtime. Memory and other limits may
// be set on it; features and termination checks may not. The first call after
// Run relies on Run's check of the entry, later ones check again. The error is
// os.ErrNotExist when the entry is gone or damaged: another process prunes.
func (a *Artifact) Config() (wazero.RuntimeConfig, wazero.CompilationCache, error) {
	if a.dir == "" {
		return interpreter(), wazero.NewCompilationCache(), nil
	}
	if !a.checked.Swap(false) { // Run has just done so
		if err := verify(a.dir); err != nil {
			return nil, nil, gone(err)
		}
	}
	name, err := onlyFile(a.dir)
	if err == nil {
		a.code, err = os.Stat(name)
	}
	if err != nil {
		return nil, nil, gone(err)
	}
	cache, err := wazero.NewCompilationCacheWithDir(a.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("loading compiled code: %w", err)
	}
	return compiler().WithCompilationCache(cache), cache, nil
}

// gone says of an entry that was there that it can be made again.
func gone(err error) error {
	return fmt.Errorf("loading compiled code: %w: %v", os.ErrNotExist, err)
}

// compiler is the one configuration of host and child: it is part of the key
// under which the runtime files its code.
func compiler() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2)
}

func interpreter() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2)
}

// native reports whether the runtime has a compiler for this platform.
func native() bool {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return false
	}
	switch runtime.GOOS {
	case "linux", "darwin", "windows", "freebsd", "netbsd":
		return runtime.GOARCH != "amd64" || cpu.X86.HasSSE41
	}
	return false
}

// Key names a module's entry: its digest with the engine's version, the
// platform and the processor's features, which the code depends on.
func Key(module []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "elfhost code 3\n%s\n%s/%s\n%+v\n%+v\n", engineVersion(), runtime.GOOS, runtime.GOARCH, cpu.X86, cpu.ARM64)
	h.Write(module)
	return hex.EncodeToString(h.Sum(nil))
}

// engineVersion is wazero's version in this binary.
func engineVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, d := range info.Deps {
		if d.Path == "github.com/tetratelabs/wazero" {
			for d.Replace != nil {
				d = d.Replace
			}
			return d.Version + " " + d.Sum
		}
	}
	return "unknown"
}
