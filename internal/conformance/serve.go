package conformance

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/kit"
	"github.com/elfhost/elfhost/pdk/golden"
)

// Own is this host, for the suite: the sandbox and the brokers as they are,
// over a world made of the requests. Close it.
type Own struct {
	Compiler, Cache string // as in kit.Open

	bench *kit.Bench
}

// Close unloads what is loaded.
func (o *Own) Close(ctx context.Context) error {
	if o.bench == nil {
		return nil
	}
	b := o.bench
	o.bench = nil
	return b.Close(ctx)
}

// Ask implements [Host].
func (o *Own) Ask(ctx context.Context, r Request) (Response, error) {
	res := Response{ID: r.ID}
	var err error
	switch r.Do {
	case doHello:
		res.ABI, res.Name = abi.Version, "elfhost"
		res.Lacks = []string{string(abi.Exec)} // programs are not part of a case's world
	case doLoad:
		if err = o.load(ctx, r); err == nil {
			res.Loaded = true
			for _, t := range o.bench.Plugin.Tools() {
				res.Tools = append(res.Tools, t.Spec().Name)
			}
		}
	case doCall:
		err = o.call(ctx, r, &res)
	case doUnload:
		err = o.Close(ctx)
	default:
		err = fmt.Errorf("there is no request %q", r.Do)
	}
	if err != nil {
		res.Error = err.Error()
	}
	return res, nil
}

func (o *Own) load(ctx context.Context, r Request) error {
	if err := o.Close(ctx); err != nil {
		return err
	}
	if r.Manifest == nil {
		return errors.New("load needs a manifest")
	}
	sum := sha256.Sum256(r.Wasm)
	pkg := sandbox.Package{
		Manifest: r.Manifest.manifest(), Digest: hex.EncodeToString(sum[:]), Source: host.Plugin,
		Wasm: func() ([]byte, error) { return r.Wasm, nil },
	}
	b, err := kit.Open(ctx, pkg, o.Compiler, o.Cache)
	if err != nil {
		return err
	}
	b.Keep = true
	if err := b.Plugin.Warm(ctx, nil); err != nil {
		return errors.Join(err, b.Close(ctx))
	}
	o.bench = b
	return nil
}

func (m *Manifest) manifest() abi.Manifest {
	out := abi.Manifest{ABI: m.ABI, Name: m.Name, Version: "1", Limits: abi.Limits{
		Time: time.Duration(m.Limits.TimeMS) * time.Millisecond, Memory: m.Limits.Memory, Output: m.Limits.Output,
	}}
	for _, n := range m.Needs {
		out.Needs = append(out.Needs, abi.Need{Cap: abi.Capability(n.Cap), Scope: n.Scope})
	}
	for _, t := range m.Tools {
		out.Tools = append(out.Tools, abi.ToolDecl{Name: t, Description: "A tool of the suite.", Input: json.RawMessage(`{"type":"object"}`)})
	}
	return out
}

func (o *Own) call(ctx context.Context, r Request, res *Response) error {
	if o.bench == nil {
		return errors.New("nothing is loaded")
	}
	w := r.World
	if w == nil {
		w = new(World)
	}
	c := golden.Case{Tool: r.Tool, Args: r.Args, Grants: r.Grants, Files: w.Files, HTTP: w.HTTP, Env: w.Env, Secrets: w.Secrets, Model: w.Model, Tools: w.Tools}
	got, _, err := o.bench.Call(ctx, c)
	if err != nil {
		res.Ended = ended(err)
		return err
	}
	res.Result = &got
	res.Files, err = o.bench.Files()
	return err
}

// ended says in the protocol's words how a call ended.
func ended(err error) string {
	var (
		trap  *sandbox.TrapError
		exit  *sandbox.ExitError
		limit *sandbox.LimitError
		broke *sandbox.ABIError
	)
	switch {
	case errors.As(err, &limit):
		return "limit"
	case errors.As(err, &trap):
		return "trap"
	case errors.As(err, &exit):
		return "exit"
	case errors.As(err, &broke):
		return "abi"
	}
	return "other"
}

// Serve speaks the protocol for a host, until its input ends.
func Serve(ctx context.Context, h Host, in io.Reader, out io.Writer) error {
	s := bufio.NewScanner(in)
	s.Buffer(nil, maxLine)
	enc := json.NewEncoder(out)
	for s.Scan() {
		var r Request
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			return fmt.Errorf("a request that is none: %w", err)
		}
		res, err := h.Ask(ctx, r)
		if err != nil {
			return err
		}
		if err := enc.Encode(res); err != nil {
			return err
		}
	}
	return s.Err()
}
