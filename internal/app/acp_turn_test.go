package app_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/elfhost/elfhost/internal/app"
)

func auto(a *app.Editor, _ *editor) { a.Session.Mode = "auto" }

// beats writes to a file as long as it lives.
const beats = `{"command":"while :; do date +%s%N > beat; sleep 0.05; done"}`

// stopped reports that nobody writes the file any more.
func stopped(t *testing.T, h *house) {
	t.Helper()
	was, err := os.Stat(filepath.Join(h.dir, "beat"))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if now, err := os.Stat(filepath.Join(h.dir, "beat")); err != nil || !now.ModTime().Equal(was.ModTime()) {
		t.Error("the command is still at work")
	}
}

func beating(h *house) func() bool {
	return func() bool { _, err := os.Stat(filepath.Join(h.dir, "beat")); return err == nil }
}

func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func TestCancelInACall(t *testing.T) {
	h := newHouse(t)
	h.script(call("Shell", beats), say("Went on."))
	e := h.start(auto)
	e.hello(sdk.ClientCapabilities{})
	id := e.open()
	go func() {
		wait(t, "the command works", beating(h))
		if err := e.conn.Cancel(context.Background(), sdk.CancelNotification{SessionId: id}); err != nil {
			t.Error(err)
		}
	}()
	if r := e.ask(id, "run it"); r.StopReason != sdk.StopReasonCancelled {
		t.Errorf("the turn ended with %s", r.StopReason)
	}
	stopped(t, h)
	if c := e.call("Shell"); c.status != "failed" || !strings.Contains(c.text(), "interrupted") {
		t.Errorf("the call was shown as %+v", c)
	}
	if strings.Contains(e.said(), "Went on") {
		t.Error("the turn went on")
	}
}

// TestCancelAtAQuestion: the client answers its question as cancelled, as the
// protocol wants, and the prompt is answered as cancelled.
func TestCancelAtAQuestion(t *testing.T) {
	h := newHouse(t)
	editing(h)
	asked, cancelled := make(chan struct{}), make(chan struct{})
	e := h.start(func(_ *app.Editor, e *editor) {
		e.permit = func(context.Context, sdk.RequestPermissionRequest) string {
			close(asked)
			<-cancelled
			return ""
		}
	})
	e.hello(sdk.ClientCapabilities{})
	id := e.open()
	go func() {
		<-asked
		_ = e.conn.Cancel(context.Background(), sdk.CancelNotification{SessionId: id})
		close(cancelled)
	}()
	if r := e.ask(id, "change it"); r.StopReason != sdk.StopReasonCancelled {
		t.Errorf("the turn ended with %s", r.StopReason)
	}
	if got := h.read("notes.txt"); got != "hello world\n" {
		t.Errorf("the file says %q", got)
	}
	if c := e.call("EditFile"); c.status != "failed" {
		t.Errorf("the call was shown as %+v", c)
	}
}

func TestPlan(t *testing.T) {
	h := newHouse(t)
	h.script(call("Plan", `{"entries":[{"content":"look","priority":"high","status":"completed"},{"content":"leap","priority":"low","status":"in_progress"}]}`), say("Done."))
	e := h.start()
	e.hello(sdk.ClientCapabilities{})
	e.ask(e.open(), "plan it")
	check := func(e *editor) {
		t.Helper()
		var plans [][]sdk.PlanEntry
		for _, u := range e.all() {
			if p := u.Update.Plan; p != nil {
				plans = append(plans, p.Entries)
			}
		}
		want := []sdk.PlanEntry{{Content: "look", Priority: "high", Status: "completed"}, {Content: "leap", Priority: "low", Status: "in_progress"}}
		if len(plans) != 1 || len(plans[0]) != 2 || plans[0][0].Content != want[0].Content || plans[0][0].Status != want[0].Status || plans[0][1].Priority != want[1].Priority {
			t.Errorf("the plans were %+v", plans)
		}
		if calls := e.calls(); len(calls) != 0 {
			t.Errorf("beside the plan, calls were shown: %+v", calls)
		}
	}
	check(e)
	id := e.all()[0].SessionId
	e.leave()
	e = h.start()
	e.hello(sdk.ClientCapabilities{})
	if _, err := e.conn.LoadSession(e.ctx(), sdk.LoadSessionRequest{SessionId: id, Cwd: h.dir, McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	check(e)
}

// yields gives the agent the tools of the other dialect, which has SessionsYield.
func yields(a *app.Editor, e *editor) {
	auto(a, e)
	a.Session.Dialect = "tinyelf"
}

func TestStopReasons(t *testing.T) {
	for name, c := range map[string]struct {
		turns []string
		set   func(*app.Editor, *editor)
		want  sdk.StopReason
	}{
		"refusal":  {[]string{"[[turn]]\ntext = 'no'\nstop = 'refusal'\n"}, auto, sdk.StopReasonRefusal},
		"length":   {[]string{"[[turn]]\ntext = 'so lo'\nstop = 'length'\n"}, auto, sdk.StopReasonMaxTokens},
		"steps":    {[]string{call("ListDir", `{}`), call("ListDir", `{"path":"."}`), say("x")}, func(a *app.Editor, _ *editor) { a.Limits.Steps = 1 }, sdk.StopReasonMaxTurnRequests},
		"the end":  {[]string{say("x")}, auto, sdk.StopReasonEndTurn},
		"a yield":  {[]string{call("SessionsYield", `{"message":"until later"}`), say("x")}, yields, sdk.StopReasonEndTurn},
		"a circle": {slices.Repeat([]string{call("ListDir", `{}`)}, 12), auto, sdk.StopReasonEndTurn},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.script(c.turns...)
			e := h.start(c.set)
			e.hello(sdk.ClientCapabilities{})
			r := e.ask(e.open(), "go")
			if r.StopReason != c.want {
				t.Errorf("the turn ended with %s", r.StopReason)
			}
			if r.Usage == nil || r.Usage.TotalTokens == 0 {
				t.Errorf("it used %+v", r.Usage)
			}
			if name == "a yield" && !strings.Contains(e.said(), "until later") || name == "a circle" && !strings.Contains(e.said(), "in circles") {
				t.Errorf("the agent said %q", e.said())
			}
		})
	}
}

// TestModelFails: an error of the vendor is one of the prompt, and the session goes on.
func TestModelFails(t *testing.T) {
	h := newHouse(t)
	h.script("[[turn]]\nwhen = { prompt = 'first' }\nerror = 'auth'\n", say("Here again."))
	e := h.start()
	e.hello(sdk.ClientCapabilities{})
	id := e.open()
	_, err := e.conn.Prompt(e.ctx(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock("first")}})
	if code(err) != -32000 || !strings.Contains(err.Error(), "the key in the environment") {
		t.Errorf("a refused key: %v", err)
	}
	if e.ask(id, "second"); e.said() != "Here again." {
		t.Errorf("the agent said %q", e.said())
	}
}

func TestPromptDuringAPrompt(t *testing.T) {
	h := newHouse(t)
	h.script(call("Shell", `{"command":"touch beat; while [ ! -e go ]; do sleep 0.05; done"}`), say("First."), say("Second."))
	e := h.start(auto)
	e.hello(sdk.ClientCapabilities{})
	id := e.open()
	first := make(chan sdk.PromptResponse)
	go func() { first <- e.ask(id, "one") }()
	wait(t, "the command works", beating(h))
	again := sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock("two")}}
	if _, err := e.conn.Prompt(e.ctx(), again); code(err) != -32600 {
		t.Errorf("a prompt during a prompt: %v", err)
	}
	if _, err := e.conn.UnstableSetSessionModel(e.ctx(), sdk.UnstableSetSessionModelRequest{SessionId: id, ModelId: "scripted/script.toml"}); code(err) != -32600 {
		t.Errorf("another model during a prompt: %v", err)
	}
	h.file("go", "")
	if r := <-first; r.StopReason != sdk.StopReasonEndTurn || e.said() != "First." {
		t.Errorf("the first ended with %s: %q", r.StopReason, e.said())
	}
	if e.ask(id, "two"); e.said() != "First.Second." {
		t.Errorf("the agent said %q", e.said())
	}
}

func TestTwoSessionsAtOnce(t *testing.T) {
	h := newHouse(t)
	h.script(call("Shell", `{"command":"mktemp -p . here-XXXXXX; while [ $(ls here-* | wc -l) -lt 2 ]; do sleep 0.05; done","timeoutSeconds":20}`),
		"[[turn]]\nwhen = { tool = 'Shell', error = false }\ntext = 'Met.'\n")
	e := h.start(auto)
	e.hello(sdk.ClientCapabilities{})
	var group sync.WaitGroup
	ids := []sdk.SessionId{e.open(), e.open()}
	for _, id := range ids {
		group.Go(func() { e.ask(id, "meet") })
	}
	group.Wait()
	if got := e.said(); got != "Met.Met." {
		t.Errorf("they said %q", got)
	}
	if ids[0] == ids[1] {
		t.Error("both are one session")
	}
}

// TestEverythingEndsWithTheClient: a closed input ends turns and commands, in
// the background too.
func TestEverythingEndsWithTheClient(t *testing.T) {
	for name, args := range map[string]string{"a turn": beats, "a job": strings.Replace(beats, "}", `,"background":true}`, 1)} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.script(call("Shell", args), say("Done."))
			e := h.start(auto)
			e.hello(sdk.ClientCapabilities{})
			id := e.open()
			go func() {
				_, _ = e.conn.Prompt(context.Background(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock("run it")}})
			}()
			wait(t, "the command works", beating(h))
			e.leave()
			stopped(t, h)
		})
	}
}

// TestClientDiesAtAQuestion: nobody's answer is a no.
func TestClientDiesAtAQuestion(t *testing.T) {
	h := newHouse(t)
	editing(h)
	asked := make(chan struct{})
	e := h.start(func(_ *app.Editor, e *editor) {
		e.permit = func(ctx context.Context, _ sdk.RequestPermissionRequest) string {
			close(asked)
			<-ctx.Done()
			return "allow_once"
		}
	})
	e.hello(sdk.ClientCapabilities{})
	id := e.open()
	go func() {
		_, _ = e.conn.Prompt(context.Background(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock("x")}})
	}()
	<-asked
	e.leave()
	if got := h.read("notes.txt"); got != "hello world\n" {
		t.Errorf("the file says %q", got)
	}
}
