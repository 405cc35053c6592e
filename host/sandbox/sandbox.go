// Package sandbox turns the bytes of a plugin, which nobody trusts, into tools.
//
// A module goes through five stages, each a package of its own: vet reads it
// within bounds and refuses what is not acceptable; meter rewrites its code, so
// that it counts its work and can be stopped; image runs its initialisation
// once and keeps the state; compile makes machine code in a child process; pool
// keeps instances that are reset after each call. Nothing is read, compiled or
// started before the first call of a tool.
//
// Each call runs in a sandbox as if it were the first: nothing that a guest
// left in memory, tables, globals or descriptors is there for the next one.
// Rights come with each call, so what a person gives or revokes acts at once.
// The limits on time, memory, host calls and output are always on. Whatever a
// module does, a call ends with a result or an error, and the host goes on.
//
// The contract with modules is docs/abi.md.
package sandbox

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

// Loader loads plugins. Its fields are the brokers that serve guests; a broker
// that is missing makes its operations abi.ErrUnsupported. Set them before the
// first use. It is safe for concurrent use and must not be copied then.
type Loader struct {
	// Dir keeps what is made of a module once: descriptions, images, machine
	// code. Processes may share it. "" keeps nothing.
	Dir string

	Tree   func(host.Caller) *reach.Tree // the files of a caller's session; nil: none
	HTTP   *reach.HTTP                   // with Secrets, if placeholders are to work
	KV     *reach.KV
	Runner *reach.Runner
	Env    func(name string) (string, bool) // nil: os.LookupEnv
	// Model answers elf:model. The right and the budget were checked.
	Model func(ctx context.Context, r policy.Rights, q ModelRequest) (ModelReply, error)
	// Elicit has a person fill in a form for a plugin, which needs no right: the
	// question names it. schema is a plugin's text, and what it may not have is an
	// error. ok is false where the person declines. Nil: nobody is there.
	Elicit func(ctx context.Context, from host.Origin, message string, schema json.RawMessage) (content json.RawMessage, ok bool, err error)
	// Invoke calls a tool for a plugin: the Registry of the caller's session.
	Invoke func(ctx context.Context, c host.Call) abi.Result
	Log    func(LogLine) // must be safe for concurrent use; nil: dropped

	// Compiler is a program whose first argument compile.Verb leads to
	// compile.Child: machine code is made there, so that no module can hurt this
	// process through the compiler. The running program's os.Executable, where
	// its main function does so; "" calls no plugin, it only names tools.
	Compiler string

	// Ceiling bounds what manifests may ask for; a zero field bounds nothing.
	Ceiling abi.Limits
	// Parallel bounds the calls that run at once in all plugins; 0: 32.
	Parallel int

	once  sync.Once
	slots *queue
}

// Package is a plugin as it lies on disk.
type Package struct {
	Manifest abi.Manifest
	// Description is what elf_describe said when the package was built or
	// installed. Nil: the manifest's tools, else the one kept in Loader.Dir,
	// else the module is asked now, in a sandbox without rights.
	Description *abi.Description
	Digest      string // sha256 of the wasm in hex; "" is not checked
	Source      host.Source
	// Format is the contract that the module follows; nil is elf/1.
	Format *Format
	// Draft says that the package is a build whose author waits for its first
	// answer: its calls are interpreted, under the same limits, until its
	// machine code is there.
	Draft bool
	// Wasm reads the module. It is called at the first call of a tool.
	Wasm func() ([]byte, error)
}

// ModelRequest is what a guest asks of the model.
type ModelRequest struct {
	System    string
	Messages  []ModelMessage // alternating, the last from the user
	MaxTokens int64          // 0: the model's default
}

// ModelMessage is one turn: text, and images with those of the user.
type ModelMessage struct {
	Role    string // "user", "assistant"
	Content []abi.Content
}

// ModelReply is the model's answer and what it cost.
type ModelReply struct {
	Text, Model, Stop   string
	TokensIn, TokensOut int64
}

// limits are those of a call under this manifest.
func (l *Loader) limits(m *abi.Manifest) abi.Limits {
	n := abi.DefaultLimits()
	pick(&n.Memory, m.Limits.Memory, l.Ceiling.Memory)
	pick(&n.Time, m.Limits.Time, l.Ceiling.Time)
	pick(&n.Fuel, m.Limits.Fuel, l.Ceiling.Fuel)
	pick(&n.HostCalls, m.Limits.HostCalls, l.Ceiling.HostCalls)
	pick(&n.Output, m.Limits.Output, l.Ceiling.Output)
	pick(&n.LogLines, m.Limits.LogLines, l.Ceiling.LogLines)
	pick(&n.LogLine, m.Limits.LogLine, l.Ceiling.LogLine)
	pick(&n.Requests, m.Limits.Requests, l.Ceiling.Requests)
	pick(&n.BytesIn, m.Limits.BytesIn, l.Ceiling.BytesIn)
	pick(&n.BytesOut, m.Limits.BytesOut, l.Ceiling.BytesOut)
	pick(&n.Parallel, m.Limits.Parallel, l.Ceiling.Parallel)
	return n
}

// pick takes what is asked for, or the default, under the ceiling.
func pick[T ~int | ~int64](v *T, ask, ceiling T) {
	if ask > 0 {
		*v = ask
	}
	if ceiling > 0 && (*v == 0 || *v > ceiling) {
		*v = ceiling
	}
}

// queue is the line for the calls of all plugins.
func (l *Loader) queue() *queue {
	l.once.Do(func() {
		n := l.Parallel
		if n <= 0 {
			n = 32
		}
		l.slots = newQueue(n)
	})
	return l.slots
}
