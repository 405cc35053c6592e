package mcp

import "sync"

// later is what calls have left to do when their answers are known.
type later struct {
	mu   sync.Mutex
	todo []func()
	over bool // run was called: what comes now is done at once
}

func (l *later) add(f func()) {
	l.mu.Lock()
	over := l.over
	if !over {
		l.todo = append(l.todo, f)
	}
	l.mu.Unlock()
	if over {
		f()
	}
}

func (l *later) run() {
	l.mu.Lock()
	todo := l.todo
	l.todo, l.over = nil, true
	l.mu.Unlock()
	for _, f := range todo {
		f()
	}
}
