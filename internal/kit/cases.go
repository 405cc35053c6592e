package kit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/schema"
	"github.com/elfhost/elfhost/pdk/golden"
)

// Bench is a plugin on the bench of its author: loaded, with nobody's rights
// but those of a case, in a world made of the case's answers. It runs one case
// at a time.
type Bench struct {
	Plugin *sandbox.Plugin
	// Log is given what the module logs; nil: it is dropped. Set it between calls.
	Log func(sandbox.LogLine)
	// Keep lets what the plugin stores live on from call to call.
	Keep bool

	pkg   sandbox.Package
	tree  *reach.Tree
	world *world
	kv    *reach.KV
	dir   string // holds ws and kv
	mu    sync.Mutex
	used  map[abi.Capability]bool // what calls asked for; nil: nobody counts
	seen  func(policy.Use, error) // nil: nobody looks
}

// Open loads a package for its cases. compiler is the program that compiles
// modules, cache a folder that it keeps code in. Close the bench in the end.
func Open(ctx context.Context, pkg sandbox.Package, compiler, cache string) (*Bench, error) {
	dir, err := os.MkdirTemp("", "elfhost-case-")
	if err != nil {
		return nil, err
	}
	b := &Bench{dir: dir, pkg: pkg, kv: &reach.KV{Dir: filepath.Join(dir, "kv")}}
	fail := func(err error) (*Bench, error) { return nil, errors.Join(err, b.Close(ctx)) }
	if err := os.Mkdir(b.workspace(), 0o755); err != nil {
		return fail(err)
	}
	if b.tree, err = reach.NewTree(reach.Mount{Name: "/ws", Dir: b.workspace()}); err != nil {
		return fail(err)
	}
	if b.world, err = newWorld(); err != nil {
		return fail(err)
	}
	l := &sandbox.Loader{
		Dir: cache, Compiler: compiler, Tree: func(host.Caller) *reach.Tree { return b.tree },
		Env: b.world.env, HTTP: b.world.http, KV: b.kv, Model: b.world.model, Invoke: b.world.invoke,
		Log: func(x sandbox.LogLine) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.Log != nil {
				b.Log(x)
			}
		},
	}
	if b.Plugin, err = l.Load(ctx, pkg); err != nil {
		return fail(err)
	}
	return b, nil
}

// Close gives everything back.
func (b *Bench) Close(ctx context.Context) error {
	var errs []error
	if b.Plugin != nil {
		errs = append(errs, b.Plugin.Close(ctx))
	}
	if b.world != nil {
		errs = append(errs, b.world.close())
	}
	if b.tree != nil {
		errs = append(errs, b.tree.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(b.dir))...)
}

func (b *Bench) workspace() string { return filepath.Join(b.dir, "ws") }

// Call runs a case's call. Arguments that do not fit the tool's schema are an
// error of the tool, as they are for who calls it.
func (b *Bench) Call(ctx context.Context, c golden.Case) (r abi.Result, receipt abi.Receipt, err error) {
	rights, err := grants(c.Grants)
	rights.Note = b.note
	if err == nil {
		err = b.lay(ctx, &c, rights)
	}
	if err != nil {
		return r, receipt, err
	}
	t, err := b.tool(c.Tool)
	if err != nil {
		return r, receipt, err
	}
	args, err := fit(t.Spec().Input, c.Args)
	var no *schema.Invalid
	switch {
	case errors.As(err, &no):
		return abi.Errorf("The tool %s was not called, because its arguments do not fit.\n%s", c.Tool, err), receipt, nil
	case err != nil:
		return r, receipt, err
	}
	r, err = t.Call(ctx, host.Call{ID: c.Name, Tool: c.Tool, Args: args, Rights: rights, Receipt: func(x abi.Receipt) { receipt = x }})
	return r, receipt, err
}

// note is told of each use that the call asks for.
func (b *Bench) note(u policy.Use, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen != nil {
		b.seen(u, err)
	}
	if b.used != nil {
		b.used[u.Cap] = true
	}
}

// count notes from now on in used what calls ask for; nil stops it.
func (b *Bench) count(used map[abi.Capability]bool) map[abi.Capability]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = used
	return used
}

func (b *Bench) tool(name string) (host.Tool, error) {
	for _, t := range b.Plugin.Tools() {
		if t.Spec().Name == name {
			return t, nil
		}
	}
	return nil, fmt.Errorf("the plugin has no tool %q", name)
}

func fit(input, args json.RawMessage) (json.RawMessage, error) {
	s, err := schema.Compile(input)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	args, _, err = s.Check(args)
	return args, err
}

// lay makes the world that of the case, and nothing else.
func (b *Bench) lay(ctx context.Context, c *golden.Case, rights policy.Rights) error {
	b.world.enter(c)
	old, err := os.ReadDir(b.workspace())
	if err != nil {
		return err
	}
	for _, e := range old {
		if err := os.RemoveAll(filepath.Join(b.workspace(), e.Name())); err != nil {
			return err
		}
	}
	if err := c.Lay(b.workspace()); err != nil {
		return err
	}
	id := b.pkg.Manifest.Name
	if p := b.pkg.Manifest.Publisher; p != "" {
		id = p + "/" + id
	}
	if !b.Keep {
		if err := b.kv.Forget(id); err != nil {
			return err
		}
	}
	for k, v := range c.KV {
		if err := b.kv.Set(ctx, rights, id, k, []byte(v)); err != nil {
			return fmt.Errorf("the case's kv: %w", err)
		}
	}
	return nil
}

// maxFiles and maxFile bound what Files reads.
const (
	maxFiles = 1000
	maxFile  = 1 << 20
)

// Files reads the workspace as the last call left it.
func (b *Bench) Files() (map[string]string, error) {
	out := map[string]string{}
	dir := os.DirFS(b.workspace())
	return out, fs.WalkDir(dir, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		if st, err := e.Info(); err != nil || st.Size() > maxFile || len(out) == maxFiles {
			return fmt.Errorf("the workspace holds too much: %w", err)
		}
		text, err := fs.ReadFile(dir, name)
		out[name] = string(text)
		return err
	})
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
func (b *Bench) Run(ctx context.Context, c golden.Case) error {
	if c.Recording != nil {
		return b.replay(ctx, c.Recording)
	}
	r, _, err := b.Call(ctx, c)
	if err == nil {
		err = c.Compare(r, b.workspace())
	}
	if err != nil {
		return errors.Join(err, b.world.unanswered())
	}
	return nil
}

// replay runs a recording, which is of one build of the module: a replay holds
// every host call against it, addresses in the guest's memory included.
func (b *Bench) replay(ctx context.Context, raw json.RawMessage) error {
	var rec sandbox.Recording
	if err := json.Unmarshal(raw, &rec); err != nil {
		return err
	}
	if rec.Digest != b.pkg.Digest {
		return errors.New("it is a recording of another build of the module: record the call again, or write a case of what it answered")
	}
	return b.Plugin.Replay(ctx, &rec)
}
