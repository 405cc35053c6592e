package kit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/sandbox"
)

// CasesDir holds a project's golden cases, one JSON file each.
const CasesDir = "testdata/cases"

// Case is one call and what must come of it. A file that has "events" is a
// recording of `elfhost call --record` instead, and is replayed: the module
// must ask the same things of the host and answer the same.
type Case struct {
	Tool   string            `json:"tool"`
	Args   json.RawMessage   `json:"args"`
	Grants []string          `json:"grants"` // "fs.read /ws/**"; the network is never there
	Files  map[string]string `json:"files"`  // of the workspace
	// Want is the whole text, Contains a part of it, JSON the structured answer.
	Want     *string         `json:"want"`
	Contains string          `json:"contains"`
	JSON     json.RawMessage `json:"json"`
	Error    bool            `json:"error"` // the answer is an error

	Name      string             `json:"-"`
	Recording *sandbox.Recording `json:"-"`
}

// maxCase bounds a file; a recording holds what the module read.
const maxCase = 64 << 20

// Cases reads a project's cases.
func Cases(dir string) ([]Case, error) {
	names, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(CasesDir), "*.json"))
	if err != nil {
		return nil, err
	}
	var out []Case
	for _, name := range names {
		if st, err := os.Stat(name); err != nil || st.Size() > maxCase {
			return nil, fmt.Errorf("the case %q is over %d bytes or cannot be read", name, maxCase)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		c, err := parseCase(b)
		if err != nil {
			return nil, fmt.Errorf("the case %q: %w", name, err)
		}
		c.Name = strings.TrimSuffix(filepath.Base(name), ".json")
		out = append(out, c)
	}
	return out, nil
}

func parseCase(b []byte) (c Case, err error) {
	var head struct {
		Events json.RawMessage `json:"events"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return c, err
	}
	if head.Events != nil {
		c.Recording = new(sandbox.Recording)
		return c, json.Unmarshal(b, c.Recording)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, err
	}
	if c.Tool == "" || c.Want == nil && c.Contains == "" && c.JSON == nil && !c.Error {
		return c, errors.New(`a case names a "tool", and "want", "contains", "json" or "error"`)
	}
	return c, nil
}

// Bench is a plugin on the bench of its author: loaded, with nobody's rights
// but those of a case.
type Bench struct {
	Plugin *sandbox.Plugin
	tree   *reach.Tree
	dir    string
}

// Open loads a package for its cases. compiler is the program that compiles
// modules, cache a folder that it keeps code in. Close the bench in the end.
func Open(ctx context.Context, pkg sandbox.Package, compiler, cache string) (*Bench, error) {
	dir, err := os.MkdirTemp("", "elfhost-case-")
	if err != nil {
		return nil, err
	}
	b := &Bench{dir: dir}
	if b.tree, err = reach.NewTree(reach.Mount{Name: "/ws", Dir: dir}); err != nil {
		return nil, errors.Join(err, b.Close(ctx))
	}
	l := &sandbox.Loader{
		Dir: cache, Compiler: compiler, Tree: func(host.Caller) *reach.Tree { return b.tree },
		Env: func(string) (string, bool) { return "", false },
	}
	if b.Plugin, err = l.Load(ctx, pkg); err != nil {
		return nil, errors.Join(err, b.Close(ctx))
	}
	return b, nil
}

// Close gives everything back.
func (b *Bench) Close(ctx context.Context) error {
	var errs []error
	if b.Plugin != nil {
		errs = append(errs, b.Plugin.Close(ctx))
	}
	if b.tree != nil {
		errs = append(errs, b.tree.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(b.dir))...)
}

// Call runs a case's call.
func (b *Bench) Call(ctx context.Context, c Case) (r abi.Result, receipt abi.Receipt, err error) {
	if err := b.workspace(c.Files); err != nil {
		return r, receipt, err
	}
	rights, err := grants(c.Grants)
	if err != nil {
		return r, receipt, err
	}
	for _, t := range b.Plugin.Tools() {
		if t.Spec().Name == c.Tool {
			r, err = t.Call(ctx, host.Call{ID: c.Name, Tool: c.Tool, Args: c.Args, Rights: rights, Receipt: func(x abi.Receipt) { receipt = x }})
			return r, receipt, err
		}
	}
	return r, receipt, fmt.Errorf("the plugin has no tool %q", c.Tool)
}

// workspace lays a case's files out, and nothing else.
func (b *Bench) workspace(files map[string]string) error {
	old, err := os.ReadDir(b.dir)
	if err != nil {
		return err
	}
	for _, e := range old {
		if err := os.RemoveAll(filepath.Join(b.dir, e.Name())); err != nil {
			return err
		}
	}
	for name, text := range files {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("the file %q lies outside the workspace", name)
		}
		full := filepath.Join(b.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func grants(list []string) (policy.Rights, error) {
	var gs []policy.Grant
	for _, s := range list {
		g, err := policy.ParseGrant(s)
		if err != nil {
			return policy.Rights{}, err
		}
		gs = append(gs, g)
	}
	g, err := policy.New("the case", gs...)
	return policy.Rights{Grants: g}, err
}

// Run runs a case and says how its outcome differs; nil when it does not.
func (b *Bench) Run(ctx context.Context, c Case) error {
	if c.Recording != nil {
		return b.Plugin.Replay(ctx, c.Recording)
	}
	r, _, err := b.Call(ctx, c)
	if err != nil {
		return err
	}
	return c.compare(r)
}

func (c Case) compare(r abi.Result) error {
	text := r.Text()
	switch {
	case r.IsError != c.Error && c.Error:
		return fmt.Errorf("it answers %q, and an error is wanted", text)
	case r.IsError != c.Error:
		return fmt.Errorf("it answers with the error %q", text)
	case c.Want != nil && text != *c.Want:
		return fmt.Errorf("it answers %q, want %q", text, *c.Want)
	case !strings.Contains(text, c.Contains):
		return fmt.Errorf("it answers %q, want something with %q", text, c.Contains)
	case c.JSON != nil && !sameJSON(r.Structured, c.JSON):
		return fmt.Errorf("it answers %s, want %s", r.Structured, c.JSON)
	}
	return nil
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, err1 := json.Marshal(x)
	q, err2 := json.Marshal(y)
	return err1 == nil && err2 == nil && bytes.Equal(p, q)
}
