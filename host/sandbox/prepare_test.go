package sandbox_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox"
)

// unhurried is a plugin whose module is read when the test says so: a step that no
// context stops, as the translation before a snapshot is.
func unhurried(t *testing.T) (p *sandbox.Plugin, began, goOn chan struct{}) {
	began, goOn = make(chan struct{}, 9), make(chan struct{})
	pkg := pkgOf(guest(t, "probe"), abi.Manifest{Tools: probeDecl})
	read := pkg.Wasm
	pkg.Wasm = func() ([]byte, error) {
		began <- struct{}{}
		<-goOn
		return read()
	}
	l := &sandbox.Loader{Dir: filepath.Join(work, "cache"), Compiler: self(t)}
	pkg.Manifest.Name, pkg.Digest = "slow", ""
	p, err := l.Load(t.Context(), pkg)
	if err != nil {
		t.Fatal(err)
	}
	return p, began, goOn
}

// TestCancelWhilePreparing: who is gone does not wait for what cannot be
// stopped, nothing is begun twice meanwhile, and the plugin works afterwards.
func TestCancelWhilePreparing(t *testing.T) {
	p, began, goOn := unhurried(t)
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-began; cancel(gone) }()
	if err := p.Warm(ctx, nil); !errors.Is(err, gone) {
		t.Fatalf("cancelled while the module is read: %v", err)
	}
	if err := p.Warm(ctx, nil); !errors.Is(err, gone) {
		t.Errorf("a second one that is over: %v", err)
	}
	if len(began) != 0 {
		t.Error("the module is read twice at once")
	}
	close(goOn)
	r, err := p.Tools()[0].Call(t.Context(), host.Call{Args: []byte(`{"do":"echo","a":"x"}`)})
	if err != nil || r.IsError {
		t.Errorf("a call afterwards: %v %v", r.Text(), err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCloseWhilePreparing: what is made ready behind a caller that has gone is
// waited for, or stopped, and given back.
func TestCloseWhilePreparing(t *testing.T) {
	p, began, goOn := unhurried(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if err := p.Warm(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	closed := make(chan error)
	go func() { closed <- p.Close(t.Context()) }()
	select {
	case err := <-closed:
		t.Fatalf("Close does not wait for what uses the plugin (%v)", err)
	case goOn <- struct{}{}:
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// TestPanicWhilePreparing: it ends in who asked, and nobody else waits for ever.
func TestPanicWhilePreparing(t *testing.T) {
	pkg := pkgOf(guest(t, "probe"), abi.Manifest{Tools: probeDecl})
	pkg.Digest, pkg.Wasm = "", func() ([]byte, error) { panic("a bug") }
	p, err := (&sandbox.Loader{Compiler: self(t)}).Load(t.Context(), pkg)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		func() {
			defer func() {
				if r := recover(); r != "a bug" {
					t.Errorf("it is not where it can be told: %v", r)
				}
			}()
			t.Error(p.Warm(t.Context(), nil))
		}()
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
