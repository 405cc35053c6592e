package sandbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox"
)

func draft(t *testing.T, l *sandbox.Loader, wasm []byte, m abi.Manifest) *sandbox.Plugin {
	t.Helper()
	m.Tools = probeDecl
	pkg := pkgOf(wasm, m)
	pkg.Draft = true
	p, err := l.Load(t.Context(), pkg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(context.Background()) })
	return p
}

// TestDraftAnswersFirst: a draft answers before there is machine code, and has
// it in the end, for whoever loads the module later too.
func TestDraftAnswersFirst(t *testing.T) {
	var logs []sandbox.LogLine
	logged := make(chan struct{})
	none := &sandbox.Loader{Dir: t.TempDir(), Compiler: filepath.Join(t.TempDir(), "none"), Log: func(l sandbox.LogLine) { logs = append(logs, l); close(logged) }}
	p := draft(t, none, replies("\x00ok"), abi.Manifest{})
	for range 2 {
		if r, err := p.Tools()[0].Call(t.Context(), host.Call{}); err != nil || r.Text() != "ok" {
			t.Fatalf("%q, %v", r.Text(), err)
		}
	}
	<-logged
	if logs[0].Level != "warn" {
		t.Errorf("without a compiler the log says %+v", logs)
	}
	whole := &sandbox.Loader{Dir: t.TempDir(), Compiler: self(t)}
	q := draft(t, whole, replies("\x00ok"), abi.Manifest{})
	end := time.Now().Add(3 * time.Minute)
	for {
		if r, err := q.Tools()[0].Call(t.Context(), host.Call{}); err != nil || r.Text() != "ok" {
			t.Fatalf("%q, %v", r.Text(), err)
		}
		if kept, _ := filepath.Glob(filepath.Join(whole.Dir, "*.elf")); len(kept) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the machine code is not made")
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code, err := os.ReadDir(filepath.Join(whole.Dir, "code")); err != nil || len(code) == 0 {
		t.Errorf("%v, %v", code, err)
	}
}

// TestDraftIsNoLessBound: what is interpreted has the limits, the imports and
// the rights of every plugin.
func TestDraftIsNoLessBound(t *testing.T) {
	l := &sandbox.Loader{Dir: t.TempDir(), Compiler: filepath.Join(t.TempDir(), "none")}
	loop := tiny{call: append([]byte{0x03, 0x40, 0x0c, 0x00, 0x0b}, constI64(0)...)}.bytes()
	p := draft(t, l, loop, abi.Manifest{Limits: abi.Limits{Fuel: 100_000}})
	var spent *sandbox.LimitError
	if _, err := p.Tools()[0].Call(t.Context(), host.Call{}); !errors.As(err, &spent) {
		t.Errorf("a loop without end: %v", err)
	}
	p = draft(t, l, loop, abi.Manifest{Limits: abi.Limits{Time: 200 * time.Millisecond}})
	if _, err := p.Tools()[0].Call(t.Context(), host.Call{}); !errors.Is(err, abi.ErrDeadline) {
		t.Errorf("a loop without end: %v", err)
	}
}
