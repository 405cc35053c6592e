// Command mcp prints the figures of `make bench-mcp`. Its first argument is a
// built elfhost; with "peer" or "hang" it is a server to measure against.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/elfhost/elfhost/internal/bench"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-mcp:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("it takes the path of elfhost")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch os.Args[1] {
	case "peer":
		return bench.MCPPeer()
	case "hang":
		<-ctx.Done()
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	repo, err := os.Getwd()
	if err != nil {
		return err
	}
	return bench.MCP(ctx, os.Stdout, os.Args[1], self, repo)
}
