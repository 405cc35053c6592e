package agent

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/chaos"
)

// TestChaos runs a hostile model for 10,000 answers, with cancellations in
// between: no panic, no lost call, a valid transcript at every stop, and a
// reload that agrees.
func TestChaos(t *testing.T) {
	answers := 10_000
	if testing.Short() {
		answers = 1500
	}
	before := runtime.NumGoroutine()
	m := chaos.New(1)
	m.Most = answers // whatever is broken, the test ends
	runs := &Runs{Limits: RunLimits{Depth: 2, Children: 4}}
	odd := tool{spec: spec("Odd", true), call: func(ctx context.Context, c host.Call) (abi.Result, error) {
		switch len(c.Args) % 7 {
		case 0:
			panic("odd")
		case 1:
			return abi.Result{}, errDisk
		case 2:
			return abi.Result{}, nil
		}
		return abi.Text("odd\xff"), nil
	}}
	odd.spec.Input = json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer"},"l":{"type":"array","items":{"type":"boolean"}},"e":{"enum":["x","y"]}},"required":["a"]}`)
	sp := spawner(runs, Spawn{Prompt: "go", Steps: 3})
	spawn := sp.call
	sp.call = func(ctx context.Context, c host.Call) (abi.Result, error) {
		if depth := scopeOf(ctx).loop.depth; depth > runs.Limits.Depth { // a tree without an end would take for ever
			t.Errorf("an agent %d deep", depth)
			return abi.Errorf("too deep"), nil
		}
		return spawn(ctx, c)
	}
	slow := newTool("Slow", false, func(ctx context.Context, _ map[string]any) abi.Result {
		select {
		case <-time.After(time.Duration(rand.IntN(300)) * time.Microsecond):
		case <-ctx.Done():
		}
		return abi.Text("slow")
	})
	l := newLoop(m, odd, slow, look(), sp)
	l.Retry = model.Retry{Attempts: 4, First: time.Microsecond, Longest: time.Microsecond}
	l.Limits.Steps = 60
	for round := 0; m.Answers() < answers; round++ {
		j := &memory{}
		s := New("s", onlyOf{j, "s"})
		for range 3 {
			ctx, cancel := context.WithCancel(context.Background())
			if round%3 == 0 {
				ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(4000))*time.Microsecond)
			}
			_, err := drain(t, l.Run(ctx, s, text("go")))
			cancel()
			if err != nil && !model.Retryable(err) {
				t.Fatalf("round %d: %v", round, err)
			}
			mustValid(t, s)
		}
		again, err := Resume("s", nil, j.kept())
		if err != nil {
			t.Fatal(err)
		}
		mustValid(t, again)
		if len(again.Repairs()) > 0 || len(again.Messages()) != len(s.Messages()) {
			t.Fatalf("round %d: the reload differs: %d messages of %d, %v", round, len(again.Messages()), len(s.Messages()), again.Repairs())
		}
	}
	if err := runs.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		if runtime.NumGoroutine() <= before+2 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%d goroutines are left, %d at the start", runtime.NumGoroutine(), before)
}
