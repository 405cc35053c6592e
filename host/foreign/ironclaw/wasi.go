package ironclaw

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// wasiFunc serves one function of WASI 0.2. Local ones reach nothing.
type wasiFunc struct {
	run   run
	local bool
	sig   string // lowered
}

// fits compares with how the module declares the import.
func (w wasiFunc) fits(f sandbox.Func) error {
	got := wasmbin.FuncType{Params: f.Params, Results: f.Results}.String()
	if w.sig != "" && got != w.sig {
		return fmt.Errorf("it is declared as %s and is %s", got, w.sig)
	}
	return nil
}

// coarse is the step of the clocks: a finer one helps to measure what others
// in the machine do.
const coarse = time.Millisecond

// now is the time, recorded.
func now(g *sandbox.Guest) time.Time {
	b, err := g.Effect("now", nil, func() ([]byte, error) {
		return binary.LittleEndian.AppendUint64(nil, uint64(time.Now().Truncate(coarse).UnixNano())), nil
	})
	if err != nil || len(b) != 8 {
		stop("the time is not to be had: %w", abi.ErrInternal)
	}
	return time.Unix(0, int64(binary.LittleEndian.Uint64(b)))
}

// random gives n bytes, recorded.
func random(g *sandbox.Guest, n uint64) []byte {
	if n > 1<<20 {
		stop("the tool asks for %d random bytes at once: %w", n, abi.ErrTooLarge)
	}
	b, err := g.Effect("random", binary.LittleEndian.AppendUint64(nil, n), func() ([]byte, error) {
		b := make([]byte, n)
		rand.Read(b)
		return b, nil
	})
	if err != nil || uint64(len(b)) != n {
		stop("random bytes are not to be had: %w", abi.ErrInternal)
	}
	return b
}

func randomU64(_ context.Context, g *sandbox.Guest, s []uint64) {
	s[0] = binary.LittleEndian.Uint64(random(g, 8))
}

func randomBytes(ctx context.Context, g *sandbox.Guest, s []uint64) {
	r := make(record, 8)
	r.str(ctx, g, 0, random(g, s[0]))
	r.write(g, s[1])
}

// Handles of what cannot be opened or closed. Standard input is at its end.
const (
	stdin  = 1
	stdout = 2
	stderr = 3
	ready  = 4 // a pollable that always is
)

// chunk is how much a stream takes at once.
const chunk = 4096

func handle(h uint64) wasiFunc {
	return wasiFunc{func(_ context.Context, _ *sandbox.Guest, s []uint64) { s[0] = h }, true, "() -> (i32)"}
}

// none writes an option that is none, or a result that is ok and nothing.
func none(at int, sig string) wasiFunc {
	return wasiFunc{func(_ context.Context, g *sandbox.Guest, s []uint64) { make(record, 1).write(g, s[at]) }, true, sig}
}

// empty writes an empty list.
func empty(_ context.Context, g *sandbox.Guest, s []uint64) {
	r := make(record, 8)
	r.u32(0, 8)
	r.write(g, s[0])
}

func nothing(context.Context, *sandbox.Guest, []uint64) {}

// write logs what goes to standard output and error.
func write(ctx context.Context, g *sandbox.Guest, s []uint64) {
	level := "info"
	if s[0] == stderr {
		level = "warn"
	}
	_, _, _ = g.Do(ctx, abi.ModuleLog, "write", map[string]string{"level": level}, bytesAt(g, s[1], uint64(min(uint32(s[2]), 64<<10))))
	make(record, 12).write(g, s[3])
}

// poll says that everything is ready.
func poll(ctx context.Context, g *sandbox.Guest, s []uint64) {
	n := min(uint32(s[1]), 1024)
	list := make(record, 4*n)
	for i := range n {
		list.u32(int(4*i), i)
	}
	ptr, err := place(ctx, g, 4*n, 4)
	if err != nil {
		stop("%w", err)
	}
	if n > 0 {
		list.write(g, uint64(ptr))
	}
	r := make(record, 8)
	r.u32(0, ptr)
	r.u32(4, n)
	r.write(g, s[2])
}

// wasiFuncs are known by interface, without its version, and name.
var wasiFuncs = map[string]wasiFunc{
	"wasi:cli/stdin get-stdin":                     handle(stdin),
	"wasi:cli/stdout get-stdout":                   handle(stdout),
	"wasi:cli/stderr get-stderr":                   handle(stderr),
	"wasi:cli/terminal-stdin get-terminal-stdin":   none(0, "(i32) -> ()"),
	"wasi:cli/terminal-stdout get-terminal-stdout": none(0, "(i32) -> ()"),
	"wasi:cli/terminal-stderr get-terminal-stderr": none(0, "(i32) -> ()"),
	"wasi:cli/environment get-environment":         {empty, true, "(i32) -> ()"},
	"wasi:cli/environment get-arguments":           {empty, true, "(i32) -> ()"},
	"wasi:cli/environment initial-cwd":             none(0, "(i32) -> ()"),
	"wasi:cli/exit exit": {func(_ context.Context, _ *sandbox.Guest, s []uint64) {
		stop("the tool exited with code %d in the middle of a call", s[0])
	}, false, "(i32) -> ()"},

	"wasi:io/poll poll":                   {poll, false, "(i32 i32 i32) -> ()"},
	"wasi:io/poll [method]pollable.block": {nothing, false, "(i32) -> ()"},
	"wasi:io/poll [method]pollable.ready": {func(_ context.Context, _ *sandbox.Guest, s []uint64) { s[0] = 1 }, false, "(i32) -> (i32)"},
	"wasi:io/streams [method]output-stream.check-write": {func(_ context.Context, g *sandbox.Guest, s []uint64) {
		r := make(record, 16)
		r.u64(8, chunk)
		r.write(g, s[1])
	}, true, "(i32 i32) -> ()"},
	"wasi:io/streams [method]output-stream.write":                    {write, false, "(i32 i32 i32 i32) -> ()"},
	"wasi:io/streams [method]output-stream.blocking-write-and-flush": {write, false, "(i32 i32 i32 i32) -> ()"},
	"wasi:io/streams [method]output-stream.flush":                    none(1, "(i32 i32) -> ()"),
	"wasi:io/streams [method]output-stream.blocking-flush":           none(1, "(i32 i32) -> ()"),
	"wasi:io/streams [method]output-stream.subscribe":                {func(_ context.Context, _ *sandbox.Guest, s []uint64) { s[0] = ready }, true, "(i32) -> (i32)"},
	"wasi:io/streams [method]input-stream.subscribe":                 {func(_ context.Context, _ *sandbox.Guest, s []uint64) { s[0] = ready }, true, "(i32) -> (i32)"},

	"wasi:clocks/monotonic-clock now":                {func(_ context.Context, g *sandbox.Guest, s []uint64) { s[0] = uint64(now(g).UnixNano()) }, false, "() -> (i64)"},
	"wasi:clocks/monotonic-clock resolution":         {func(_ context.Context, _ *sandbox.Guest, s []uint64) { s[0] = uint64(coarse) }, true, "() -> (i64)"},
	"wasi:clocks/monotonic-clock subscribe-duration": {sleep, false, "(i64) -> (i32)"},
	"wasi:clocks/wall-clock now": {func(_ context.Context, g *sandbox.Guest, s []uint64) {
		t := now(g)
		r := make(record, 16)
		r.u64(0, uint64(t.Unix()))
		r.u32(8, uint32(t.Nanosecond()))
		r.write(g, s[0])
	}, false, "(i32) -> ()"},

	"wasi:random/random get-random-bytes":            {randomBytes, false, "(i64 i32) -> ()"},
	"wasi:random/random get-random-u64":              {randomU64, false, "() -> (i64)"},
	"wasi:random/insecure get-insecure-random-bytes": {randomBytes, false, "(i64 i32) -> ()"},
	"wasi:random/insecure get-insecure-random-u64":   {randomU64, false, "() -> (i64)"},
	"wasi:random/insecure-seed insecure-seed": {func(_ context.Context, g *sandbox.Guest, s []uint64) {
		record(random(g, 16)).write(g, s[0])
	}, false, "(i32) -> ()"},
	"wasi:filesystem/preopens get-directories": {empty, true, "(i32) -> ()"},
}

// sleep waits here, within the call's time, and gives a pollable that is ready.
func sleep(ctx context.Context, g *sandbox.Guest, s []uint64) {
	d := time.Duration(min(s[0], uint64(time.Hour)))
	_, err := g.Effect("sleep", binary.LittleEndian.AppendUint64(nil, s[0]), func() ([]byte, error) {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
	if err != nil {
		stop("%w", err)
	}
	s[0] = ready
}
