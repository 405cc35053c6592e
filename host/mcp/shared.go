package mcp

import (
	"errors"
	"maps"
	"sync"
	"time"
)

// Shared keeps values for a while, for servers that stand in for each other:
// the answers that were taken, the sessions that were ended, and the answers
// that one server took for another. It is safe for concurrent use.
type Shared interface {
	// Put keeps a value, which may be forgotten after until, and reports whether
	// it is the key's first: another one changes nothing.
	Put(key string, value []byte, until time.Time) (first bool, err error)
	// Value gives a key's value; known is false where there is none.
	Value(key string) (value []byte, known bool, err error)
}

// local is the Shared of one process. The zero value is ready.
type local struct {
	mu   sync.Mutex
	kept map[string]kept
}

type kept struct {
	value []byte
	until time.Time
}

const maxKept = 10_000

func (l *local) Put(key string, value []byte, until time.Time) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, twice := l.kept[key]; twice {
		return false, nil
	}
	if len(l.kept) >= maxKept {
		maps.DeleteFunc(l.kept, func(_ string, k kept) bool { return time.Now().After(k.until) })
	}
	if len(l.kept) >= maxKept { // better to ask anew than to take an answer twice
		return false, errors.New("too many answers and sessions are remembered")
	}
	if l.kept == nil {
		l.kept = map[string]kept{}
	}
	l.kept[key] = kept{value, until}
	return true, nil
}

func (l *local) Value(key string) ([]byte, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, known := l.kept[key]
	return k.value, known, nil
}
