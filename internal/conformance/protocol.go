package conformance

import (
	"encoding/json"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/pdk/golden"
)

// The protocol: the runner writes a request as one line of JSON to the host's
// standard input and reads one line from its standard output. A host that ends,
// or is silent for too long, fails the case and is started anew.

// What a request asks to do.
const (
	doHello  = "hello"  // who are you?
	doLoad   = "load"   // a module, in the place of the one before
	doCall   = "call"   // a tool of it
	doUnload = "unload" // it is done with
)

// Request is what a host is asked.
type Request struct {
	ID int    `json:"id"`
	Do string `json:"do"`

	// Of load.
	Wasm     []byte    `json:"wasm,omitempty"` // base64
	Manifest *Manifest `json:"manifest,omitempty"`

	// Of call.
	Tool   string          `json:"tool,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
	Grants []string        `json:"grants,omitempty"`
	World  *World          `json:"world,omitempty"`
}

// Manifest is what elf.toml would say.
type Manifest struct {
	ABI    string   `json:"abi"`
	Name   string   `json:"name"`
	Needs  []Need   `json:"needs"`
	Tools  []string `json:"tools"` // each takes any object
	Limits Limits   `json:"limits"`
}

// World is all that there is outside of the module.
type World struct {
	Files   map[string]string          `json:"files"` // the workspace, whole
	HTTP    map[string]golden.Response `json:"http"`
	Env     map[string]string          `json:"env"`
	Secrets map[string]string          `json:"secrets"`
	Model   *string                    `json:"model"`
	Tools   map[string]string          `json:"tools"`
}

// Response is what a host answers. Error is for people.
type Response struct {
	ID int `json:"id"`

	ABI  string `json:"abi,omitempty"`  // of hello
	Name string `json:"name,omitempty"` // of hello
	// Lacks names capabilities that the host does not offer: cases that need
	// them are left out.
	Lacks []string `json:"lacks,omitempty"`

	Loaded bool     `json:"loaded,omitempty"` // of load
	Tools  []string `json:"tools,omitempty"`  // of load: what the module offers

	Result *abi.Result       `json:"result,omitempty"` // of call: it answered
	Ended  string            `json:"ended,omitempty"`  // of call: it did not; "trap", "exit", "limit", "abi", "other"
	Files  map[string]string `json:"files,omitempty"`  // of call: the workspace afterwards

	Error string `json:"error,omitempty"`
}
