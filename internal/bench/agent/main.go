// Command agent prints the figures of `make bench-agent`.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/elfhost/elfhost/internal/bench"
)

func main() {
	if err := bench.Agent(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}
