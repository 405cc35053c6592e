package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/model"
)

// maxCalls is how many calls of one answer are run. No sane answer has more;
// a broken one has thousands.
const maxCalls = 64

// grace is how long a cancelled call may take to end by itself, before it is
// given up and its session goes on without it.
const grace = 3 * time.Second

// batch is the calls of one answer on their way through their tools. Every
// call gets one result in the session, through finish, or in the end by settle.
type batch struct {
	run    *run
	scope  *scope
	events chan Event
	over   chan struct{}
	most   int // bytes of text that one result has room for; 0: no bound

	mu       sync.Mutex // held while a record of this batch is written
	closed   bool       // settled: whatever a call still answers is too late
	finished map[string]bool
	began    map[string]time.Time
	err      error // of the journal: nothing more is started
}

// calls runs the calls of an answer: neighbours that may run in parallel do,
// all others wait for those before them. It says whether the run is over.
func (r *run) calls(ctx context.Context, calls []model.Call, stop model.StopReason) (Stop, string, error) {
	b := &batch{
		run: r, events: make(chan Event), over: make(chan struct{}),
		finished: map[string]bool{}, began: map[string]time.Time{},
	}
	b.most = r.room(ctx, len(calls))
	b.scope = &scope{loop: r.loop, run: r, session: r.session, step: r.step, events: b.events, over: b.over}
	work := make(chan struct{})
	go func() {
		defer close(work)
		b.work(ctx, calls, stop)
	}()
	b.watch(ctx, work)
	close(b.over)
	b.settle(ctx, calls)

	if b.err != nil {
		return "", "", b.err
	}
	b.scope.mu.Lock()
	defer b.scope.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return StopCancelled, "", nil
	case b.scope.ended:
		return StopYield, b.scope.last, nil
	case stop == model.StopRefusal:
		return StopRefusal, "", nil
	}
	messages := r.session.Messages()
	results := make([]model.CallResult, 0, len(calls))
	for _, k := range messages[len(messages)-1].Blocks {
		results = append(results, *k.Result)
	}
	text, over := r.guard.note(calls, results)
	if over {
		return StopRepeat, "", nil
	}
	if err := r.learn(ctx, calls, results); err != nil {
		return "", "", err
	}
	if text != "" {
		return "", "", r.remark(ctx, text)
	}
	return "", "", nil
}

// leastResult is what a result may have in any case, in bytes: less tells nothing.
const leastResult = 2 << 10

// room is how many bytes of text each result of a step may have, so that the
// newest step, which is never shortened, leaves room for the minutes of the rest.
func (r *run) room(ctx context.Context, calls int) int {
	window, _ := r.loop.askedWindow(ctx)
	step := (float64(window)*or(r.loop.Compact.At, 0.8) - float64(r.loop.overhead())) * 3 / 4
	return max(leastResult, int(step)*bytesPerToken/min(max(calls, 1), maxCalls))
}

// watch shows the events of the calls until all are done. After a
// cancellation it waits no longer than grace.
func (b *batch) watch(ctx context.Context, work <-chan struct{}) {
	cancelled, giveUp := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case e := <-b.events:
			b.run.emit(e)
		case <-work:
			return
		case <-cancelled:
			t := time.NewTimer(grace)
			defer t.Stop()
			cancelled, giveUp = nil, t.C
		case <-giveUp:
			return
		}
	}
}

// work starts the calls in order.
func (b *batch) work(ctx context.Context, calls []model.Call, stop model.StopReason) {
	slots := make(chan struct{}, or(b.run.loop.Limits.Parallel, 8))
	var group sync.WaitGroup
	defer group.Wait()
	for i, c := range calls {
		cut := stop == model.StopLength && i == len(calls)-1
		switch {
		case stop == model.StopRefusal:
			b.finish(ctx, c, skipped("you declined to go on in the same answer"), Skipped, nil)
			continue
		case i >= maxCalls:
			b.finish(ctx, c, skipped(fmt.Sprintf("one answer may make %d calls, the others were run", maxCalls)), Skipped, nil)
			continue
		}
		if !b.run.loop.parallel(c.Name) {
			group.Wait()
			b.one(ctx, c, cut)
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return // settle skips the rest
		}
		group.Go(func() {
			defer func() { <-slots }()
			b.one(ctx, c, cut)
		})
	}
}

// one takes a call through the door and commits its result.
func (b *batch) one(ctx context.Context, c model.Call, cut bool) {
	args, complaint := arguments(c, cut)
	if b.run.loop.Tools == nil && complaint == "" {
		complaint = "There are no tools in this conversation. Answer in words."
	}
	if complaint != "" {
		b.finish(ctx, c, abi.Errorf("%s\n%s", complaint, host.RetryHint), Failed, nil)
		return
	}
	if !b.begin(ctx, c) {
		return
	}
	b.send(Event{Kind: KindStart, Call: &c})
	seen := b.invoke(context.WithValue(ctx, scopeKey{}, b.scope), c, args)
	res, outcome := seen.result, Done
	if res.IsError {
		outcome = Failed
	}
	// A tool that ended well ended before the cancellation, and one that was
	// refused had no effect; of one that failed after it, nobody knows how far
	// it had come.
	if res.IsError && ctx.Err() != nil && !seen.refused {
		outcome = Unknown
		if s, ok := b.run.loop.spec(c.Name); !ok || !looks(s) {
			res = interrupted(b.since(c), res.Text(), why(ctx))
		}
	}
	b.finish(ctx, c, res, outcome, seen.receipts)
}

// seen is what was learned of a call from outside.
type seen struct {
	result   abi.Result
	receipts []abi.Receipt
	refused  bool // before its tool was entered
}

// invoke is the loop's only use of the one door.
func (b *batch) invoke(ctx context.Context, c model.Call, args json.RawMessage) seen {
	var mu sync.Mutex
	var s seen
	res := b.run.loop.Tools.Invoke(ctx, host.Call{
		ID: c.ID, Tool: c.Name, Args: args, Most: b.most,
		Caller:   host.Caller{Session: b.run.session.ID, Agent: b.run.loop.Agent, Step: b.run.step},
		Progress: func(p abi.Progress) { b.send(Event{Kind: KindProgress, Call: &c, Progress: &p}) },
		Receipt: func(r abi.Receipt) {
			mu.Lock()
			defer mu.Unlock()
			s.receipts = append(s.receipts, r)
		},
		Denied: func(d host.Denied) {
			mu.Lock()
			s.refused = s.refused || d.Use == nil
			mu.Unlock()
			b.send(Event{Kind: KindDenied, Call: &c, Denied: &d})
		},
	})
	mu.Lock()
	defer mu.Unlock()
	s.result = res
	return s
}

// begin commits that a call enters its tool; false: it must not.
func (b *batch) begin(ctx context.Context, c model.Call) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.err != nil || ctx.Err() != nil {
		return false
	}
	spec, known := b.run.loop.spec(c.Name)
	if err := b.run.session.commit(ctx, Record{Kind: RecordStart, Step: b.run.step, Call: &c, Looks: known && looks(spec)}); err != nil {
		if ctx.Err() == nil {
			b.err = err
		}
		return false
	}
	b.began[c.ID] = time.Now()
	return true
}

// finish commits a result and shows it, unless the call has one already.
func (b *batch) finish(ctx context.Context, c model.Call, res abi.Result, o Outcome, receipts []abi.Receipt) {
	if b.record(ctx, c, res, o, receipts) {
		b.send(Event{Kind: KindFinish, Call: &c, Result: &res, Receipts: receipts})
	}
}

func (b *batch) record(ctx context.Context, c model.Call, res abi.Result, o Outcome, receipts []abi.Receipt) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.finished[c.ID] {
		return false
	}
	ctx, cancel := settling(ctx)
	defer cancel()
	b.finished[c.ID] = true
	err := b.run.session.commit(ctx, Record{
		Kind: RecordResult, Step: b.run.step, Outcome: o, Receipts: receipts,
		Result: &model.CallResult{ID: c.ID, Name: c.Name, Result: res},
	})
	b.err = errors.Join(b.err, err)
	return err == nil
}

// settle gives the calls that have no result one, and closes the step.
func (b *batch) settle(ctx context.Context, calls []model.Call) {
	for _, c := range calls {
		b.mu.Lock()
		began, started := b.began[c.ID]
		failed := b.err != nil
		b.mu.Unlock()
		res, o := skipped(why(ctx)), Skipped
		switch {
		case started:
			res, o = interrupted(time.Since(began), "", why(ctx)), Unknown
		case failed:
			res = skipped("the session could not be written down")
		}
		if b.record(ctx, c, res, o, nil) {
			b.run.emit(Event{Kind: KindFinish, Call: &c, Result: &res})
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.run.session.settle(func(c model.Call, began, _ bool) model.CallResult {
		res := skipped("the session could not be written down")
		if began {
			res = interrupted(0, "", "the session could not be written down")
		}
		return model.CallResult{ID: c.ID, Name: c.Name, Result: res}
	})
}

func (b *batch) send(e Event) {
	e.Step = b.run.step
	select {
	case b.events <- e:
	case <-b.over:
	}
}

func (b *batch) since(c model.Call) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Since(b.began[c.ID])
}

// why is a clause on the end of a context.
func why(ctx context.Context) string {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return "the run ended"
	case errors.Is(cause, context.DeadlineExceeded):
		return "the time for this run was over"
	case errors.Is(cause, context.Canceled):
		return "the run was cancelled"
	default:
		return cause.Error()
	}
}
