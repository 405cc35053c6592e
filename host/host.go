// Package host is the one door to tools: the Registry finds, coerces, checks,
// asks, calls and clips; the Gate decides who must be asked.
package host

import (
	"context"
	"encoding/json"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// Tool is anything a model may call. Call is entered by Registry.Invoke only,
// with arguments that were coerced and validated. It may return a Go error;
// Invoke turns it into a Result with IsError. It must be safe for concurrent use.
type Tool interface {
	Spec() Spec
	Call(ctx context.Context, c Call) (abi.Result, error)
}

// Spec describes a tool. Input and Output are JSON Schemas; Output may be nil.
type Spec struct {
	Name        string
	Title       string
	Description string
	Input       json.RawMessage
	Output      json.RawMessage
	Origin      Origin
	Kind        Kind
	MaxOutput   int  // bytes before Invoke clips; 0: DefaultMaxOutput; negative: never (the tool bounds itself)
	Parallel    bool // may run beside other calls of the same turn
	Defer       bool // not offered until asked for; reserved for tool search
}

// Origin says where a tool comes from. Safety is decided by name AND origin.
type Origin struct {
	Source Source
	Name   string // plugin, MCP server, skill…; empty for builtins
	Digest string // of a plugin's wasm
}

// Source is the kind of an Origin.
type Source string

// The sources of tools.
const (
	Builtin Source = "builtin" // native, part of the binary
	Bundled Source = "bundled" // a Wasm plugin that ships with the binary, pinned by digest
	Plugin  Source = "plugin"  // a Wasm plugin that a person installed
	MCP     Source = "mcp"     // a tool of an MCP server
)

// Kind says what a tool does, for front ends, annotations and plan mode. It
// never changes who is asked.
type Kind string

// The kinds of tools.
const (
	KindRead    Kind = "read"
	KindSearch  Kind = "search"
	KindEdit    Kind = "edit"
	KindExecute Kind = "execute"
	KindFetch   Kind = "fetch"
	KindThink   Kind = "think"
	KindOther   Kind = "other"
)

// Caller says who makes a call.
type Caller struct {
	Session string
	Agent   string // name of the agent or sub-agent
	Plugin  string // set when a plugin calls through tool.call
	Server  string // set when an MCP server asks for something itself
	Person  bool   // a person gave the call, no model
	Step    int
	Depth   int // of plugin-to-tool calls; bounded by Invoke
	// Asked tells apart who is asked about the call: calls that would ask the
	// same join one question only if it is equal.
	Asked string
}

// Call is one call of a tool, with the rights it carries.
type Call struct {
	ID     string
	Tool   string
	Args   json.RawMessage
	Caller Caller
	// Rights of the call. A caller may leave them zero: Invoke binds what the
	// gate gives; what a caller does set can only narrow that.
	Rights policy.Rights
	// Most is how many bytes of text the caller has room for, where that is less
	// than the tool's own limit; the whole is kept as ever. 0: it does not say.
	Most     int
	Progress func(abi.Progress) // may be nil
	Receipt  func(abi.Receipt)  // may be nil; called before Invoke returns, unless Later is set
	Denied   func(Denied)       // may be nil; each refusal once, before Invoke returns
	// Later, if not nil, is given what a tool has left to do when its answer is
	// known: to clean its sandbox, to report its receipt. Whoever sets it runs each
	// function once, soon, on any goroutine: the answer can go first. It must be
	// safe for concurrent use, after Invoke has returned too.
	Later func(func())

	clock *clock // set by Invoke
}

// Waited says how long this call has waited for a person so far, a wait that
// is going on included. A tool with a deadline of its own leaves it out: when
// its timer fires, it sets the timer anew by what Waited has grown. It is zero
// for a Call that did not come from Invoke.
func (c Call) Waited() time.Duration { return c.clock.waited() }

// Needer is implemented by tools of plugins: what the manifest asks for. A
// call of such a tool gets needs, policy and what persons granted, met. A tool
// that acts in this process but does not implement it gets the session's own
// rights if it is Builtin, and none otherwise.
type Needer interface{ Needs() policy.Grants }

// Denied is one refusal inside a call, for the person who watches: the model
// is told the same without the command.
type Denied struct {
	Call   Call
	Origin Origin
	Use    *policy.Use // nil: the call itself was refused
	Layer  string      // who forbids it: "grants", "system policy", "mode", "person", "nobody"
	Where  string      // "file:line" of the rule, if a file did
	Why    string      // one clause
	Final  bool        // no answer of a person can allow it
	Allow  string      // the narrowest command that would allow it; empty when none can
}

// Interruptible is a Tool that knows of its next call whether it will return
// by itself, soon after its context ends. Invoke waits for such a call without
// leaving it behind.
type Interruptible interface{ Interruptible() bool }
