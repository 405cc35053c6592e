package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const (
	maxQuestions = 1000                   // that wait for their answers
	lookEvery    = 200 * time.Millisecond // for answers that another server took
)

// questions are the requests to clients of before 2026-07-28 over HTTP. mcp-go
// numbers them from 1 in each process, so that the answer to one server's could
// pass for the answer to another's, or to one from before a restart. Clients get
// sealed ids in place of the numbers; whichever server the answer comes to sees
// from them whose it is, and leaves it where that one looks.
type questions struct {
	seal   seal
	shared Shared
	self   string       // this process
	next   http.Handler // mcp-go's
	b      *Bridge

	mu      sync.Mutex
	waiting map[string]unanswered // by sealed id
	looking bool
}

// asked is what a sealed id says.
type asked struct {
	By      string `json:"b"` // the process
	Session string `json:"s"` // its digest
	Number  string `json:"n"`
	Until   int64  `json:"u"`
}

// unanswered is one that waits here.
type unanswered struct {
	session string
	number  string // mcp-go's id
	until   int64
}

// seals gives a question a sealed id; messages that are none stay as they are.
func (q *questions) seals(session string, line []byte) (out []byte, id string, err error) {
	if !bytes.Contains(line, []byte(`"method"`)) {
		return line, "", nil
	}
	m, err := readMessage(line)
	if err != nil || m.method == "" || m.id == nil || m.method == string(mcp.MethodPing) {
		return line, "", nil
	}
	a := asked{By: q.self, Session: digest(session), Number: string(m.id), Until: time.Now().Add(answerLife).Unix()}
	b, err := json.Marshal(a)
	if err != nil {
		return nil, "", err
	}
	id = q.seal.close("asked", b)
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= maxQuestions {
		return nil, "", errors.New("too many questions wait for their answers")
	}
	if q.waiting == nil {
		q.waiting = map[string]unanswered{}
	}
	q.waiting[id] = unanswered{session, a.Number, a.Until}
	if !q.looking {
		q.looking = q.b.rounds.beside(q.look)
	}
	out, err = withID(line, `"`+id+`"`)
	return out, id, err
}

// withID gives a message another id.
func withID(line []byte, id string) ([]byte, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, err
	}
	m["id"] = json.RawMessage(id)
	return json.Marshal(m)
}

// answered takes a client's answer.
func (q *questions) answered(w http.ResponseWriter, r *http.Request, g *guard, m message, body []byte) {
	session := r.Header.Get(server.HeaderKeySessionID)
	if !g.open(w, session) {
		return
	}
	var id string
	a, err := asked{}, json.Unmarshal(m.id, &id)
	if err != nil { // a number: that of a ping, for whose answer nobody waits
		w.WriteHeader(http.StatusAccepted)
		return
	}
	var b []byte
	if b, err = q.seal.open("asked", id); err == nil {
		err = json.Unmarshal(b, &a)
	}
	switch {
	case err != nil || a.Session != digest(session):
		g.refuse(w, http.StatusBadRequest, "nothing was asked under this id")
	case time.Now().Unix() > a.Until:
		g.refuse(w, http.StatusBadRequest, "the question has expired")
	case a.By == q.self:
		wanted, ok := q.forget(id)
		if !ok {
			g.refuse(w, http.StatusBadRequest, "the question was answered already, or its call has ended")
			return
		}
		q.deliver(w, r.Context(), wanted, body)
	default:
		switch first, err := q.shared.Put(askedKey(id), body, time.Unix(a.Until, 0)); {
		case err != nil:
			g.refuse(w, http.StatusServiceUnavailable, "the answer could not be passed on to the server that asked")
		case !first:
			g.refuse(w, http.StatusBadRequest, "the question was answered already")
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}
}

func askedKey(id string) string { return "asked-" + digest(id) }

// deliver gives an answer to mcp-go, under the number that it knows.
func (q *questions) deliver(w http.ResponseWriter, ctx context.Context, a unanswered, body []byte) {
	body, err := withID(body, a.number)
	if err != nil {
		http.Error(w, "the answer could not be read", http.StatusBadRequest)
		return
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp", bytes.NewReader(body))
	if err != nil {
		http.Error(w, "the answer could not be passed on", http.StatusInternalServerError)
		return
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(server.HeaderKeySessionID, a.session)
	q.next.ServeHTTP(w, r)
}

// forget takes a question out of those that wait.
func (q *questions) forget(id string) (unanswered, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a, ok := q.waiting[id]
	delete(q.waiting, id)
	return a, ok
}

// look looks for answers that others took, as long as any is waited for.
func (q *questions) look() {
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for {
		select {
		case <-q.b.life.Done():
			return
		case now := <-every.C:
			q.mu.Lock()
			var ids []string
			for id, a := range q.waiting {
				if now.Unix() > a.until {
					delete(q.waiting, id)
					continue
				}
				ids = append(ids, id)
			}
			if q.looking = len(ids) > 0; !q.looking {
				q.mu.Unlock()
				return
			}
			q.mu.Unlock()
			for _, id := range ids {
				q.fetch(id)
			}
		}
	}
}

func (q *questions) fetch(id string) {
	body, known, err := q.shared.Value(askedKey(id))
	if err != nil || !known {
		return
	}
	if a, ok := q.forget(id); ok {
		q.deliver(unheard{http.Header{}}, q.b.life, a, body)
	}
}

// asking is the answer to a client on which mcp-go writes its questions, each
// event with one Write.
type asking struct {
	http.ResponseWriter
	q       *questions
	session string

	mu  sync.Mutex
	ids []string // of the questions on it
}

// end is called when the answer is complete: nothing of it is open any more.
func (a *asking) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range a.ids {
		a.q.forget(id)
	}
}

const eventHead = "event: message\ndata: "

func (a *asking) Write(b []byte) (int, error) {
	line, ok := bytes.CutPrefix(b, []byte(eventHead))
	if !ok {
		return a.ResponseWriter.Write(b)
	}
	line, id, err := a.q.seals(a.session, bytes.TrimSuffix(line, []byte("\n\n")))
	if err != nil {
		return 0, err
	}
	if id != "" {
		a.mu.Lock()
		a.ids = append(a.ids, id)
		a.mu.Unlock()
	}
	if _, err := fmt.Fprintf(a.ResponseWriter, "%s%s\n\n", eventHead, line); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Flush implements http.Flusher.
func (a *asking) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (a *asking) Unwrap() http.ResponseWriter { return a.ResponseWriter }
