package compile_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/elfhost/elfhost/host/sandbox/compile"
	"github.com/elfhost/elfhost/host/sandbox/internal/wasmtest"
)

// BenchmarkLoad compares loading a standard-Go guest from the cache with
// compiling it first, in the same run.
func BenchmarkLoad(b *testing.B) {
	module, err := metered(b, wasmtest.Go(b))
	if err != nil {
		b.Fatal(err)
	}
	ctx, o := context.Background(), compile.Options{Cache: b.TempDir()}
	t0 := time.Now()
	if _, err := compile.Run(ctx, module, o); err != nil {
		b.Fatal(err)
	}
	first := time.Since(t0)
	var best time.Duration
	for range 7 {
		t0 = time.Now()
		a, err := compile.Run(ctx, module, o)
		if err != nil || !a.Hit {
			b.Fatal(a.Hit, err)
		}
		config, cache, err := a.Config()
		if err != nil {
			b.Fatal(err)
		}
		rt := wazero.NewRuntimeWithConfig(ctx, config)
		if _, err := rt.CompileModule(ctx, a.Module); err != nil {
			b.Fatal(err)
		}
		if d := time.Since(t0); best == 0 || d < best {
			best = d
		}
		rt.Close(ctx)
		cache.Close(ctx)
	}
	ratio, goal, verdict := float64(best)/float64(first), 1.0/45, "ok"
	if ratio > goal {
		verdict = "short"
	}
	fmt.Printf("compile %v, load %v, module of %d bytes\n", first, best, len(module))
	fmt.Printf("figure\tload from the cache/first compile, standard Go\t%.4f\t%.4f\t%s\n", ratio, goal, verdict)
}
