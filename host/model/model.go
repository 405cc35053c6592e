// Package model is how the host talks to language models: what is asked
// (Request), what streams back (Event), what went wrong (Error), and who can
// be asked (Model, Provider). Each vendor has a package below this one, so
// that a build can leave one out; model/scripted needs no vendor at all.
//
// A provider gets an *http.Client (host/reach makes it) and never dials by
// itself. No error, event or transcript of this package holds a credential.
package model

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/elfhost/elfhost/abi"
)

// Model answers one request at a time with a stream of events. It is safe for
// concurrent use.
//
// The stream ends after a KindStop event, or with an error (an *Error, its
// Event is then to be ignored). Nothing is sent before the sequence is ranged
// over, and leaving the range closes the connection. A sequence serves once.
type Model interface {
	Stream(ctx context.Context, r Request) iter.Seq2[Event, error]
}

// Provider is a vendor, or a server that speaks a vendor's protocol.
type Provider interface {
	// Name is what stands before the slash in "anthropic/claude-sonnet-4-5".
	Name() string
	// Models asks which models this key can reach. A server that has no such
	// list gives an error that matches ErrUnsupported.
	Models(ctx context.Context) ([]Info, error)
	// Open gives the model with this identifier. It reaches for nothing: an
	// unknown identifier is an error of the first Stream.
	Open(id string) (Model, error)
}

// Info describes a model as far as its provider says. Zero means not known.
type Info struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"`
	Window    int64  `json:"window,omitempty"`    // tokens of context, input and output together
	MaxOutput int64  `json:"maxOutput,omitempty"` // tokens of one answer
	TextOnly  bool   `json:"textOnly,omitempty"`  // it takes no images; false: it does, or that is not known
}

// Request is everything that a model is shown for one answer.
type Request struct {
	System   string
	Messages []Message // must alternate calls and their results: see Check
	Tools    []Tool
	// MaxTokens bounds the answer, thinking included. Zero: the provider's default.
	MaxTokens int64
	Effort    Effort
	// Search lets the provider search the web by itself, where it can; where
	// it cannot, the field is ignored.
	Search *Search
	// Schema, if set, is the JSON Schema that the text of the answer must
	// follow, where the provider can hold the model to it.
	Schema json.RawMessage
	// CacheKey names the conversation, so that the provider finds its cached
	// prefix again. System, tools and past messages are marked as cacheable
	// wherever the provider wants marks; NoCache turns that off.
	CacheKey string
	NoCache  bool
}

// Tool is what a model is told of a tool.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"inputSchema"` // JSON Schema of an object
}

// Search configures a provider's own web search.
type Search struct {
	MaxUses int      // of one answer; zero: the provider's default
	Allowed []string // domains; empty: all
	Blocked []string
}

// User makes a message of a person.
func User(content ...abi.Content) Message {
	m := Message{Role: RoleUser}
	for i := range content {
		m.Blocks = append(m.Blocks, Block{Content: &content[i]})
	}
	return m
}
