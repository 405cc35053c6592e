package model

import (
	"context"
	"errors"
	"iter"
	"math"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
)

func TestCost(t *testing.T) {
	p := Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}
	got := p.Cost(Usage{Input: 1000, Output: 2000, CacheRead: 10_000, CacheWrite: 4000, Reasoning: 1500})
	if want := 0.003 + 0.03 + 0.003 + 0.015; math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
	if got := (Price{Input: 1}).Cost(Usage{CacheWrite: 1e6}); got != 1 {
		t.Errorf("writing to the cache for nothing: %v", got)
	}
	long := Price{Input: 2, Output: 6, Above: 200_000, Long: &Price{Input: 4, Output: 12, CacheRead: 1}}
	if got := long.Cost(Usage{Input: 100_000, CacheRead: 100_000}); got != 0.2 {
		t.Errorf("a prompt that is just not long: %v", got)
	}
	if got := long.Cost(Usage{Input: 100_000, CacheRead: 200_000, Output: 1_000_000}); math.Abs(got-12.6) > 1e-12 {
		t.Errorf("a long prompt: %v", got)
	}
}

func TestCheck(t *testing.T) {
	call := func(id string) Block { return Block{Call: &Call{ID: id, Name: "t"}} }
	res := func(id string) Block { return Block{Result: &CallResult{ID: id, Name: "t", Result: abi.Text("r")}} }
	user := User(abi.TextBlock("hi"))
	for name, c := range map[string]struct {
		in []Message
		ok bool
	}{
		"fine":           {[]Message{user, {RoleAssistant, []Block{call("a"), call("b")}}, {RoleTool, []Block{res("a"), res("b")}}, user}, true},
		"empty":          {nil, true},
		"no result":      {[]Message{{RoleAssistant, []Block{call("a")}}}, false},
		"someone talks":  {[]Message{{RoleAssistant, []Block{call("a")}}, user, {RoleTool, []Block{res("a")}}}, false},
		"order":          {[]Message{{RoleAssistant, []Block{call("a"), call("b")}}, {RoleTool, []Block{res("b"), res("a")}}}, false},
		"twice":          {[]Message{{RoleAssistant, []Block{call("a")}}, {RoleTool, []Block{res("a"), res("a")}}}, false},
		"same id again":  {[]Message{{RoleAssistant, []Block{call("a")}}, {RoleTool, []Block{res("a")}}, {RoleAssistant, []Block{call("a")}}, {RoleTool, []Block{res("a")}}}, false},
		"nameless":       {[]Message{{RoleAssistant, []Block{call("")}}, {RoleTool, []Block{res("")}}}, false},
		"a stray result": {[]Message{user, {RoleTool, []Block{res("a")}}}, false},
		"no blocks":      {[]Message{{Role: RoleUser}}, false},
	} {
		if err := Check(c.in); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type failing struct {
	errs []error
	n    int
}

func (f *failing) Stream(context.Context, Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f.n++
		if f.n <= len(f.errs) {
			if yield(Event{Kind: KindText, Text: "x"}, nil) {
				yield(Event{}, f.errs[f.n-1])
			}
			return
		}
		_ = yield(Event{Kind: KindText, Text: "y"}, nil) && yield(Event{Kind: KindStop, Stop: StopEnd}, nil)
	}
}

func TestRetry(t *testing.T) {
	again, wrong := &Error{Code: ErrOverload}, &Error{Code: ErrAuth}
	patient := &Error{Code: ErrRateLimit, RetryAfter: 30 * time.Millisecond}
	forever := &Error{Code: ErrRateLimit, RetryAfter: time.Hour}
	for name, c := range map[string]struct {
		errs []error
		n    int
		want error
		min  time.Duration
	}{
		"good at once":     {nil, 1, nil, 0},
		"good in the end":  {[]error{again, again}, 3, nil, 0},
		"never good":       {[]error{again, again, again, again}, 3, ErrOverload, 0},
		"no use":           {[]error{wrong}, 1, ErrAuth, 0},
		"as it asks":       {[]error{patient}, 2, nil, 30 * time.Millisecond},
		"it asks too much": {[]error{forever}, 1, ErrRateLimit, 0},
	} {
		f := &failing{errs: c.errs}
		begin := time.Now()
		var turn Turn
		err := turn.Read(Retry{Attempts: 3, First: time.Millisecond}.Wrap(f).Stream(context.Background(), Request{}))
		if !errors.Is(err, c.want) && (err != nil || c.want != nil) || f.n != c.n || time.Since(begin) < c.min {
			t.Errorf("%s: %v after %d attempts, %s", name, err, f.n, time.Since(begin))
		}
		if err == nil && turn.text.String() != "y" {
			t.Errorf("%s: what was void is still there: %q", name, turn.text.String())
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	err := new(Turn).Read(Retry{First: time.Hour, Longest: time.Hour}.Wrap(&failing{errs: []error{again, again}}).Stream(ctx, Request{}))
	if !errors.Is(err, ErrCancelled) {
		t.Errorf("cancelled while it waits: %v", err)
	}
}
