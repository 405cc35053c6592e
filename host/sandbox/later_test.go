package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox"
)

// deferred calls the probe, and gives back what the call has left to do.
func (p *probe) deferred(a args, grants ...string) (text string, left []func()) {
	p.t.Helper()
	b, err := json.Marshal(a)
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := p.plugin.Tools()[0].Call(p.t.Context(), host.Call{ID: "c1", Tool: "probe", Args: b, Rights: rights(p.t, grants...),
		Receipt: func(r abi.Receipt) { p.last = r }, Later: func(f func()) { left = append(left, f) }})
	if err != nil {
		p.t.Fatal(err)
	}
	return r.Text(), left
}

// What follows an answer: the receipt, and an instance that remembers nothing.
func TestCleaningFollowsTheAnswer(t *testing.T) {
	p := newProbe(t, abi.Manifest{Limits: abi.Limits{Parallel: 1}})
	p.want(args{Do: "echo", A: "warm"}, "warm")
	for range 3 {
		p.last = abi.Receipt{}
		text, left := p.deferred(args{Do: "remember", A: "secret"})
		if text != "ok" || len(left) != 1 || p.last.Tool != "" {
			t.Errorf("%q, %d things left, receipt %+v", text, len(left), p.last)
		}
		left[0]()
		if p.last.Tool != "probe" || p.last.Wall <= 0 || p.last.Memory == 0 {
			t.Errorf("receipt %+v", p.last)
		}
		text, left = p.deferred(args{Do: "recall"})
		if left[0](); text != "" {
			t.Errorf("the next call finds %q", text)
		}
	}
}

// An error is not put off: its instance is gone, its receipt is there.
func TestAnErrorIsCleanedAtOnce(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	got := 0
	_, err := p.plugin.Tools()[0].Call(t.Context(), host.Call{Tool: "probe", Args: json.RawMessage(`{"do":"exit","n":3}`),
		Receipt: func(abi.Receipt) { got++ }, Later: func(func()) { t.Error("something is put off") }})
	if err == nil || got != 1 {
		t.Errorf("%v, %d receipts", err, got)
	}
}

// Close waits for what is left to do: nothing is taken from under it.
func TestCloseWaitsForCleaning(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	_, left := p.deferred(args{Do: "echo", A: "x"})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.plugin.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close did not wait: %v", err)
	}
	left[0]()
	if err := p.plugin.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A tool without needs that is ready is run in place; another one is not.
func TestInterruptibleTools(t *testing.T) {
	silent := tiny{call: constI64(0)}.bytes() // it answers nothing, which is an error
	for _, c := range []struct {
		needs []abi.Need
		want  bool
	}{{[]abi.Need{}, true}, {[]abi.Need{{Cap: abi.FSRead, Scope: []string{"/ws/**"}}}, false}} {
		p := load(t, &sandbox.Loader{}, silent, abi.Manifest{Needs: c.needs})
		says := func() bool { return p.Tools()[0].(host.Interruptible).Interruptible() }
		if says() {
			t.Error("a module that is not compiled yet is said to be interruptible")
		}
		if err := p.Warm(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if says() != c.want { // a file system may hang
			t.Errorf("needs %v: interruptible %v", c.needs, !c.want)
		}
	}
	asks := pkgOf(counter(), abi.Manifest{Needs: []abi.Need{}, Tools: probeDecl})
	asks.Format = &sandbox.Format{Name: "test"}
	p, err := (&sandbox.Loader{Compiler: self(t)}).Load(t.Context(), asks)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(context.Background())
	if err := p.Warm(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if p.Tools()[0].(host.Interruptible).Interruptible() {
		t.Error("a format that may ask a person is said to be interruptible")
	}
}

// What is left to do, done twice, or by two at once, is done once: else two
// calls had one sandbox.
func TestWhatIsLeftIsDoneOnce(t *testing.T) {
	p := newProbe(t, abi.Manifest{Limits: abi.Limits{Parallel: 1, Time: 5 * time.Minute}})
	var got atomic.Int64
	var left func()
	if _, err := p.plugin.Tools()[0].Call(t.Context(), host.Call{Tool: "probe", Args: json.RawMessage(`{"do":"echo"}`),
		Receipt: func(abi.Receipt) { got.Add(1) }, Later: func(f func()) { left = f }}); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- p.plugin.Close(context.Background()) }()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(left)
	}
	wg.Wait()
	if err := <-closed; err != nil || got.Load() != 1 {
		t.Errorf("%v, %d receipts", err, got.Load())
	}
}

// A format that panics beside its guest costs a call, and no place in the queue.
func TestAPanicGivesItsPlaceBack(t *testing.T) {
	pkg := pkgOf(counter(), abi.Manifest{Name: "clumsy", Limits: abi.Limits{Parallel: 1, Time: time.Hour}, Tools: probeDecl})
	pkg.Format = &sandbox.Format{Name: "test",
		Call: func(ctx context.Context, g *sandbox.Guest, _ abi.ToolDecl, args json.RawMessage) (abi.Result, error) {
			res, err := g.Call(ctx, "count")
			if err != nil || res[0] != 1 {
				return abi.Result{}, fmt.Errorf("%v, %w", res, err)
			}
			if string(args) == "true" {
				panic("clumsy")
			}
			return abi.Text("ok"), nil
		}}
	p, err := (&sandbox.Loader{Compiler: self(t)}).Load(t.Context(), pkg)
	if err != nil {
		t.Fatal(err)
	}
	call := func(args string) (r abi.Result, err error) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("panic: %v", v)
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return p.Tools()[0].Call(ctx, host.Call{Args: json.RawMessage(args)})
	}
	for range 3 {
		if _, err := call("true"); err == nil || !strings.Contains(err.Error(), "clumsy") {
			t.Fatal(err)
		}
		if r, err := call("{}"); err != nil || r.Text() != "ok" {
			t.Fatalf("the next call: %q, %v", r.Text(), err)
		}
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := mappings(t); n > 0 {
		t.Errorf("%d mappings of images are left", n)
	}
}
