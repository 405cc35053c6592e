package mcp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is odd about a first listing is told too, though adding the server
// agreed to it.
func TestMC05FirstListing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tools.json")
	_ = os.WriteFile(file, []byte(`[{"name":"add","description":"adds\u200b\u202e","inputSchema":{"type":"object"}}]`), 0o600)
	pins := t.TempDir()
	for _, first := range []bool{true, false} {
		r := newRig(t, Options{Pins: pins})
		r.add(t, fakeServer(t, "fake", "plain", "FAKE_TOOLS="+file))
		r.connect(t, "fake")
		st := r.Status()[0]
		if len(st.Flagged) != 1 || !strings.Contains(st.Flagged[0], "mcp__fake__add: the description held 2 invisible characters") {
			t.Errorf("flagged %q", st.Flagged)
		}
		if got := r.logged("warning what it says of its tools is odd: mcp__fake__add"); got != first {
			t.Errorf("first %v, told %v", first, got)
		}
	}
}

// How a server did is known to those who do not start it, without secrets.
func TestLast(t *testing.T) {
	pins := t.TempDir()
	hide := func(s string) string { return strings.ReplaceAll(s, "no database", "[hidden]") }
	bad, held := fakeServer(t, "bad", "exit"), fakeServer(t, "held", "plain")
	r := newRig(t, Options{Pins: pins, Scrub: hide})
	r.add(t, bad, held)
	_ = r.Connect(t.Context(), "bad")
	r.connect(t, "held")
	r.do(t, "mcp__held__echo", `{"do":"alter"}`)
	later := newRig(t, Options{Pins: pins})
	later.add(t, bad, held)
	all := later.Status()
	if l := all[0].Last; all[0].State != "idle" || l == nil || !strings.Contains(l.Error, "exit status 7") || !strings.Contains(l.Error, "[hidden]") {
		t.Errorf("%+v %+v", all[0], all[0].Last)
	}
	if l := all[1].Last; l == nil || l.Error != "" || len(l.Held) != 1 {
		t.Errorf("%+v", l)
	}
	// A failure is no agreement to anything.
	if later.reg.Has("mcp__bad__echo") || later.all()[0].known() {
		t.Error("a server that failed counts as known")
	}
	change, _ := r.Held("held")
	if err := r.Agree(change); err != nil {
		t.Fatal(err)
	}
	if l := later.Status()[1].Last; l == nil || len(l.Held) != 0 {
		t.Errorf("%+v", l)
	}
	if b, _ := filepath.Glob(filepath.Join(pins, ".*")); len(b) > 0 {
		t.Errorf("left behind: %q", b)
	}
}
