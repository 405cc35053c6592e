// Package extism runs plugins made for Extism, and the tools that are built on
// it: mcp.run servlets (which are hyper-mcp's version 1) and hyper-mcp's
// version 2.
//
// It implements extism:host/env on the sandbox's engine. Extism's kernel, a
// second module with a memory of its own, is a block allocator here, made anew
// for each call, so that no call finds what another left. Everything that
// reaches the world is an operation of elf/1: HTTP goes through the broker with
// the call's rights, logs and limits are those of every plugin.
//
// What differs from Extism's own hosts: a plugin's instance never serves two
// calls, so state in its memory ends with the call (variables stay, for the
// session); response headers are always there; requests never follow a
// redirect to where there is no right to go.
package extism

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/vet"
)

// Kind is the contract that a module follows on top of Extism's.
type Kind string

// The kinds.
const (
	Plain   Kind = "Extism plugin"       // each export is a tool
	Servlet Kind = "hyper-mcp v1 plugin" // describe and call: mcp.run servlets, too
	Server  Kind = "hyper-mcp v2 plugin" // list_tools, call_tool and others of MCP
	Lib     Kind = "Extism library"      // its functions serve other modules
	nothing Kind = ""
)

// Names of the modules that plugins import.
const (
	EnvModule  = "extism:host/env"
	UserModule = "extism:host/user"
)

// Defaults of Extism's hosts.
const (
	defaultResponse = 50 << 20
	defaultVars     = 1 << 20
)

// HostCalls is the limit that plugins get which ask for none: sleeping in their
// languages' runtimes takes many calls of the clock.
const HostCalls = 1_000_000

// Options configure one plugin.
type Options struct {
	Kind   Kind
	Config map[string]string // what config_get answers
	// Hosts are patterns such as "*.example.org", as in Extism's allowed_hosts.
	// They narrow what is granted; they give nothing. A "*" allows every host.
	Hosts []string
	// Paths maps guest paths to virtual ones: allowed_paths.
	Paths map[string]string
	// MaxResponse and MaxVars are Extism's limits in bytes; nil is its default.
	MaxResponse, MaxVars *int64
	// Functions are further host functions that the plugin may import, usually
	// in UserModule. Read and Write give them their arguments.
	Functions []sandbox.Func
	// Libraries are the modules that this one may import functions of.
	Libraries []Library
	// Skip are expressions of tool names that a hyper-mcp plugin must not offer.
	Skip []string
	// Secrets are those a hyper-mcp v2 plugin may ask for, as "user@service".
	Secrets []string
}

// plugin is what the calls of one plugin share.
type plugin struct {
	Options
	hosts []string
	skip  func(string) bool
	vars  *vars
}

// New makes the format of a plugin with these options. One Format serves one
// loaded plugin: it keeps the plugin's variables.
func New(o Options) (*sandbox.Format, error) {
	p := &plugin{Options: o, hosts: o.Hosts, vars: newVars(limit(o.MaxVars, defaultVars))}
	for _, h := range o.Hosts {
		if _, err := path.Match(h, "example.org"); err != nil {
			return nil, fmt.Errorf("the host pattern %q: %w", h, err)
		}
	}
	var err error
	if p.skip, err = skipper(o.Skip); err != nil {
		return nil, err
	}
	f := &sandbox.Format{
		Name: "extism", Key: p.key(), Funcs: p.functions(), Check: p.check,
		State: func() any { return new(kernel) }, Init: start, Keep: []string{"_start"},
	}
	for _, l := range o.Libraries {
		f.Links = append(f.Links, sandbox.Link{Name: l.Name, Package: l.Package})
	}
	switch o.Kind {
	case Servlet:
		f.Describe, f.Call = p.describeServlet, p.callServlet
	case Server:
		f.Describe, f.Call = p.listTools, p.callTool
	default:
		f.Call = p.callExport
	}
	return f, nil
}

// key covers what a plugin can read while it starts.
func (p *plugin) key() string {
	b, _ := json.Marshal([]any{p.Kind, p.Config, p.Skip, len(p.Functions)})
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func limit(v *int64, or int64) int64 {
	if v == nil {
		return or
	}
	return *v
}

// Detect says what a module is; false: nothing of Extism's.
func Detect(r *vet.Report) (Kind, bool) {
	imports := false
	for _, s := range r.Imports {
		if s.Module == UserModule && isServerFunc(s.Name) {
			return Server, true
		}
		imports = imports || s.Module == EnvModule || s.Module == UserModule
	}
	switch {
	case isTool(r, "call") && isTool(r, "describe"):
		return Servlet, true
	case isTool(r, "list_tools") && isTool(r, "call_tool"):
		return Server, true
	case imports:
		return Plain, true
	}
	return nothing, false
}

// check holds the exports against the kind.
func (p *plugin) check(r *vet.Report) error {
	switch p.Kind {
	case Servlet:
		if !isTool(r, "call") || !isTool(r, "describe") {
			return errors.New("an mcp.run servlet exports describe and call")
		}
	case Server:
		if !isTool(r, "call_tool") {
			return errors.New("a hyper-mcp plugin with tools exports call_tool")
		}
	case Lib:
		return nil
	default:
		if len(Exports(r)) == 0 {
			return errors.New("the module exports no function that Extism could call")
		}
	}
	return nil
}

// isTool reports whether name is a function that Extism can call: it takes
// nothing and returns a code or nothing.
func isTool(r *vet.Report, name string) bool {
	e, ok := r.Export(name)
	return ok && callable(e)
}

func callable(e vet.Symbol) bool {
	t := e.Type.String()
	return e.Kind == 0 && (t == "() -> (i32)" || t == "() -> ()")
}

// Exports lists what a plain plugin offers: its exports but those of its
// language's runtime. A command that has nothing else offers _start.
func Exports(r *vet.Report) []string {
	var list []string
	for _, e := range r.Exports {
		if !callable(e) || strings.HasPrefix(e.Name, "_") || strings.HasPrefix(e.Name, "asyncify_") ||
			strings.HasPrefix(e.Name, "wasm_instr_") || strings.HasPrefix(e.Name, "hs_") || len(e.Name) > 64 || !plainName(e.Name) {
			continue
		}
		list = append(list, e.Name)
	}
	if len(list) == 0 && isTool(r, "_start") {
		list = append(list, "_start")
	}
	return list
}

func plainName(s string) bool {
	for _, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return s != ""
}
