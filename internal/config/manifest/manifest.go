// Package manifest reads elf.toml: what a plugin is, needs and offers.
package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/config/strict"
)

// manifestFile is elf.toml.
type manifestFile struct {
	ABI         string     `toml:"abi"`
	Name        string     `toml:"name"`
	Version     string     `toml:"version"`
	Publisher   string     `toml:"publisher"`
	Description string     `toml:"description"`
	License     string     `toml:"license"`
	Homepage    string     `toml:"homepage"`
	Needs       []needFile `toml:"needs"`
	Tools       []toolFile `toml:"tools"`
	Limits      Limits     `toml:"limits"`
}

type needFile struct {
	Cap    string `toml:"cap"`
	Scope  any    `toml:"scope"`
	Reason string `toml:"reason"`
}

type toolFile struct {
	Name        string `toml:"name"`
	Description string `toml:"description"`
	Input       any    `toml:"input"`
	Output      any    `toml:"output" doc:"of the reply"`
	ReadOnly    bool   `toml:"read_only"`

	// Of a WASI command.
	Args  []any             `toml:"args"`
	Stdin string            `toml:"stdin"`
	Files map[string]string `toml:"files"`
	Env   map[string]string `toml:"env"`
	Exit  []uint32          `toml:"exit_ok"`
}

// Limits is [limits] of a manifest and of a policy.
type Limits struct {
	Memory    strict.Size     `toml:"memory" doc:"linear memory of a call"`
	Time      strict.Duration `toml:"time" doc:"of a call"`
	Fuel      int64           `toml:"fuel" doc:"metered work of a call"`
	HostCalls int             `toml:"host_calls" doc:"host functions that a call may use"`
	Output    strict.Size     `toml:"output" doc:"of the reply"`
	LogLines  int             `toml:"log_lines" doc:"lines that a call may log"`
	LogLine   strict.Size     `toml:"log_line" doc:"of one line"`
	Requests  int             `toml:"requests" doc:"requests of a call"`
	BytesIn   strict.Size     `toml:"bytes_in" doc:"of all responses of a call"`
	BytesOut  strict.Size     `toml:"bytes_out" doc:"of all requests of a call"`
	Parallel  int             `toml:"parallel" doc:"calls at once"`
}

// Checked gives the limits; ls says where they stand in the file, for errors.
func (l Limits) Checked(file string, ls strict.Lines) (abi.Limits, error) {
	for key, n := range map[string]int64{"fuel": l.Fuel, "host_calls": int64(l.HostCalls), "log_lines": int64(l.LogLines), "requests": int64(l.Requests), "parallel": int64(l.Parallel)} {
		if n < 0 {
			return abi.Limits{}, ls.Fail(file, "limits."+key, "limits.%s is negative", key)
		}
	}
	if l.LogLine.Bytes > 1<<20 {
		return abi.Limits{}, ls.Fail(file, "limits.log_line", "limits.log_line is over 1MiB")
	}
	return abi.Limits{
		Memory: l.Memory.Bytes, Time: l.Time.Duration, Fuel: l.Fuel, HostCalls: l.HostCalls, Output: l.Output.Bytes,
		LogLines: l.LogLines, LogLine: int(l.LogLine.Bytes), Requests: l.Requests, BytesIn: l.BytesIn.Bytes, BytesOut: l.BytesOut.Bytes, Parallel: l.Parallel,
	}, nil
}

// Bounds of a manifest, so that the screen that shows it stays readable.
const (
	maxNeeds  = 64
	maxScopes = 64
	maxTools  = 256
	maxText   = 4 << 10
)

// ReadFile is Read for a file on disk.
func ReadFile(name string) (*abi.Manifest, error) {
	b, err := strict.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return Read(b, name)
}

// Read reads elf.toml. file names it in errors.
func Read(b []byte, file string) (*abi.Manifest, error) {
	var f manifestFile
	ls, err := strict.Decode(b, file, &f)
	if err != nil {
		return nil, err
	}
	m := &abi.Manifest{ABI: f.ABI, Name: f.Name, Version: f.Version, Publisher: f.Publisher, Description: f.Description, License: f.License, Homepage: f.Homepage}
	if err := checkHead(m, file, ls); err != nil {
		return nil, err
	}
	if len(f.Needs) > maxNeeds || len(f.Tools) > maxTools {
		return nil, ls.Fail(file, "", "it has more than %d needs or %d tools", maxNeeds, maxTools)
	}
	for i, n := range f.Needs {
		need, err := n.need(file, fmt.Sprintf("needs[%d]", i), ls)
		if err != nil {
			return nil, err
		}
		m.Needs = append(m.Needs, need)
	}
	for i, t := range f.Tools {
		tool, err := t.tool(file, fmt.Sprintf("tools[%d]", i), ls)
		if err != nil {
			return nil, err
		}
		m.Tools = append(m.Tools, tool)
	}
	if m.Limits, err = f.Limits.Checked(file, ls); err != nil {
		return nil, err
	}
	return m, nil
}

func checkHead(m *abi.Manifest, file string, ls strict.Lines) error {
	switch {
	case m.ABI == "":
		return ls.Fail(file, "", "abi is missing: write abi = %q", abi.Version)
	case m.ABI != abi.Version:
		return ls.Fail(file, "abi", "this host speaks %s, not %q", abi.Version, m.ABI)
	case m.Name == "":
		return ls.Fail(file, "", "name is missing")
	case m.Version == "":
		return ls.Fail(file, "", "version is missing")
	}
	if err := abi.CheckName(m.Name); err != nil {
		return ls.Fail(file, "name", "%w", err)
	}
	for _, t := range []struct {
		key, text string
		most      int
	}{{"version", m.Version, 64}, {"publisher", m.Publisher, 128}, {"license", m.License, 128}, {"homepage", m.Homepage, 1024}, {"description", m.Description, maxText}} {
		if len(t.text) > t.most {
			return ls.Fail(file, t.key, "%s is longer than %d bytes", t.key, t.most)
		}
		if strings.ContainsFunc(t.text, func(r rune) bool {
			return unicode.IsControl(r) && !(t.key == "description" && (r == '\n' || r == '\t'))
		}) {
			return ls.Fail(file, t.key, "%s contains control characters", t.key)
		}
	}
	if strings.ContainsAny(m.Version, " /\\") {
		return ls.Fail(file, "version", "version %q is not a version such as 1.2.0", m.Version)
	}
	return nil
}

func (n needFile) need(file, key string, ls strict.Lines) (abi.Need, error) {
	need := abi.Need{Cap: abi.Capability(n.Cap), Reason: n.Reason}
	switch {
	case n.Cap == "":
		return need, ls.Fail(file, key, "a need has no cap")
	case !need.Cap.Known():
		return need, ls.Fail(file, key+".cap", "unknown capability %q", n.Cap)
	case len(n.Reason) > maxText || strings.ContainsFunc(n.Reason, unicode.IsControl):
		return need, ls.Fail(file, key+".reason", "the reason is too long or contains control characters")
	}
	scope, err := strict.Texts(n.Scope)
	if err != nil {
		return need, ls.Fail(file, key+".scope", "scope: %w", err)
	}
	if len(scope) > maxScopes {
		return need, ls.Fail(file, key+".scope", "a need has at most %d scopes", maxScopes)
	}
	need.Scope = scope
	if _, err := policy.FromNeeds([]abi.Need{need}); err != nil {
		return need, ls.Fail(file, scopeKey(need, key, ls), "%w", err)
	}
	return need, nil
}

// scopeKey finds the scope that is wrong.
func scopeKey(n abi.Need, key string, ls strict.Lines) string {
	for i, s := range n.Scope {
		k := fmt.Sprintf("%s.scope[%d]", key, i)
		if _, err := policy.FromNeeds([]abi.Need{{Cap: n.Cap, Scope: []string{s}}}); err != nil && ls.Has(k) {
			return k
		}
	}
	if k := key + ".scope"; ls.Has(k) {
		return k
	}
	return key
}

func (t toolFile) tool(file, key string, ls strict.Lines) (abi.ToolDecl, error) {
	d := abi.ToolDecl{Name: t.Name, Description: t.Description, ReadOnly: t.ReadOnly}
	if t.Name == "" || len(t.Name) > 64 || strings.ContainsFunc(t.Name, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	}) {
		return d, ls.Fail(file, key, "tool name %q: 1 to 64 letters, digits, _ and -", t.Name)
	}
	var err error
	if d.Input, err = schema(t.Input); err != nil {
		return d, ls.Fail(file, key+".input", "input of tool %s: %w", t.Name, err)
	}
	if d.Input == nil {
		d.Input = json.RawMessage(`{"type":"object"}`)
	}
	if d.Output, err = schema(t.Output); err != nil {
		return d, ls.Fail(file, key+".output", "output of tool %s: %w", t.Name, err)
	}
	if d.Program, err = t.program(); err != nil {
		return d, ls.Fail(file, key+".args", "args of tool %s: %w", t.Name, err)
	}
	return d, nil
}

// program reads how a WASI command is run; nil when nothing says so. An item
// of args is a text, or a list of texts that are left out together.
func (t toolFile) program() (*abi.Program, error) {
	if t.Args == nil && t.Stdin == "" && len(t.Files) == 0 && len(t.Env) == 0 && len(t.Exit) == 0 {
		return nil, nil
	}
	p := &abi.Program{Stdin: t.Stdin, Files: t.Files, Env: t.Env, Exit: t.Exit}
	for i, a := range t.Args {
		if s, ok := a.(string); ok {
			a = []any{s}
		}
		group, err := strict.Texts(a)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
		p.Args = append(p.Args, group)
	}
	return p, nil
}

// schema reads a JSON Schema given as a table or as JSON text.
func schema(v any) (json.RawMessage, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		var o map[string]json.RawMessage
		if err := json.Unmarshal([]byte(v), &o); err != nil {
			return nil, fmt.Errorf("it is not a JSON object: %w", err)
		}
		return json.RawMessage(v), nil
	case map[string]any:
		b, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("it cannot be written as JSON: %w", err)
		}
		return b, nil
	}
	return nil, fmt.Errorf("it is neither a table nor JSON text")
}

// NeedsHash is a digest of what a manifest asks for. Order, and reasons, do
// not count.
func NeedsHash(needs []abi.Need) string {
	var all []string
	for _, n := range needs {
		scope := slices.Clone(n.Scope)
		slices.Sort(scope)
		b, _ := json.Marshal(append([]string{string(n.Cap)}, slices.Compact(scope)...)) // strings always marshal
		all = append(all, string(b))
	}
	slices.Sort(all)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(all), "\n")))
	return "sha256:" + hex.EncodeToString(sum[:])
}
