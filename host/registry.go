package host

import (
	"context"

	"github.com/elfhost/elfhost/abi"
)

// DefaultMaxOutput is what Invoke lets through of a tool's text, in bytes.
const DefaultMaxOutput = 50 << 10

// Registry holds the tools of one session. It is safe for concurrent use.
type Registry struct{}

// Invoke calls a tool: the one door.
func (r *Registry) Invoke(ctx context.Context, c Call) abi.Result {
	return abi.Errorf("There is no tool named %q.", c.Tool)
}
