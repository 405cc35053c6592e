package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/abi"
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
}

type tapeKey struct{}

func tapeOf(ctx context.Context) *tape {
	t, _ := ctx.Value(tapeKey{}).(*tape)
	return t
}

// Record returns a context under which the next call of a plugin's tool is
// recorded. rec is complete when the call has returned. One call at a time.
func Record(ctx context.Context, rec *Recording) context.Context {
	*rec = Recording{}
	return context.WithValue(ctx, tapeKey{}, &tape{rec: rec})
}

// run records one host function, or answers it from the recording.
func (t *tape) run(name string, mod api.Module, stack []uint64, n int, f func(wasi.Memory)) {
	if t.replay {
		t.answer(name, mod, stack, n, f)
		return
	}
	e := Event{Func: name, Params: slices.Clone(stack[:n])}
	t.asked = ""
	f(wasi.MemoryOf(mod, func(off uint32, b []byte) {
		e.Writes = append(e.Writes, Write{off, slices.Clone(b)})
	}))
	e.Request = t.asked
	if len(stack) > 0 {
		e.Result = stack[0]
	}
	t.rec.Events = append(t.rec.Events, e)
}

// request notes what an operation was asked.
func (t *tape) request(frame []byte) {
	sum := sha256.Sum256(frame)
	t.asked = hex.EncodeToString(sum[:8])
}
