package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// patience is how long a host may take for one answer. Compiling is part of it.
const patience = 60 * time.Second

// maxLine bounds an answer, in bytes.
const maxLine = 32 << 20

// Process is a host that runs as another program. Close it.
type Process struct {
	Command []string
	Stderr  io.Writer

	cmd  *exec.Cmd
	in   io.WriteCloser
	out  chan line
	next int
}

type line struct {
	text []byte
	err  error
}

// Ask implements [Host]. The program is started when it does not run.
func (p *Process) Ask(ctx context.Context, r Request) (Response, error) {
	if p.cmd == nil {
		if err := p.start(); err != nil {
			return Response{}, fmt.Errorf("starting the host %q: %w", p.Command[0], err)
		}
	}
	p.next++
	r.ID = p.next
	res, err := p.ask(ctx, r)
	if err != nil {
		p.stop()
	}
	return res, err
}

func (p *Process) ask(ctx context.Context, r Request) (res Response, err error) {
	b, err := json.Marshal(r)
	if err != nil {
		return res, err
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	sent := make(chan error, 1)
	go func() {
		_, err := p.in.Write(append(b, '\n'))
		sent <- err
	}()
	var answer line
	select {
	case answer = <-p.out:
	case <-late.C:
		return res, fmt.Errorf("the host was silent for %v", patience)
	case <-ctx.Done():
		return res, ctx.Err()
	}
	if answer.err != nil {
		return res, fmt.Errorf("the host ended: %w", errors.Join(answer.err, p.cmd.Wait()))
	}
	if err := <-sent; err != nil {
		return res, err
	}
	if err := json.Unmarshal(answer.text, &res); err != nil {
		return res, fmt.Errorf("the host's answer is no JSON of the protocol: %w", err)
	}
	if res.ID != r.ID {
		return res, fmt.Errorf("the host answered request %d with %d", r.ID, res.ID)
	}
	return res, nil
}

func (p *Process) start() error {
	cmd := exec.Command(p.Command[0], p.Command[1:]...)
	cmd.Stderr = p.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.in, p.out = cmd, in, make(chan line, 1)
	go func(to chan<- line) {
		s := bufio.NewScanner(out)
		s.Buffer(nil, maxLine)
		for s.Scan() {
			to <- line{text: append([]byte(nil), s.Bytes()...)}
		}
		err := s.Err()
		if err == nil {
			err = io.EOF
		}
		to <- line{err: err}
	}(p.out)
	return nil
}

// stop ends the program, so that the next request goes to a new one.
func (p *Process) stop() {
	if p.cmd == nil {
		return
	}
	p.in.Close()
	p.cmd.Process.Kill()
	p.cmd.Wait()
	go func(from <-chan line) { // its reader may still have something to say
		for l := range from {
			if l.err != nil {
				return
			}
		}
	}(p.out)
	p.cmd = nil
}

// Close ends the host.
func (p *Process) Close() error {
	if p.cmd == nil {
		return nil
	}
	p.in.Close()
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case err := <-done:
		p.cmd = nil
		return err
	case <-time.After(5 * time.Second):
		p.stop()
		return errors.New("the host did not end when its input did")
	}
}
