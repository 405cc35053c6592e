package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

// maxLine is the longest message that is taken, in bytes. The SDK ends the
// connection at 10 MiB; what is longer than this never reaches it.
const maxLine = 10<<20 - 1<<10

// maxHead is how much of a message that is too long is looked at, to answer it.
const maxHead = 4 << 10

// errGone is why everything ends when the client has.
var errGone = errors.New("the client is gone")

// input is the client's messages on their way to the SDK, which handles
// requests beside each other. Here they begin in the order in which they came:
// no message is passed on before the one before it was taken, so that a
// session/cancel always finds the prompt that it means.
type input struct {
	r     *bufio.Reader
	out   *output
	ready chan struct{} // closed when the connection is set up
	ended <-chan struct{}

	rest []byte // of the message that is being passed on

	mu      sync.Mutex
	id      json.RawMessage // of the message that was passed on last
	waiting *step           // until it is taken; nil: it needs not be
}

// step is over once. A message that was not taken in time may be taken later.
type step struct {
	sync.Once
	over chan struct{}
}

func (s *step) end() { s.Do(func() { close(s.over) }) }

// message is what the SDK looks at.
type message struct {
	ID     *json.RawMessage  `json:"id"`
	Method string            `json:"method"`
	Params json.RawMessage   `json:"params"`
	Error  *sdk.RequestError `json:"error"`
}

// takeTime bounds the wait for a message to be taken: the SDK drops some. One
// that is handled is taken at once, which on a busy machine is a while.
const takeTime = 10 * time.Second

// lastAnswers is how long what was asked last may take, on a busy machine too,
// when the client's side has ended.
const lastAnswers = 10 * time.Second

// Read implements io.Reader, one message a line.
func (in *input) Read(p []byte) (int, error) {
	for len(in.rest) == 0 {
		<-in.ready
		in.await()
		line, err := in.next()
		if len(line) > 0 {
			in.rest = append(line, '\n')
			break
		}
		if err != nil {
			in.linger()
			return 0, err
		}
	}
	n := copy(p, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}

// linger gives what was asked last the time to be answered: a script may close
// its end right behind its last request. Prompts are not waited for.
func (in *input) linger() {
	t := time.NewTimer(lastAnswers)
	defer t.Stop()
	select {
	case <-in.out.settled():
	case <-in.ended:
	case <-t.C:
	}
}

func (in *input) await() {
	in.mu.Lock()
	waiting := in.waiting
	in.mu.Unlock()
	if waiting == nil {
		return
	}
	t := time.NewTimer(takeTime)
	defer t.Stop()
	select {
	case <-waiting.over:
	case <-in.ended:
	case <-t.C:
	}
}

// request is the message that is being handled.
type request struct {
	id    string // "" of a notification
	taken func() // lets the next message come; may be called more than once
}

// current is the message that was passed on last. The one that handles it asks.
func (in *input) current() request {
	in.mu.Lock()
	defer in.mu.Unlock()
	q := request{string(in.id), func() {}}
	if in.waiting != nil {
		q.taken = in.waiting.end
	}
	return q
}

// next gives a message that the SDK can read, or nothing.
func (in *input) next() ([]byte, error) {
	line, long, err := readLine(in.r)
	line = bytes.TrimSpace(line)
	if long {
		return in.tooLong(line), err
	}
	if len(line) == 0 {
		return nil, err
	}
	var m message
	if perr := json.Unmarshal(line, &m); perr != nil {
		var syntax *json.SyntaxError
		e := sdk.NewInvalidRequest(map[string]any{"error": "a message is one object, with a method that is a string"})
		if errors.As(perr, &syntax) {
			e = sdk.NewParseError(map[string]any{"error": perr.Error()})
		}
		in.out.reply(nil, e)
		return nil, err
	}
	if m.Method == "" && m.ID == nil {
		in.out.reply(nil, sdk.NewInvalidRequest(map[string]any{"error": "a message has a method or an id"}))
		return nil, err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.id, in.waiting = nil, nil
	if m.ID != nil {
		in.id = *m.ID
	}
	if m.Method != "" && m.Method != cancelRequest {
		in.waiting = &step{over: make(chan struct{})}
	}
	if m.ID != nil && m.Method != "" && m.Method != sdk.AgentMethodSessionPrompt {
		in.out.owe(string(in.id))
	}
	return line, err
}

// cancelRequest is handled by the SDK itself.
const cancelRequest = "$/cancel_request"

// tooLong answers a request of which head is the beginning. In place of an
// answer that is too long, the one who waits for it gets an error.
func (in *input) tooLong(head []byte) []byte {
	id, method := peek(head)
	text := fmt.Sprintf("the message is over %d MiB", maxLine>>20+1)
	e := sdk.NewInvalidRequest(map[string]any{"error": text})
	if id == nil || method != "" {
		in.out.reply(id, e)
		return nil
	}
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": e})
	if err != nil {
		return nil
	}
	return b
}

// peek finds the id and the method in the beginning of a message.
func peek(head []byte) (id json.RawMessage, method string) {
	d := json.NewDecoder(bytes.NewReader(head))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, ""
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			break
		}
		var v json.RawMessage
		if d.Decode(&v) != nil {
			break
		}
		switch key {
		case "id":
			id = v
		case "method":
			_ = json.Unmarshal(v, &method)
		}
	}
	return id, method
}

// readLine reads up to a newline, or to the end. Of a line that is too long it
// gives the beginning.
func readLine(r *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if !long {
			line = append(line, part...)
			if len(line) > maxLine {
				line, long = bytes.Clone(line[:maxHead]), true
			}
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}
