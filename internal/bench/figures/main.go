// Command figures prints the figures of `make bench`.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/elfhost/elfhost/internal/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, f := range []func(context.Context, io.Writer) error{
		func(_ context.Context, w io.Writer) error { return bench.Invoke(w) }, bench.Start,
	} {
		if err := f(ctx, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "figures:", err)
			os.Exit(1)
		}
	}
}
