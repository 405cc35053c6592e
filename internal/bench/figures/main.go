// Command figures prints the figures of `make bench`.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/elfhost/elfhost/internal/bench"
)

func main() {
	for _, f := range []func(io.Writer) error{bench.Invoke} {
		if err := f(os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "figures:", err)
			os.Exit(1)
		}
	}
}
