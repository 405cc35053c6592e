package term

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
)

// LineReader reads lines that a terminal lets a person edit by itself, or that
// come through a pipe. It is for one goroutine at a time.
type LineReader struct {
	In *os.File

	rest []byte
	err  error
}

// Read gives the next line, without its end. At a terminal the end of ctx ends
// it, and nothing is lost; a pipe may keep it until the next line comes. What
// is no UTF-8 is replaced.
func (l *LineReader) Read(ctx context.Context) (string, error) {
	tty := IsTerminal(l.In)
	buf := make([]byte, 4096)
	for {
		if i := bytes.IndexByte(l.rest, '\n'); i >= 0 {
			line := string(l.rest[:i])
			l.rest = l.rest[i+1:]
			return strings.ToValidUTF8(strings.TrimSuffix(line, "\r"), "\uFFFD"), nil
		}
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case l.err != nil && len(l.rest) > 0:
			line := string(l.rest)
			l.rest = nil
			return strings.ToValidUTF8(strings.TrimSuffix(line, "\r"), "\uFFFD"), nil
		case l.err != nil:
			err := l.err
			if tty {
				l.err = nil // Ctrl-D ends what is asked now, and no more
			}
			return "", err
		case len(l.rest) > maxInput:
			l.rest = append(l.rest, '\n')
			continue
		}
		if tty { // which has a line when it is readable
			ready, err := readable(l.In, pollStep)
			if err == nil && !ready {
				continue
			}
		}
		n, err := l.In.Read(buf)
		l.rest = append(l.rest, buf[:n]...)
		if l.err = err; n == 0 && err == nil {
			l.err = io.EOF
		}
	}
}
