package acp

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	sdk "github.com/coder/acp-go-sdk"
)

// output is the messages to the client. The SDK writes each with one Write.
type output struct {
	w      io.Writer
	failed context.CancelCauseFunc

	mu    sync.Mutex
	owed  map[string]func() // answers to come by the ID of their request, and what follows them
	quiet chan struct{}     // closed when no answer is owed any more; nil: nobody waits
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	n, err := o.w.Write(b)
	after := o.answered(b)
	o.mu.Unlock()
	if err != nil {
		o.failed(errGone)
		return n, err
	}
	if after != nil {
		go after()
	}
	return n, nil
}

// owe notes that a request waits for its answer.
func (o *output) owe(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.owed == nil {
		o.owed = map[string]func(){}
	}
	o.owed[id] = nil
}

// then has f run once the request with this ID is answered.
func (o *output) then(id string, f func()) {
	o.owe(id)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.owed[id] = f
}

// settled is closed when no answer is owed.
func (o *output) settled() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	done := make(chan struct{})
	if len(o.owed) == 0 {
		close(done)
	} else {
		o.quiet = done
	}
	return done
}

// answered takes note of an answer, and gives what follows it.
func (o *output) answered(b []byte) func() {
	if len(o.owed) == 0 {
		return nil
	}
	id, method := peek(b[:min(len(b), maxHead)])
	f, owed := o.owed[string(id)]
	if method != "" || !owed {
		return nil
	}
	delete(o.owed, string(id))
	if len(o.owed) == 0 && o.quiet != nil {
		close(o.quiet)
		o.quiet = nil
	}
	return f
}

// reply answers in place of the SDK.
func (o *output) reply(id json.RawMessage, e *sdk.RequestError) {
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": e})
	if err == nil {
		_, _ = o.Write(append(b, '\n'))
	}
}
