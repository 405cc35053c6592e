package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
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
}
