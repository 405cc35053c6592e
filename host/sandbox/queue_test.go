package sandbox

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func TestQueueKeepsTheOrder(t *testing.T) {
	q := newQueue(1)
	if err := q.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	var (
		mu    sync.Mutex
		order []int
		wg    sync.WaitGroup
	)
	for i := range 5 {
		wg.Go(func() {
			if err := q.enter(t.Context()); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			q.leave()
		})
		waitFor(t, func() bool { q.mu.Lock(); defer q.mu.Unlock(); return q.wait.Len() == i+1 })
	}
	q.leave()
	wg.Wait()
	for i, n := range order {
		if i != n {
			t.Fatalf("order %v", order)
		}
	}
	if q.free != 1 {
		t.Errorf("%d places are free", q.free)
	}
}

func TestQueueCancel(t *testing.T) {
	q := newQueue(1)
	q.enter(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- q.enter(ctx) }()
	waitFor(t, func() bool { q.mu.Lock(); defer q.mu.Unlock(); return q.wait.Len() == 1 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	q.leave()
	if q.free != 1 || q.wait.Len() != 0 {
		t.Errorf("free %d, waiting %d", q.free, q.wait.Len())
	}
}

// TestWaitingForAPersonDoesNotCount: the watch stands still meanwhile.
func TestWaitingForAPersonDoesNotCount(t *testing.T) {
	begin := time.Now()
	waited := func() time.Duration { return min(time.Since(begin), 150*time.Millisecond) }
	ctx, w := startWatch(t.Context(), 50*time.Millisecond, waited)
	w.arm()
	defer w.stop()
	<-ctx.Done()
	if d := time.Since(begin); d < 200*time.Millisecond {
		t.Errorf("it ended after %v", d)
	}
	var limit *LimitError
	if !errors.As(context.Cause(ctx), &limit) || !w.expired() {
		t.Error(context.Cause(ctx))
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}

func FuzzCheckJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,"x\"\u0041"],"b":{"a":null}}`, `{"a":1,"a":2}`, `[[[[]]]]`, `1e999`, `"`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(_ *testing.T, b []byte) {
		checkJSON(b, 16)
		head, _, err := splitFrame(b)
		if err == nil {
			newHeader[modelHeader]().decode(head)
		}
	})
}
