// Package wire is what all providers share below their vendor's library: a
// bounded reader of server-sent events, an HTTP transport that turns every
// kind of refusal into a *model.Error, and the mapping of vendors' errors.
//
// It sits below the libraries because they leave gaps (measured): lines
// without bound, a comment line that hides an error in the stream, a cut
// stream that reads like a whole one, headers that cannot be reached.
package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/elfhost/elfhost/host/model"
)

// Bounds of a stream. A search result with its encrypted content is a line of
// some hundred kilobytes; nothing sane comes near these.
const (
	maxEvent  = 8 << 20
	maxStream = 128 << 20
)

// Event is one server-sent event. Data may hold line feeds.
type Event struct {
	Name string
	Data []byte
}

// Reader parses server-sent events as the WHATWG HTML specification has them
// (section 9.2.6), within bounds. ID and retry fields are dropped.
type Reader struct {
	src   *bufio.Reader
	total int
	line  []byte
	began bool
	cr    bool // the last byte was a CR
}

// NewReader reads events from r.
func NewReader(r io.Reader) *Reader { return &Reader{src: bufio.NewReaderSize(r, 16<<10)} }

// Next gives the next event. An event without data is not one. At the end of
// the input the error is io.EOF, or io.ErrUnexpectedEOF inside an event,
// which is lost then; model.ErrTooLarge past a bound.
func (r *Reader) Next() (Event, error) {
	var e Event
	has := false
	for {
		line, err := r.readLine()
		if err != nil {
			return Event{}, r.end(err, has)
		}
		if len(line) == 0 {
			if has {
				return e, nil
			}
			e.Name = ""
			continue
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(name) {
		case "event":
			e.Name = string(value)
		case "data":
			if has {
				e.Data = append(e.Data, '\n')
			}
			has = true
			if len(e.Data)+len(value) > maxEvent {
				return Event{}, tooLarge("one event")
			}
			e.Data = append(e.Data, value...)
		}
	}
}

// end decides what the end of the input means.
func (r *Reader) end(err error, has bool) error {
	if errors.Is(err, io.EOF) && (has || len(r.line) > 0) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readLine gives a line without its end, which is LF, CR LF or CR alone. The
// slice is valid until the next call.
func (r *Reader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		c, err := r.src.ReadByte()
		if err != nil {
			return nil, err
		}
		if r.total++; r.total > maxStream {
			return nil, tooLarge("the stream")
		}
		// The LF of a CR LF is skipped when it comes, which may be much later:
		// waiting for it would hold back an event that is complete.
		after := r.cr
		r.cr = c == '\r'
		switch {
		case c == '\n' && after:
			continue
		case c == '\n' || c == '\r':
			return r.first(r.line), nil
		case len(r.line) >= maxEvent:
			return nil, tooLarge("one line")
		}
		r.line = append(r.line, c)
	}
}

// first strips the byte order mark of the very first line.
func (r *Reader) first(line []byte) []byte {
	if !r.began {
		r.began = true
		return bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line
}

func tooLarge(what string) error {
	return &model.Error{Code: model.ErrTooLarge, Message: what + " is over the limit"}
}
