package wasmtest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
)

var cache = sync.OnceValues(func() (wazero.CompilationCache, error) {
	return wazero.NewCompilationCacheWithDir(filepath.Join(os.TempDir(), "elfhost-test-cache"))
})

// Runtime is the compiler's configuration with a cache that test processes
// share: compiling a standard-Go guest takes seconds.
func Runtime(t testing.TB) wazero.RuntimeConfig {
	t.Helper()
	c, err := cache()
	if err != nil {
		t.Fatal(err)
	}
	return wazero.NewRuntimeConfigCompiler().WithCompilationCache(c).WithMemoryLimitPages(1024)
}
