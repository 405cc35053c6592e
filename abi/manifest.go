package abi

import (
	"encoding/json"
	"time"
)

// Manifest is elf.toml: who made a plugin and what it asks for. It asks; it
// never gives.
type Manifest struct {
	ABI         string     `json:"abi"`
	Name        string     `json:"name"` // lower-case letters, digits and '-', see CheckName
	Version     string     `json:"version"`
	Publisher   string     `json:"publisher,omitempty"`
	Description string     `json:"description,omitempty"`
	License     string     `json:"license,omitempty"`
	Homepage    string     `json:"homepage,omitempty"`
	Tools       []ToolDecl `json:"tools,omitempty"` // usually empty: elf_describe gives them
	Needs       []Need     `json:"needs,omitempty"`
	Limits      Limits     `json:"limits,omitzero"`
}

// Need is one capability that a manifest asks for, with the reason a person is shown.
type Need struct {
	Cap    Capability `json:"cap"`
	Scope  []string   `json:"scope,omitempty"`
	Reason string     `json:"reason,omitempty"`
}

// ToolDecl is a tool as elf_describe or a manifest declares it.
type ToolDecl struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema"`            // JSON Schema of an object
	Output      json.RawMessage `json:"outputSchema,omitempty"` // JSON Schema of Result.Structured
	ReadOnly    bool            `json:"readOnly,omitempty"`     // a hint; it never changes who is asked
	Program     *Program        `json:"program,omitempty"`      // of a WASI command, in a manifest only
}

// Program says how the parameters of a tool become a run of a WASI command. In
// its texts "{name}" stands for a parameter: a string as it is, anything else
// as JSON; "{{" is a brace.
type Program struct {
	// Args are the arguments after the program's name, in groups. A group is
	// left out when a parameter that it names is absent or null. Beside "{name}",
	// "{name...}" alone is an argument for each item of an array, and "{?name}"
	// alone is none: it leaves the group out when the parameter is false, too.
	Args  [][]string        `json:"args,omitempty"`
	Stdin string            `json:"stdin,omitempty"`
	Files map[string]string `json:"files,omitempty"` // absolute name → content, for reading
	Env   map[string]string `json:"env,omitempty"`   // fixed; no parameters
	Exit  []uint32          `json:"exit,omitempty"`  // codes beside 0 that are no error
}

// Description is what elf_describe replies.
type Description struct {
	ABI   string     `json:"abi"`
	Tools []ToolDecl `json:"tools"`
}

// Limits bound one call. A zero field means the default of DefaultLimits. A
// manifest may ask for more; the policy is the ceiling.
type Limits struct {
	Memory    int64         `json:"memory,omitempty"`    // bytes of linear memory
	Time      time.Duration `json:"time,omitempty"`      // of one call, waiting for a person excluded
	Fuel      int64         `json:"fuel,omitempty"`      // units of metered work; zero: the time is the bound
	HostCalls int           `json:"hostCalls,omitempty"` // in one call
	Output    int64         `json:"output,omitempty"`    // bytes of the reply
	LogLines  int           `json:"logLines,omitempty"`
	LogLine   int           `json:"logLine,omitempty"` // bytes
	Requests  int           `json:"requests,omitempty"`
	BytesIn   int64         `json:"bytesIn,omitempty"`  // of all responses of a call, after decoding
	BytesOut  int64         `json:"bytesOut,omitempty"` // of all request bodies of a call
	Parallel  int           `json:"parallel,omitempty"` // calls at once per plugin
}

// DefaultLimits are in force where a manifest asks for nothing else.
func DefaultLimits() Limits {
	return Limits{
		Memory: 64 << 20, Time: 10 * time.Second, HostCalls: 10_000, Output: 1 << 20,
		LogLines: 1_000, LogLine: 4 << 10, Requests: 100, BytesIn: 10 << 20, BytesOut: 1 << 20, Parallel: 4,
	}
}
