package agent

import (
	"context"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
)

// Tools is the part of *host.Registry that the loop uses.
type Tools interface {
	All() []host.Tool
	Get(name string) (host.Tool, bool)
	Invoke(ctx context.Context, c host.Call) abi.Result
}
