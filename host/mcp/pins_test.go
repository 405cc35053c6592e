package mcp

import (
	"context"
	"os"
	"strings"
	"testing"
)

// A file of pins that was torn costs one question: not the server, and not the
// agreement to what it lists now.
func TestTornPins(t *testing.T) {
	for _, text := range []string{"", `{"server":"fake","tools":[{"na`, `{"digest":"another"}`} {
		asked := make(chan Change, 4)
		pins := t.TempDir()
		s := fakeServer(t, "fake", "plain")
		file := (&link{c: &Client{opt: Options{Pins: pins}}, s: s}).pinFile()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := newRig(t, Options{Pins: pins, Consent: func(_ context.Context, c Change) (bool, error) { asked <- c; return true, nil }})
		r.add(t, s)
		r.connect(t, "fake")
		c := <-asked
		if len(c.Added) != 1 || len(c.Flagged) != 1 || !strings.Contains(c.Flagged[0], "could not be read") {
			t.Errorf("after %q: %+v", text, c)
		}
		wait(t, func() bool { return r.reg.Has("mcp__fake__echo") })
		r.Status() // waits for the file
		later := newRig(t, Options{Pins: pins})
		later.add(t, s)
		if !later.reg.Has("mcp__fake__echo") {
			t.Errorf("after %q: what was agreed to is forgotten", text)
		}
	}
}

// Nobody is there to be asked: it stays held, and is asked again next time.
func TestTornPinsHeld(t *testing.T) {
	pins := t.TempDir()
	s := fakeServer(t, "fake", "prompts") // whose prompts are news
	file := (&link{c: &Client{opt: Options{Pins: pins}}, s: s}).pinFile()
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r := newRig(t, Options{Pins: pins})
		r.add(t, s)
		r.Start()
		wait(t, func() bool { return len(r.Status()[0].Held) == 1 })
		if r.reg.Has("mcp__fake__echo") || !r.logged("cannot be read") {
			t.Error("it is offered, or nothing is said")
		}
	}
}
