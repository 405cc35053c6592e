package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// events is an event stream in which the data of each event stands on one line.
// mcp-go joins the lines of an event anew for each of them, which a server could
// make cost what it likes; a newline between the parts of a message says no more
// than a space. An event is as large as a line of a program may be.
type events struct {
	body io.ReadCloser
	r    *bufio.Reader
	busy *atomic.Int64 // as for lines
	take func(data []byte) bool
	out  []byte // not read yet
	err  error
}

// newEvents reads body. What take reports as taken does not appear in the
// stream; nil takes nothing. The data is valid during the call.
func newEvents(body io.ReadCloser, busy *atomic.Int64, take func(data []byte) bool) *events {
	return &events{body: body, r: bufio.NewReader(body), busy: busy, take: take}
}

func (e *events) Read(b []byte) (int, error) {
	for len(e.out) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.out, e.err = e.next()
	}
	n := copy(b, e.out)
	e.out = e.out[n:]
	return n, nil
}

func (e *events) Close() error { return e.body.Close() }

// event is one that is being read: the last value of each field, the data joined.
type event struct {
	kind, id, retry []byte
	data            []byte
	some            bool // it has data
}

// next is the next event as it is passed on. At the end of the stream that is
// one that was not finished, which mcp-go tells by the missing empty line.
func (e *events) next() ([]byte, error) {
	var ev event
	for size := 0; ; {
		limit := maxLine
		if e.busy.Load() > 0 {
			limit = maxAnswer
		}
		line, err := e.line(limit - size)
		if err == io.EOF {
			return ev.text(), err
		}
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			return e.whole(ev), nil
		}
		if line[0] != ':' { // a comment, which keeps connections alive
			size += len(line) + 1
			ev.add(line)
		}
	}
}

func (e *events) whole(ev event) []byte {
	if e.take != nil && ev.some && (len(ev.kind) == 0 || string(ev.kind) == "message") && e.take(ev.data) {
		ev.data, ev.some = nil, false
	}
	if out := ev.text(); len(out) > 0 {
		return append(out, '\n')
	}
	return nil
}

// line is the next line with its end; one without an end is not part of an event.
func (e *events) line(most int) ([]byte, error) {
	var long []byte
	for {
		part, err := e.r.ReadSlice('\n')
		if len(long)+len(part) > most {
			return nil, fmt.Errorf("an event of more than %d MiB", maxAnswer>>20)
		}
		switch {
		case err == nil && long == nil:
			return part, nil
		case err == nil:
			return append(long, part...), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
		long = append(long, part...)
	}
}

func (ev *event) add(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		ev.kind = append([]byte{}, value...)
	case "id":
		ev.id = append([]byte{}, value...)
	case "retry":
		ev.retry = append([]byte{}, value...)
	case "data":
		if ev.some {
			ev.data = append(ev.data, ' ')
		}
		ev.data, ev.some = append(ev.data, value...), true
	}
}

func (ev *event) text() []byte {
	out := make([]byte, 0, len(ev.data)+len(ev.kind)+len(ev.id)+len(ev.retry)+32)
	for _, f := range []struct {
		name  string
		value []byte
		some  bool
	}{{"event", ev.kind, ev.kind != nil}, {"id", ev.id, ev.id != nil}, {"retry", ev.retry, ev.retry != nil}, {"data", ev.data, ev.some}} {
		if f.some {
			out = append(append(append(append(out, f.name...), ": "...), f.value...), '\n')
		}
	}
	return out
}
