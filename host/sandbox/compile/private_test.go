//go:build unix

package compile_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/elfhost/elfhost/host/sandbox/compile"
)

// TestSharedCacheIsRefused: nobody's code is run but this user's.
func TestSharedCacheIsRefused(t *testing.T) {
	for name, share := range map[string]func(dir string) error{
		"others may write": func(dir string) error { return os.Chmod(dir, 0o702) },
		"a group may":      func(dir string) error { return os.Chmod(dir, 0o770) },
		"another's": func(dir string) error {
			if os.Geteuid() != 0 {
				return errors.ErrUnsupported
			}
			return os.Chown(dir, 12345, 12345)
		},
	} {
		dir, module := filepath.Join(t.TempDir(), "cache"), add(t)
		a, err := compile.Run(t.Context(), module, compile.Options{Cache: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := share(dir); errors.Is(err, errors.ErrUnsupported) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if _, err := compile.Find(a.Key, dir); !errors.Is(err, compile.ErrShared) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := compile.Run(t.Context(), module, compile.Options{Cache: dir}); !errors.Is(err, compile.ErrShared) {
			t.Errorf("%s: compiling into it: %v", name, err)
		}
	}
}

// TestFullDisk: what cannot be written is not the module's fault. The limit on
// the child's files stands for the disk.
func TestFullDisk(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("no such limit here")
	}
	dir := t.TempDir()
	_, err := compile.Run(t.Context(), add(t), compile.Options{Cache: dir, Limits: compile.Limits{Output: 100}})
	if !errors.Is(err, compile.ErrLimit) || !strings.Contains(err.Error(), "machine code") {
		t.Errorf("%v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("something was left in the cache: %v", entries)
	}
}

// TestPrunedMeanwhile: an entry that goes while it is loaded is one to be made
// again, whenever it goes.
func TestPrunedMeanwhile(t *testing.T) {
	for _, late := range []bool{false, true} {
		dir, module := t.TempDir(), add(t)
		a, err := compile.Run(t.Context(), module, compile.Options{Cache: dir})
		if err != nil {
			t.Fatal(err)
		}
		prune := func() {
			if p, err := compile.Prune(dir, -1, 0); err != nil || p.Removed != 1 {
				t.Fatalf("%+v %v", p, err)
			}
		}
		if !late {
			prune()
		}
		config, cache, err := a.Config()
		if !late {
			if !errors.Is(err, os.ErrNotExist) {
				t.Errorf("before the runtime: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		prune()
		rt := wazero.NewRuntimeWithConfig(t.Context(), config)
		_, err = rt.CompileModule(t.Context(), a.Module)
		if err == nil { // the runtime compiled it itself, without bodies
			err = a.Loaded()
		}
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("before the runtime reads: %v", err)
		}
		rt.Close(t.Context())
		cache.Close(t.Context())
	}
}
