package outline

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
)

// Verb is the hidden first argument that makes the program a worker: it
// parses what comes in on standard input until that ends.
const Verb = "__outline"

// Limits of a worker process. A file of 10,000 lines takes 30 MB and a tenth
// of a second; one of 10 MB on a single line 1.2 GB.
const (
	workerMemory = 3 << 30 // of address space; the Go runtime reserves more than it uses
	workerCPU    = 600     // seconds, over all of its requests: then it is replaced
)

// Child is the worker. It gives up everything but its standard streams before
// it reads a byte, and returns an exit code.
func Child(stdin io.Reader, stdout, stderr io.Writer) int {
	debug.SetMemoryLimit(workerMemory / 2)
	if err := confine(); err != nil {
		fmt.Fprintln(stderr, "confining the parser:", err)
		return 4
	}
	in, out := bufio.NewReaderSize(stdin, 64<<10), bufio.NewWriterSize(stdout, 64<<10)
	p := &parser{}
	for {
		if err := serve(p, in, out); err != nil {
			if errors.Is(err, io.EOF) {
				return 0
			}
			fmt.Fprintln(stderr, err)
			return 1
		}
	}
}

// serve answers one request. io.EOF is the end of the requests.
func serve(p *parser, in io.Reader, out *bufio.Writer) error {
	id, err := readFrame(in, maxID)
	if err != nil {
		return err
	}
	src, err := readFrame(in, 2*maxSource) // UTF-16 grows
	if err != nil {
		return fmt.Errorf("reading a request: %w", err)
	}
	b, err := json.Marshal(parse(p, string(id), src))
	if err != nil {
		return fmt.Errorf("answering: %w", err)
	}
	if len(b) > maxReply {
		b = []byte(`{"f":"the outline is too long"}`)
	}
	if err := writeFrame(out, b); err != nil {
		return fmt.Errorf("answering: %w", err)
	}
	return out.Flush()
}

func parse(p *parser, id string, src []byte) reply {
	l := byID(id)
	if l == nil {
		return reply{Failed: "the language is not known"}
	}
	t, err := p.parse(context.Background(), l, src)
	if err != nil {
		return reply{Failed: err.Error()}
	}
	return l.answer(t)
}
