// Command hub prints the figures of `make bench-hub`.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/elfhost/elfhost/internal/bench"
)

func main() {
	if err := bench.Hub(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "hub:", err)
		os.Exit(1)
	}
}
