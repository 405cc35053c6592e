package term

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

func TestLinesOfAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	long := strings.Repeat("x", 9000)
	go func() {
		_, _ = io.WriteString(w, "one\r\n\nbad \xff byte\n"+long+"\nlast")
		w.Close()
	}()
	l := &LineReader{In: r}
	for _, want := range []string{"one", "", "bad \uFFFD byte", long, "last"} {
		if got, err := l.Read(t.Context()); err != nil || got != want {
			t.Fatalf("%.40q %v, want %.40q", got, err, want)
		}
	}
	for range 2 {
		if _, err := l.Read(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("at the end: %v", err)
		}
	}
}

func TestLinesWithoutEnd(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = io.Copy(w, io.LimitReader(endless{}, 3*maxInput))
		w.Close()
	}()
	l := &LineReader{In: r}
	got, err := l.Read(t.Context())
	if err != nil || len(got) > maxInput+4096 {
		t.Errorf("%d bytes of one line, %v", len(got), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&LineReader{In: r}).Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestStyleOfWhatIsNoTerminal(t *testing.T) {
	for set, want := range map[string]Style{"": {}, "CLICOLOR_FORCE=1": {Color: true}, "NO_COLOR=1 CLICOLOR_FORCE=1": {}, "TERM=dumb CLICOLOR_FORCE=1": {}} {
		env := map[string]string{}
		for _, s := range strings.Fields(set) {
			k, v, _ := strings.Cut(s, "=")
			env[k] = v
		}
		if got := StyleOf(io.Discard, func(k string) string { return env[k] }); got != want {
			t.Errorf("%q: %+v", set, got)
		}
	}
}
