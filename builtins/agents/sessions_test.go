package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/archive"
	"github.com/elfhost/elfhost/host/model"
)

// desk is a conversation with the session tools, in an archive.
type desk struct {
	t       *testing.T
	archive *archive.Archive
	model   *cast
	tools   *host.Registry
	runs    *agent.Runs
	notes   []string // that were shown
}

func newDesk(t *testing.T, parts map[string][]answer) *desk {
	t.Helper()
	d := &desk{t: t, archive: &archive.Archive{Path: filepath.Join(t.TempDir(), "s.db")}, model: &cast{parts: parts}}
	s := Sessions{Archive: d.archive, Origin: "here"}
	d.runs = &agent.Runs{Session: s.Open}
	d.tools = host.New(host.Options{Gate: &host.Gate{Mode: host.ModeAuto}})
	if err := d.tools.Add(append(SessionTools(Options{Runs: d.runs}, s), Yield())...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.runs.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := d.archive.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d
}

// in runs f inside of a tool of a conversation in the session id.
func (d *desk) in(id, origin string, f func(ctx context.Context, c host.Call)) agent.Event {
	d.t.Helper()
	s, err := d.archive.Start(archive.Info{ID: id, Origin: origin})
	if err != nil {
		d.t.Fatal(err)
	}
	inside := &tool.Func{
		S: host.Spec{Name: "inside", Description: "x", Origin: host.Origin{Source: host.Builtin}, Input: json.RawMessage(`{"type":"object"}`)},
		Run: func(ctx context.Context, c host.Call) (abi.Result, error) {
			f(ctx, c)
			return abi.Text("done"), nil
		},
	}
	if err := d.tools.Add(inside); err != nil {
		d.t.Fatal(err)
	}
	defer d.tools.Remove("inside")
	d.model.parts["open "+id] = []answer{does("inside", "{}")}
	l := &agent.Loop{Model: d.model, Tools: d.tools, Retry: model.Retry{Attempts: 1}}
	var last agent.Event
	for e, err := range l.Run(context.Background(), s, abi.TextBlock("open "+id)) {
		if err != nil {
			d.t.Fatal(err)
		}
		if last = e; e.Kind == agent.KindNote {
			d.notes = append(d.notes, e.Text)
		}
	}
	if err := model.Check(s.Messages()); err != nil {
		d.t.Fatal(err)
	}
	return last
}

func (d *desk) call(ctx context.Context, c host.Call, name string, args map[string]any) abi.Result {
	b, err := json.Marshal(args)
	if err != nil {
		d.t.Fatal(err)
	}
	return d.tools.Invoke(ctx, host.Call{ID: "x", Tool: name, Args: b, Caller: c.Caller})
}

func (d *desk) has(r abi.Result, bad bool, words ...string) {
	d.t.Helper()
	for _, w := range words {
		if !strings.Contains(r.Text(), w) || r.IsError != bad {
			d.t.Errorf("want %q (error %v), got (error %v)\n%s", w, bad, r.IsError, r.Text())
		}
	}
}

func TestASessionFromSpawnToSend(t *testing.T) {
	d := newDesk(t, map[string][]answer{"count": {says("I counted to three."), says("To four.")}})
	d.in("main", "here", func(ctx context.Context, c host.Call) {
		res := d.call(ctx, c, "SessionsSpawn", map[string]any{"prompt": "count\nto three", "title": "Counting"})
		id := regexp.MustCompile(`ses_[a-z2-7]{26}`).FindString(res.Text())
		if id == "" {
			t.Fatal(res.Text())
		}
		if err := d.runs.Wait(ctx, agent.Current(ctx)); err != nil {
			t.Fatal(err)
		}
		d.has(d.call(ctx, c, "SessionsList", nil), false, id, "Counting", "main", "(this session)")
		d.has(d.call(ctx, c, "SessionsList", map[string]any{"limit": 1}), false, "offset 1")
		d.has(d.call(ctx, c, "SessionsHistory", map[string]any{"sessionId": id}), false, "to three", "I counted to three.")
		d.has(d.call(ctx, c, "SessionsSend", map[string]any{"sessionId": id, "message": "go on"}), false, "To four.")
		d.has(d.call(ctx, c, "SessionsHistory", map[string]any{"sessionId": id, "limit": 2}), false, "earlier messages are left out", "go on", "To four.")
		d.has(d.call(ctx, c, "SessionsSend", map[string]any{"sessionId": "main", "message": "hello"}), true, "that you are in")
	})
}

func TestSendToASessionAtWork(t *testing.T) {
	d := newDesk(t, map[string][]answer{"dig": {says("I dig."), says("I stopped digging.")}})
	begun, go_ := make(chan struct{}), make(chan struct{})
	first := true
	d.model.before = func(ctx context.Context, part string) {
		if part == "dig" && first {
			first = false
			close(begun)
			<-go_
		}
	}
	d.in("main", "here", func(ctx context.Context, c host.Call) {
		res := d.call(ctx, c, "SessionsSpawn", map[string]any{"prompt": "dig"})
		id := regexp.MustCompile(`ses_[a-z2-7]{26}`).FindString(res.Text())
		<-begun
		d.has(d.call(ctx, c, "SessionsSend", map[string]any{"sessionId": id, "message": "stop it"}), false, "at work")
		close(go_)
		if err := d.runs.Wait(ctx, agent.Current(ctx)); err != nil {
			t.Fatal(err)
		}
		d.has(d.call(ctx, c, "SessionsHistory", map[string]any{"sessionId": id}), false, "I dig.", "stop it", "I stopped digging.")
	})
}

// SES-01: identifiers are checked, and what cannot be seen is not there.
func TestSES01IdentifiersAreCheckedByTheTools(t *testing.T) {
	d := newDesk(t, map[string][]answer{})
	d.in("alien", "elsewhere", func(context.Context, host.Call) {})
	d.in("older", "here", func(context.Context, host.Call) {})
	d.in("main", "here", func(ctx context.Context, c host.Call) {
		for _, id := range []string{"../../etc/passwd", "a/b", "", strings.Repeat("a", 300), "a\x00b", "alien", "nothing", "*", "%"} {
			for _, name := range []string{"SessionsHistory", "SessionsSend"} {
				res := d.call(ctx, c, name, map[string]any{"sessionId": id, "message": "x"})
				if name == "SessionsHistory" {
					res = d.call(ctx, c, name, map[string]any{"sessionId": id})
				}
				if !res.IsError || strings.Contains(res.Text(), "open alien") || strings.Contains(res.Text(), "root:") {
					t.Errorf("%s of %.20q: %s", name, id, res.Text())
				}
			}
		}
		a := d.call(ctx, c, "SessionsHistory", map[string]any{"sessionId": "alien"}).Text()
		n := d.call(ctx, c, "SessionsHistory", map[string]any{"sessionId": "nothing"}).Text()
		if strings.ReplaceAll(a, "alien", "nothing") != n {
			t.Errorf("what may not be seen is told from what is not there:\n%s\n%s", a, n)
		}
		d.has(d.call(ctx, c, "SessionsHistory", map[string]any{"sessionId": "older"}), false, "open older")
		if text := d.call(ctx, c, "SessionsList", nil).Text(); strings.Contains(text, "alien") {
			t.Error(text)
		}
		// The same question from a sub-agent whose session is not kept.
		c.Caller.Agent, c.Caller.Session = "helper", "ghost"
		d.has(d.call(ctx, c, "SessionsHistory", map[string]any{"sessionId": "older"}), true, "no session older")
		d.has(d.call(ctx, c, "SessionsList", nil), false, "There are no sessions")
		// A person's single call comes from no session, and sees those of its folder.
		c.Caller.Agent = ""
		d.has(d.call(ctx, c, "SessionsHistory", map[string]any{"sessionId": "older"}), false, "open older")
		d.has(d.call(ctx, c, "SessionsHistory", map[string]any{"sessionId": "alien"}), true, "no session alien")
	})
}

func TestASessionInUseIsNotRunTwice(t *testing.T) {
	d := newDesk(t, map[string][]answer{})
	d.in("older", "here", func(context.Context, host.Call) {}) // and stays open, as in another window
	d.in("main", "here", func(ctx context.Context, c host.Call) {
		d.has(d.call(ctx, c, "SessionsSend", map[string]any{"sessionId": "older", "message": "x"}), true, "in use")
	})
}

// Whoever goes on with a session that died in a call is shown so, the person
// as well as the model.
func TestSendToASessionThatDied(t *testing.T) {
	d := newDesk(t, map[string][]answer{"begin": {says("never said"), says("I look first.")}})
	ctx := context.Background()
	if _, err := d.archive.Start(archive.Info{ID: "older", Origin: "here"}); err != nil {
		t.Fatal(err)
	}
	user, k := model.User(abi.TextBlock("begin")), model.Call{ID: "c", Name: "Bash", Args: `{"command":"make"}`}
	for i, r := range []agent.Record{
		{Kind: agent.RecordMessage, Message: &user},
		{Kind: agent.RecordMessage, Message: &model.Message{Role: model.RoleAssistant, Blocks: []model.Block{{Call: &k}}}},
		{Kind: agent.RecordStart, Call: &k},
	} {
		r.Seq = int64(i + 1)
		if err := d.archive.Append(ctx, "older", r); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.archive.Release(ctx, "older"); err != nil {
		t.Fatal(err)
	}
	d.in("main", "here", func(ctx context.Context, c host.Call) {
		d.has(d.call(ctx, c, "SessionsSend", map[string]any{"sessionId": "older", "message": "go on"}), false, "I look first.")
	})
	if len(d.notes) != 1 || !strings.Contains(d.notes[0], "older was interrupted in the middle of a call of Bash") || !strings.Contains(d.notes[0], "make") {
		t.Errorf("the person was shown %q", d.notes)
	}
}

func TestYieldEndsTheLoop(t *testing.T) {
	d := newDesk(t, map[string][]answer{})
	last := d.in("main", "here", func(ctx context.Context, c host.Call) {
		d.has(d.call(ctx, c, "SessionsYield", map[string]any{"message": "That is all."}), false, "ends here")
	})
	if last.Stop != agent.StopYield || last.Text != "That is all." {
		t.Errorf("%+v", last)
	}
	d.has(d.call(context.Background(), host.Call{}, "SessionsYield", map[string]any{"message": "x"}), true, "no conversation")
	d.has(d.call(context.Background(), host.Call{}, "SessionsSpawn", map[string]any{"prompt": "x"}), true, "was not started")
}

func TestWhoIsAskedAboutSessions(t *testing.T) {
	d := newDesk(t, map[string][]answer{})
	got := ""
	for _, name := range []string{"SessionsSpawn", "SessionsList", "SessionsSend", "SessionsHistory", "SessionsYield"} {
		s, ok := d.tools.Spec(name)
		if !ok {
			t.Fatal(name)
		}
		got += fmt.Sprintf("%s %v\n", name, s.Safe())
	}
	if want := "SessionsSpawn false\nSessionsList true\nSessionsSend false\nSessionsHistory true\nSessionsYield true\n"; got != want {
		t.Error(got)
	}
}
