package kit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/schema"
	"github.com/elfhost/elfhost/pdk/golden"
)

// Finding is one thing that Check has to say.
type Finding struct {
	OK   bool   `json:"ok"`
	What string `json:"what"` // what was checked
	Why  string `json:"why,omitempty"`
}

// Inspect says what a package's module could do at the most.
func Inspect(pkg sandbox.Package) (sandbox.Inspection, error) {
	wasm, err := pkg.Wasm()
	if err != nil {
		return sandbox.Inspection{}, err
	}
	if pkg.Format == nil {
		return sandbox.Inspect(wasm)
	}
	return sandbox.InspectAs(wasm, pkg.Format)
}

// Missing are the capabilities that a module imports and its manifest does not
// ask for. No host loads such a module.
func Missing(pkg sandbox.Package, in sandbox.Inspection) []abi.Capability {
	var out []abi.Capability
	for _, c := range in.Capabilities {
		if !slices.ContainsFunc(pkg.Manifest.Needs, func(n abi.Need) bool { return n.Cap == c }) {
			out = append(out, c)
		}
	}
	return out
}

// check is what the findings are collected in.
type check struct {
	*Bench
	found []Finding
}

func (k *check) say(err error, format string, args ...any) {
	f := Finding{OK: err == nil, What: fmt.Sprintf(format, args...)}
	if err != nil {
		f.Why = err.Error()
	}
	k.found = append(k.found, f)
}

// Check holds a plugin against what hosts and people will: its imports against
// its needs, its declarations against schemas, and in each of its cases that it
// answers what it should, repeats, fails in words when it has no rights, and
// stops when it is cancelled.
func Check(ctx context.Context, b *Bench, in sandbox.Inspection, cases []golden.Case) []Finding {
	k := &check{Bench: b}
	k.say(reasons(b.pkg), "each need has a reason")
	k.say(refused(in), "the module is one that hosts load")
	broken := map[string]bool{}
	for _, d := range b.Plugin.Description().Tools {
		err := declaration(d)
		broken[d.Name] = errors.As(err, new(*unusable))
		k.say(err, "the declaration of %s", d.Name)
	}
	used := b.count(map[abi.Capability]bool{})
	for _, c := range cases {
		if broken[c.Tool] {
			continue
		}
		k.say(b.Run(ctx, c), "the case %s", c.Name)
		if c.Recording != nil {
			continue
		}
		k.say(b.repeats(ctx, c), "the case %s asks and answers the same when it is replayed", c.Name)
		k.say(b.output(ctx, c), "the case %s answers what the tool declares", c.Name)
		b.count(nil) // what follows is no use
		k.say(b.unarmed(ctx, c), "the case %s without rights ends in words", c.Name)
		k.say(b.cancels(ctx, c), "the case %s ends when it is cancelled", c.Name)
		b.count(used)
	}
	k.say(b.unused(in, used, len(cases) > 0), "it asks for what it uses, and for no more")
	if len(cases) == 0 {
		k.say(errors.New("add some to "+golden.Dir+": without them nothing was run"), "it has cases")
	}
	return k.found
}

func refused(in sandbox.Inspection) error {
	if in.Refused != "" {
		return errors.New(in.Refused)
	}
	return nil
}

func reasons(pkg sandbox.Package) error {
	for _, n := range pkg.Manifest.Needs {
		if strings.TrimSpace(n.Reason) == "" {
			return fmt.Errorf("the need of %s has no reason in elf.toml: a person is shown it", n.Cap)
		}
	}
	return nil
}

// unusable is a schema that no call gets past.
type unusable struct {
	which string
	err   error
}

func (e *unusable) Error() string { return fmt.Sprintf("its %s schema: %v", e.which, e.err) }
func (e *unusable) Unwrap() error { return e.err }

func declaration(d abi.ToolDecl) error {
	if _, err := schema.Compile(d.Input); err != nil {
		return &unusable{"input", err}
	}
	if len(d.Output) > 0 {
		if _, err := schema.Compile(d.Output); err != nil {
			return &unusable{"output", err}
		}
	}
	if strings.TrimSpace(d.Description) == "" {
		return errors.New("it has no description: a model will not know when to call it")
	}
	return nil
}

// unused names needs that nothing could use, or that no case uses: a person
// who is asked for too much refuses the rest, too.
func (b *Bench) unused(in sandbox.Inspection, used map[abi.Capability]bool, ran bool) error {
	var never, idle []string
	for _, n := range b.pkg.Manifest.Needs {
		files := n.Cap == abi.FSRead || n.Cap == abi.FSWrite
		switch {
		case n.Cap == abi.ClockFine: // a use leaves no trace
		case files && !in.Files, !files && !slices.Contains(in.Capabilities, n.Cap):
			never = append(never, string(n.Cap))
		case ran && !used[n.Cap]:
			idle = append(idle, string(n.Cap))
		}
	}
	switch {
	case len(never) > 0:
		return fmt.Errorf("the module imports nothing of %s: take the need out of elf.toml", strings.Join(never, ", "))
	case len(idle) > 0:
		return fmt.Errorf("no case uses %s: take the need out of elf.toml, or add a case that shows what it is for", strings.Join(idle, ", "))
	}
	return nil
}

// repeats records a call and replays it.
func (b *Bench) repeats(ctx context.Context, c golden.Case) error {
	var rec sandbox.Recording
	if _, _, err := b.Call(sandbox.Record(ctx, &rec), c); err != nil {
		return err
	}
	if rec.Digest == "" {
		return nil // it was refused before the module saw it
	}
	return b.Plugin.Replay(ctx, &rec)
}

// output holds a structured answer against the schema that was declared for it.
func (b *Bench) output(ctx context.Context, c golden.Case) error {
	t, err := b.tool(c.Tool)
	if err != nil {
		return err
	}
	r, _, err := b.Call(ctx, c)
	if err != nil || r.IsError || len(t.Spec().Output) == 0 {
		return err
	}
	if r.Structured == nil {
		return errors.New("the tool has an output schema, and the answer has no structured content")
	}
	s, err := schema.Compile(t.Spec().Output)
	if err != nil {
		return err
	}
	_, notes, err := s.Check(r.Structured)
	if err == nil && len(notes) > 0 {
		err = errors.New(strings.Join(notes, "; "))
	}
	return err
}

// unarmed runs a case with nothing granted. The tool may do with less, or
// answer with an error; it must not trap, nor say that it did what it could not.
func (b *Bench) unarmed(ctx context.Context, c golden.Case) error {
	with := c.Grants
	if len(with) == 0 {
		return nil
	}
	c.Grants, c.KV = nil, nil
	r, receipt, err := b.Call(ctx, c)
	switch {
	case err != nil:
		return fmt.Errorf("it ended with %w: handle what an operation returns when it is denied", err)
	case r.IsError || len(receipt.Denied) == 0:
		return nil
	}
	if err := c.Compare(r, b.workspace()); err != nil && !c.Error && len(c.Written) > 0 && c.Want != nil && r.Text() == *c.Want {
		return fmt.Errorf("it answers %q, though %s was denied", r.Text(), receipt.Denied[0])
	}
	return nil
}

// stopTime is how long a cancelled call may take to return.
const stopTime = time.Second

// cancelTries is how often a call is cancelled before it counts as one that
// goes on: a busy machine may keep any call from returning for a while.
const cancelTries = 4

// cancels cancels a call before it begins, and in its middle.
func (b *Bench) cancels(ctx context.Context, c golden.Case) error {
	start := time.Now()
	if _, _, err := b.Call(ctx, c); err != nil {
		return err
	}
	for _, after := range []time.Duration{0, min(time.Since(start)/2, 200*time.Millisecond)} {
		late := b.late(ctx, c, after)
		for try := 1; late > stopTime && try < cancelTries; try++ {
			late = b.late(ctx, c, after)
		}
		if late > stopTime {
			return fmt.Errorf("it went on for %v", late.Round(time.Millisecond))
		}
	}
	return nil
}

// late is how long a call goes on that is cancelled after a while.
func (b *Bench) late(ctx context.Context, c golden.Case, after time.Duration) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, after)
	defer cancel()
	start := time.Now()
	_, _, _ = b.Call(ctx, c) // however it ends
	return time.Since(start) - after
}
