package kit

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// Check holds a plugin against what hosts and people will: its imports against
// its needs, its schemas, and in each of its cases that it repeats, replays and
// stops when it is cancelled.
func Check(ctx context.Context, b *Bench, pkg sandbox.Package, in sandbox.Inspection, cases []golden.Case) []Finding {
	var out []Finding
	say := func(err error, what string) {
		f := Finding{OK: err == nil, What: what}
		if err != nil {
			f.Why = err.Error()
		}
		out = append(out, f)
	}
	say(needs(pkg, in), "it asks for what it can use, and for no more")
	for _, d := range b.Plugin.Description().Tools {
		_, err := schema.Compile(d.Input)
		if err == nil && len(d.Output) > 0 {
			_, err = schema.Compile(d.Output)
		}
		if err == nil && d.Description == "" {
			err = errors.New("it has no description: a model will not know when to call it")
		}
		say(err, fmt.Sprintf("the declaration of %s", d.Name))
	}
	for _, c := range cases {
		say(b.Run(ctx, c), "the case "+c.Name)
		if c.Recording == nil {
			say(b.repeats(ctx, c), "the case "+c.Name+" answers the same when it is replayed")
			say(b.cancels(ctx, c), "the case "+c.Name+" ends when it is cancelled")
		}
	}
	if len(cases) == 0 {
		say(errors.New("add some to "+golden.Dir), "it has cases")
	}
	return out
}

// needs compares the manifest with the module. Imports outside the needs do
// not load at all; a need that nothing could use makes people refuse the rest.
func needs(pkg sandbox.Package, in sandbox.Inspection) error {
	if in.Refused != "" {
		return errors.New(in.Refused)
	}
	var unused []abi.Capability
	for _, n := range pkg.Manifest.Needs {
		switch n.Cap {
		case abi.ClockFine:
		case abi.FSRead, abi.FSWrite:
			if !in.Files {
				unused = append(unused, n.Cap)
			}
		default:
			if !slices.Contains(in.Capabilities, n.Cap) {
				unused = append(unused, n.Cap)
			}
		}
		if n.Reason == "" {
			return fmt.Errorf("the need of %s has no reason: a person is shown it", n.Cap)
		}
	}
	if len(unused) > 0 {
		return fmt.Errorf("the module imports nothing of %v: take the needs out of elf.toml", unused)
	}
	return nil
}

// repeats records a call and replays it.
func (b *Bench) repeats(ctx context.Context, c golden.Case) error {
	var rec sandbox.Recording
	if _, _, err := b.Call(sandbox.Record(ctx, &rec), c); err != nil {
		return err
	}
	return b.Plugin.Replay(ctx, &rec)
}

// cancelTime is how long a cancelled call may take to return.
const cancelTime = time.Second

func (b *Bench) cancels(ctx context.Context, c golden.Case) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	start := time.Now()
	_, _, err := b.Call(ctx, c)
	switch took := time.Since(start); {
	case took > cancelTime:
		return fmt.Errorf("it took %v", took.Round(time.Millisecond))
	case err == nil:
		return errors.New("it went on and answered")
	}
	return nil
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
