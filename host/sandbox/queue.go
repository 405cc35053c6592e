package sandbox

import (
	"container/list"
	"context"
	"sync"
)

// queue lets n in at once; the others wait in the order of their arrival.
type queue struct {
	mu   sync.Mutex
	free int
	wait list.List // of chan struct{}
}

func newQueue(n int) *queue { return &queue{free: n} }

// enter waits for a place. After an error nothing is held.
func (q *queue) enter(ctx context.Context) error {
	q.mu.Lock()
	if q.free > 0 && q.wait.Len() == 0 {
		q.free--
		q.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	at := q.wait.PushBack(turn)
	q.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-turn: // the turn came at the same moment: pass it on
		q.next()
	default:
		q.wait.Remove(at)
	}
	return ctx.Err()
}

func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next()
}

// next gives a place to the first in line, or takes it back.
func (q *queue) next() {
	if first := q.wait.Front(); first != nil {
		close(q.wait.Remove(first).(chan struct{}))
		return
	}
	q.free++
}
