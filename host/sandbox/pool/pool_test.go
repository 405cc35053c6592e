package pool_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elfhost/elfhost/host/sandbox/pool"
)

// thing counts what is done to it. out guards against two users at once.
type thing struct {
	f      *factory
	dirty  atomic.Bool
	closed atomic.Bool
	broken bool
}

type factory struct {
	made, open, resets atomic.Int64
}

func (f *factory) new(context.Context) (*thing, error) {
	f.made.Add(1)
	f.open.Add(1)
	return &thing{f: f}, nil
}

func (x *thing) Reset(context.Context) error {
	x.f.resets.Add(1)
	if x.broken {
		return errors.New("broken")
	}
	x.dirty.Store(false)
	return nil
}

func (x *thing) Close(context.Context) error {
	if x.closed.Swap(true) {
		panic("closed twice")
	}
	x.f.open.Add(-1)
	return nil
}

func TestClean(t *testing.T) {
	f := &factory{}
	p := &pool.Pool[*thing]{New: f.new}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 500 {
				x, err := p.Get(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if x.dirty.Swap(true) || x.closed.Load() {
					t.Error("handed out dirty, closed or twice")
				}
				p.Put(t.Context(), x, i%50 == 0)
			}
		})
	}
	wg.Wait()
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := f.open.Load(); n != 0 {
		t.Errorf("%d instances are left open", n)
	}
	if _, err := p.Get(t.Context()); !errors.Is(err, pool.ErrClosed) {
		t.Errorf("Get after Close: %v", err)
	}
}

func TestReuse(t *testing.T) {
	f := &factory{}
	p := &pool.Pool[*thing]{New: f.new}
	defer p.Close(t.Context())
	for range 100 {
		x, _ := p.Get(t.Context())
		x.dirty.Store(true)
		p.Put(t.Context(), x, false)
	}
	if n := f.made.Load(); n > 4 { // the worker may hold one while it cleans
		t.Errorf("%d instances for calls one after the other", n)
	}
}

func TestFailedIsReplaced(t *testing.T) {
	f := &factory{}
	p := &pool.Pool[*thing]{New: f.new}
	defer p.Close(t.Context())
	x, _ := p.Get(t.Context())
	p.Put(t.Context(), x, true)
	if !x.closed.Load() {
		t.Error("a failed instance lives on")
	}
	wait(t, func() bool { return p.Len() == 1 })
}

func TestBrokenResetIsClosed(t *testing.T) {
	f := &factory{}
	p := &pool.Pool[*thing]{New: f.new}
	defer p.Close(t.Context())
	x, _ := p.Get(t.Context())
	x.broken = true
	p.Put(t.Context(), x, false)
	wait(t, x.closed.Load)
	if y, err := p.Get(t.Context()); err != nil || y == x {
		t.Errorf("%v, %v", y, err)
	}
}

func TestBoundAndIdle(t *testing.T) {
	f := &factory{}
	p := &pool.Pool[*thing]{New: f.new, Max: 2, Idle: 20 * time.Millisecond}
	defer p.Close(t.Context())
	var out []*thing
	for range 5 {
		x, _ := p.Get(t.Context())
		out = append(out, x)
	}
	for _, x := range out {
		p.Put(t.Context(), x, false)
	}
	if n := f.open.Load(); n > 3 { // two idle, and one that the worker holds
		t.Errorf("%d instances are open", n)
	}
	wait(t, func() bool { return f.open.Load() == 0 })
}

func wait(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}
