package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox/wasi"
)

// Recording is all that one call was told from outside, and what came of it.
// It holds what the guest read: files, responses, time, random bytes. Keep it
// like those.
type Recording struct {
	Plugin string  `json:"plugin"`
	Digest string  `json:"digest"`
	Tool   string  `json:"tool"`
	Args   []byte  `json:"args"`
	Events []Event `json:"events"`
	Seed   []byte  `json:"seed,omitempty"` // what the instance was reseeded with

	Result abi.Result `json:"result"`
	Error  string     `json:"error,omitempty"`
	Fuel   int64      `json:"fuel"`
}

// Event is one call of a host function: what the guest asked, and every byte
// that was answered.
type Event struct {
	Func    string   `json:"f"`
	Params  []uint64 `json:"p,omitempty"`
	Request string   `json:"q,omitempty"` // digest of the request's bytes
	Result  uint64   `json:"r"`
	Writes  []Write  `json:"w,omitempty"`
	Error   string   `json:"e,omitempty"` // of an operation that a format did for the guest; Result is its code
}

// Write is a write into the guest's memory.
type Write struct {
	Offset uint32 `json:"o"`
	Bytes  []byte `json:"b"`
}

// Difference is where a replay left the recording.
type Difference struct {
	Event    int // index of the host call; -1: the end
	Recorded string
	Replayed string
}

func (d *Difference) Error() string {
	where := "at the end"
	if d.Event >= 0 {
		where = fmt.Sprintf("at host call %d", d.Event+1)
	}
	return fmt.Sprintf("the replay differs %s: recorded %s, replayed %s", where, d.Recorded, d.Replayed)
}

// tape is a recording that is being made or replayed.
type tape struct {
	rec    *Recording
	replay bool
	next   int
	asked  string // digest of the request of the event under way
	size   int    // of the events, in bytes
	full   error
	taken  atomic.Bool // by the call that is recorded
}

// maxTape bounds what a recording holds in memory: a guest is told more in a
// call than anybody wants to keep. In bytes.
const (
	maxTape   = 128 << 20
	eventSize = 256 // of an event, beside the bytes that were answered
)

type tapeKey struct{}

// tapeOf is the tape for a call under ctx. What the recorded call calls is a
// part of what it was told, and is not recorded itself.
func tapeOf(ctx context.Context) *tape {
	t, _ := ctx.Value(tapeKey{}).(*tape)
	if t == nil || t.taken.Swap(true) {
		return nil
	}
	return t
}

// fits reports whether the tape has room for an answer of n bytes.
func (t *tape) fits(n int) bool {
	if t.size += n; t.size > maxTape && t.full == nil {
		t.full = &LimitError{limitRecording, fmt.Sprintf("%d MiB", maxTape>>20)}
	}
	return t.full == nil
}

// Record returns a context under which the next call of a plugin's tool is
// recorded. rec is complete when the call has returned. A call that is told
// more than fits into a recording ends with a *LimitError.
func Record(ctx context.Context, rec *Recording) context.Context {
	*rec = Recording{}
	return context.WithValue(ctx, tapeKey{}, &tape{rec: rec})
}

// run records one host function, or answers it from the recording.
func (t *tape) run(name string, mod api.Module, stack []uint64, types []api.ValueType, f func(wasi.Memory)) {
	if t.replay {
		t.answer(name, mod, stack, types, f)
		return
	}
	e := Event{Func: name, Params: params(stack, types)}
	t.asked = ""
	t.fits(eventSize)
	f(wasi.MemoryOf(mod, func(off uint32, b []byte) {
		if t.fits(len(b)) {
			e.Writes = append(e.Writes, Write{off, slices.Clone(b)})
		}
	}))
	if t.full != nil {
		panic(t.full)
	}
	e.Request = t.asked
	if len(stack) > 0 {
		e.Result = uint64(uint32(stack[0]))
	}
	t.rec.Events = append(t.rec.Events, e)
}

// params copies parameters from the stack. The upper half of a 32-bit one is
// whatever was there before.
func params(stack []uint64, types []api.ValueType) []uint64 {
	list := slices.Clone(stack[:len(types)])
	for i, t := range types {
		if t == api.ValueTypeI32 {
			list[i] = uint64(uint32(list[i]))
		}
	}
	return list
}

// request notes what an operation was asked.
func (t *tape) request(frame []byte) {
	sum := sha256.Sum256(frame)
	t.asked = hex.EncodeToString(sum[:8])
}

// answer serves a host function from the recording, after the guest asked the
// same thing.
func (t *tape) answer(name string, mod api.Module, stack []uint64, types []api.ValueType, f func(wasi.Memory)) {
	if name == exitFunc {
		f(wasi.MemoryOf(mod, nil)) // it answers nothing
		return
	}
	at := t.next
	given := params(stack, types)
	asked := describeEvent(Event{Func: name, Params: given})
	if at >= len(t.rec.Events) {
		panic(&Difference{at, "no further host call", asked})
	}
	e := &t.rec.Events[at]
	t.next++
	if e.Func != name || !slices.Equal(e.Params, given) {
		panic(&Difference{at, describeEvent(*e), asked})
	}
	if e.Request != "" {
		frame, _ := wasi.MemoryOf(mod, nil).Copy(uint32(stack[0]), uint32(stack[1]))
		if t.request(frame); t.asked != e.Request {
			panic(&Difference{at, name + " with request " + e.Request, name + " with request " + t.asked})
		}
	}
	m := wasi.MemoryOf(mod, nil)
	for _, w := range e.Writes {
		if !m.Write(w.Offset, w.Bytes) {
			panic(&Difference{at, fmt.Sprintf("a write of %d bytes at %#x", len(w.Bytes), w.Offset), "a smaller memory"})
		}
	}
	if len(stack) > 0 {
		stack[0] = e.Result
	}
}

// effect records or replays what a host function of another format does to the
// world. The functions themselves run again in a replay.
func (t *tape) effect(name string, request []byte, f func() ([]byte, error)) ([]byte, error) {
	t.request(request)
	asked := t.asked
	if !t.replay {
		reply, err := f()
		if !t.fits(eventSize + len(reply)) {
			return nil, t.full
		}
		e := Event{Func: name, Request: asked}
		if err != nil {
			e.Result = uint64(uint32(code(err)))
			e.Error = err.Error()
		} else if reply != nil {
			e.Writes = []Write{{Bytes: slices.Clone(reply)}}
		}
		t.rec.Events = append(t.rec.Events, e)
		return reply, err
	}
	at := t.next
	if at >= len(t.rec.Events) {
		panic(&Difference{at, "no further host call", name + " with request " + asked})
	}
	e := &t.rec.Events[at]
	t.next++
	switch {
	case e.Func != name || e.Request != asked:
		panic(&Difference{at, e.Func + " with request " + e.Request, name + " with request " + asked})
	case e.Error != "":
		return nil, &recorded{e.Error, abi.Code(int32(uint32(e.Result)))}
	case len(e.Writes) == 1:
		return e.Writes[0].Bytes, nil
	}
	return nil, nil
}

// recorded is an error of the time of the recording.
type recorded struct {
	text string
	code abi.Code
}

func (r *recorded) Error() string { return r.text }

func (r *recorded) Unwrap() error { return r.code }

const exitFunc = wasi.ModuleName + ".proc_exit"

func describeEvent(e Event) string { return fmt.Sprintf("%s%v", e.Func, e.Params) }

// finish completes a recording, or compares the end of a replay.
func (t *tape) finish(r abi.Receipt, res abi.Result, err error) {
	end := Recording{Plugin: r.Plugin, Digest: r.Digest, Result: res, Fuel: r.Fuel}
	if err != nil {
		end.Error = err.Error()
	}
	if t.replay {
		t.rec = &end
		return
	}
	end.Tool, end.Args, end.Events, end.Seed = r.Tool, t.rec.Args, t.rec.Events, t.rec.Seed
	*t.rec = end
}

// Replay runs a recorded call again, against the recorded answers: nothing of
// the world is touched. It returns nil when the module asked the same
// questions, gave the same result and used the same fuel, else a *Difference.
func (p *Plugin) Replay(ctx context.Context, rec *Recording) error {
	if rec.Digest != p.pkg.Digest {
		return fmt.Errorf("the recording is of the module %s, this one is %s", rec.Digest, p.pkg.Digest)
	}
	if err := p.hold(); err != nil {
		return err
	}
	defer p.calls.Done()
	prog, err := p.program(ctx, nil)
	if err != nil {
		return err
	}
	t := &tape{rec: rec, replay: true}
	_, rest, err := p.enter(ctx, prog, host.Call{Tool: rec.Tool, Args: rec.Args}, t)
	if rest != nil {
		rest()
	}
	var diff *Difference
	if errors.As(err, &diff) {
		return diff
	}
	return compareEnds(rec, t.rec, t.next)
}

func compareEnds(was, is *Recording, events int) error {
	a, _ := json.Marshal(was.Result)
	b, _ := json.Marshal(is.Result)
	switch {
	case was.Error != is.Error:
		return &Difference{-1, "the error " + quoteOrNone(was.Error), "the error " + quoteOrNone(is.Error)}
	case !bytes.Equal(a, b):
		return &Difference{-1, "the result " + oneLine(string(a)), "the result " + oneLine(string(b))}
	case events != len(was.Events):
		return &Difference{events, describeEvent(was.Events[events]), "the end of the call"}
	case was.Fuel != is.Fuel:
		return &Difference{-1, fmt.Sprintf("fuel %d", was.Fuel), fmt.Sprintf("fuel %d", is.Fuel)}
	}
	return nil
}

func quoteOrNone(s string) string {
	if s == "" {
		return "none"
	}
	return fmt.Sprintf("%q", s)
}
