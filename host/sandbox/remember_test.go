package sandbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox"
)

// TestNoCallRemembersAnother: whatever calls do, in however many pages, however
// they end and whenever their sandboxes are cleaned, the next one finds nothing.
func TestNoCallRemembersAnother(t *testing.T) {
	m := abi.Manifest{Limits: abi.Limits{Parallel: 3, Time: 5 * time.Minute}}
	p := newProbe(t, m)
	m.Name = "other"
	other := load(t, &sandbox.Loader{}, guest(t, "probe"), m)
	var asked atomic.Int64
	p.loader.Invoke = func(ctx context.Context, c host.Call) abi.Result {
		r, err := other.Tools()[0].Call(ctx, c)
		if err != nil {
			return abi.Errorf("%v", err)
		}
		if strings.Contains(string(c.Args), "gather") {
			asked.Add(1)
			if r.Text() != "" {
				t.Errorf("a call within a call finds %s", r.Text())
			}
		}
		return r
	}
	grants := rights(t, "tool.call probe")
	call := func(rnd *rand.Rand, on *sandbox.Plugin, a args) (abi.Result, error) {
		b, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		c := host.Call{Tool: "probe", Args: b, Rights: grants}
		switch rnd.IntN(3) {
		case 0:
			c.Later = func(f func()) { f(); f() }
		case 1:
			c.Later = func(f func()) { go f() }
		}
		ctx := t.Context()
		var rec *sandbox.Recording
		if rnd.IntN(8) == 0 {
			rec = &sandbox.Recording{}
			ctx = sandbox.Record(ctx, rec)
		}
		if len(a.List) > 0 && a.List[0] == "spin" {
			short, cancel := context.WithTimeout(ctx, time.Duration(1+rnd.IntN(20))*time.Millisecond)
			defer cancel()
			ctx = short
		}
		r, err := on.Tools()[0].Call(ctx, c)
		if rec != nil && err == nil {
			if err := on.Replay(t.Context(), rec); err != nil {
				t.Error(err)
			}
		}
		return r, err
	}
	rounds := 30
	if testing.Short() {
		rounds = 8
	}
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(g)))
			at := rnd.IntN(700)
			for i := range rounds {
				on := p.plugin
				if rnd.IntN(3) == 0 {
					on = other
				}
				if rnd.IntN(4) == 0 {
					at = rnd.IntN(700) // else the same pages as before, which are private by now
				}
				a := args{Do: "spread", A: fmt.Sprintf("secret %d of %d", i, g), B: fmt.Sprint(at), N: []int{1, 3, 40, 700}[rnd.IntN(4)]}
				switch end := rnd.IntN(12); {
				case end == 0:
					a.List = []string{"exit", "", ""}
				case end == 1:
					a.List = []string{"spin", "", ""}
				case end == 2:
					a.List = []string{"grow", "", ""}
				case end < 6 && on == p.plugin:
					inner := a
					if end == 5 {
						inner = args{Do: "gather"}
					}
					b, _ := json.Marshal(inner)
					a.List = []string{"tool", "probe", string(b)}
				}
				_, _ = call(rnd, on, a) // some are meant to fail
				for range 1 + rnd.IntN(3) {
					if r, err := call(rnd, on, args{Do: "gather"}); err != nil || r.Text() != "" {
						t.Errorf("the next call finds %s, %v", r.Text(), err)
					}
				}
			}
		})
	}
	wg.Wait()
	if asked.Load() == 0 {
		t.Error("no call within a call looked")
	}
}
