package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/elfhost/elfhost/internal/app"
)

func withTerminals() sdk.ClientCapabilities { return sdk.ClientCapabilities{Terminal: true} }

func (e *editor) terminal(f final) string {
	for _, c := range f.content {
		if c.Terminal != nil {
			return c.Terminal.TerminalId
		}
	}
	return ""
}

// TestTerminalsOfTheEditor: a command runs where the person sees it; since no
// kernel sandbox of ours holds it there, each is asked about, whatever the mode.
func TestTerminalsOfTheEditor(t *testing.T) {
	h := newHouse(t)
	h.script(call("Shell", `{"command":"echo \"it's\" $WHAT; exit 3","env":{"WHAT":"here"}}`), say("It said: {{result}}"))
	e := h.start(auto)
	e.hello(withTerminals())
	id := e.open()
	e.ask(id, "run it")
	if len(e.created) != 1 || len(e.released) != 1 {
		t.Fatalf("created %+v, released %v", e.created, e.released)
	}
	q := e.created[0]
	if q.SessionId != id || *q.Cwd != h.dir || !filepath.IsAbs(q.Command) || len(q.Args) != 2 || q.Args[0] != "-c" || *q.OutputByteLimit < 100<<10 {
		t.Errorf("the terminal was wanted as %+v", q)
	}
	for _, v := range q.Env {
		if v.Name == "PATH" || v.Name == "HOME" {
			t.Errorf("the editor's own %s was set", v.Name)
		}
	}
	if c := e.call("Shell"); e.terminal(c) != "term-1" || c.status != "failed" || c.kind != sdk.ToolKindExecute {
		t.Errorf("the call was shown as %+v", c)
	}
	if got := e.said(); !strings.Contains(got, "it's here") || !strings.Contains(got, "Exit code 3") {
		t.Errorf("the agent said %q", got)
	}
	if len(e.questions) != 1 {
		t.Fatalf("%d questions", len(e.questions))
	}
	text := questionText(e.questions[0])
	if !strings.Contains(text, "a terminal of Test Editor") || !strings.Contains(text, "outside the kernel sandbox") {
		t.Errorf("the question does not say where it runs:\n%s", text)
	}
	if ids, _ := options(e.questions[0]); slices.Contains(ids, "allow_always") {
		t.Errorf("it could be allowed for good: %q", ids)
	}
}

// TestTerminalsOfZed: Zed gives a command to a shell, and its versions differ
// in whether they quote the arguments, so it gets none.
func TestTerminalsOfZed(t *testing.T) {
	for name, quotes := range map[string]bool{"0.210": false, "1.0": true} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.script(call("Shell", `{"command":"echo \"it's\" \u0027$HOME\u0027 $((40+2)) | cat; exit 3"}`), say("It said: {{result}}"))
			e := h.start(auto, func(_ *app.Editor, e *editor) { e.zed, e.quotes = true, quotes })
			e.hello(withTerminals())
			e.ask(e.open(), "run it")
			if got := e.said(); !strings.Contains(got, "it's $HOME 42") || !strings.Contains(got, "Exit code 3") {
				t.Errorf("the agent said %q; the terminal was wanted as %+v", got, e.created)
			}
		})
	}
}

func TestTerminalThatTakesTooLong(t *testing.T) {
	var said string
	// On a busy machine a command may not come so far in a short time.
	for limit := 300 * time.Millisecond; limit < time.Minute && !strings.Contains(said, "begun"); limit *= 4 {
		h := newHouse(t)
		h.script(call("Shell", fmt.Sprintf(`{"command":"echo begun; exec sleep 600","timeoutSeconds":%g}`, limit.Seconds())), say("It said: {{result}}"))
		e := h.start()
		e.hello(withTerminals())
		e.ask(e.open(), "run it")
		if len(e.killed) != 1 || len(e.released) != 1 {
			t.Errorf("killed %v, released %v", e.killed, e.released)
		}
		if said = e.said(); !strings.Contains(said, "it took longer than "+limit.String()) {
			t.Errorf("the agent said %q", said)
		}
	}
	if !strings.Contains(said, "begun") {
		t.Errorf("the agent said %q", said)
	}
}

func TestCancelInATerminal(t *testing.T) {
	h := newHouse(t)
	h.script(call("Shell", `{"command":"touch beat; exec sleep 60"}`), say("x"))
	e := h.start()
	e.hello(withTerminals())
	id := e.open()
	go func() {
		wait(t, "the command works", beating(h))
		_ = e.conn.Cancel(e.ctx(), sdk.CancelNotification{SessionId: id})
	}()
	if r := e.ask(id, "run it"); r.StopReason != sdk.StopReasonCancelled {
		t.Errorf("the turn ended with %s", r.StopReason)
	}
	e.until("the terminal is given back", func() bool { return len(e.released) == 1 })
	if len(e.killed) != 1 {
		t.Errorf("killed %v", e.killed)
	}
}

// TestOwnTerminals: where a policy wants a kernel sandbox, or the person does,
// commands stay in ours.
func TestOwnTerminals(t *testing.T) {
	for name, set := range map[string]func(*house) func(*app.Editor, *editor){
		"the policy": func(h *house) func(*app.Editor, *editor) {
			h.file(filepath.Join(h.home, "policy.toml"), "require_sandbox = true\n")
			return auto
		},
		"the person": func(*house) func(*app.Editor, *editor) {
			return func(a *app.Editor, _ *editor) { a.Session.Mode, a.Session.OwnTerminals = "auto", true }
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.script(call("Shell", `{"command":"echo $$ > pid"}`), say("It said: {{result}}"))
			e := h.start(set(h))
			e.hello(withTerminals())
			e.ask(e.open(), "run it")
			if len(e.created) != 0 {
				t.Errorf("the editor was asked: %+v", e.created)
			}
			if strings.Contains(e.said(), "no kernel sandbox") || strings.Contains(e.said(), "requires a kernel sandbox") {
				t.Skip("no kernel sandbox works here")
			}
			if _, err := os.Stat(filepath.Join(h.dir, "pid")); err != nil || len(e.questions) != 0 {
				t.Errorf("%v, %d questions: %s", err, len(e.questions), e.said())
			}
		})
	}
}

// TestLongOutputOfATerminal: whatever a client sends, the tail is kept.
func TestLongOutputOfATerminal(t *testing.T) {
	h := newHouse(t)
	h.script(call("Shell", `{"command":"seq 100000","outputByteLimit":1000}`), say("It said: {{result}}"))
	e := h.start()
	e.hello(withTerminals())
	e.ask(e.open(), "run it")
	got := e.said()
	if len(got) > 2000 || !strings.Contains(got, "the beginning left out (truncated)") || !strings.Contains(got, "\n100000") || strings.Contains(got, "\n99\n") {
		t.Errorf("the agent said %d bytes: %.300q", len(got), got)
	}
}
