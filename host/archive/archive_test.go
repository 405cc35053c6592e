package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/store"
)

func TestASessionComesBackAsItWas(t *testing.T) {
	ctx, a := context.Background(), open(t)
	s := start(t, a, "one")
	if _, err := a.Load(ctx, "one"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a session in which nothing was said is there: %v", err)
	}
	l := loopOf(script{does(call("a", "Read", `{"n":1}`), call("b", "Read", `{"n":2}`)), says("Do", "ne.")}, newTool("Read", host.KindRead, echo))
	if stop := work(t, l, s, "  read both\nplease"); stop != agent.StopEnd {
		t.Fatal(stop)
	}
	if _, _, err := a.Resume(ctx, "one"); !errors.Is(err, ErrBusy) {
		t.Errorf("resumed beside itself: %v", err)
	}
	must(t, a.Release(ctx, "one"))
	back, repairs, err := a.Resume(ctx, "one")
	must(t, err)
	if said(back) != said(s) || len(repairs) != 0 || back.Usage() != s.Usage() {
		t.Errorf("came back as\n%swant\n%s(repairs %v)", said(back), said(s), repairs)
	}
	info, err := a.Find(ctx, "on")
	must(t, err)
	if info.Title != "read both" || info.Records == 0 {
		t.Errorf("%+v", info)
	}
	calls, err := a.store.Calls(ctx, "one")
	must(t, err)
	if len(calls) != 2 || calls[0].State != store.Done || calls[1].State != store.Done {
		t.Errorf("%+v", calls)
	}
}

// interrupted makes a session whose process died while calls were running.
func interrupted(t *testing.T, a *Archive, id string) {
	t.Helper()
	ctx := context.Background()
	s := start(t, a, id)
	m := model.Message{Role: model.RoleAssistant}
	for _, c := range []model.Call{call("w", "Bash", `{}`), call("r", "Read", `{}`), call("d", "Read", `{}`), call("p", "Bash", `{}`)} {
		m.Blocks = append(m.Blocks, model.Block{Call: &c})
	}
	user := model.User(abi.TextBlock("go"))
	w, r, d := call("w", "Bash", `{}`), call("r", "Read", `{}`), call("d", "Read", `{}`)
	for i, rec := range []agent.Record{
		{Kind: agent.RecordMessage, Message: &user},
		{Kind: agent.RecordMessage, Message: &m, Stop: model.StopCalls, Step: 1},
		{Kind: agent.RecordStart, Call: &w},
		{Kind: agent.RecordStart, Call: &r, Looks: true},
		{Kind: agent.RecordStart, Call: &d, Looks: true},
		{Kind: agent.RecordResult, Result: &model.CallResult{ID: "d", Name: "Read", Result: abi.Text("had it")}, Outcome: agent.Done},
	} {
		rec.Seq = int64(i + 1)
		must(t, a.Append(ctx, s.ID, rec))
	}
	must(t, a.Release(ctx, id)) // what is left when a process dies
}

func TestInterruptedCallsAreSettledOnceAndTold(t *testing.T) {
	ctx, a := context.Background(), open(t)
	interrupted(t, a, "one")
	s, repairs, err := a.Resume(ctx, "one")
	must(t, err)
	onePerCall(t, s)
	got := map[string]agent.Outcome{}
	for _, p := range repairs {
		got[p.Call.ID] = p.Outcome
	}
	if len(got) != 3 || got["w"] != agent.Unknown || got["r"] != agent.Failed || got["p"] != agent.Skipped {
		t.Errorf("repairs %v", got)
	}
	for _, want := range []string{"may have had effects", "may be repeated", "had it", "had no effects"} {
		if !strings.Contains(said(s), want) {
			t.Errorf("the results do not say %q:\n%s", want, said(s))
		}
	}
	lost, err := a.Unsettled(ctx, "one")
	if must(t, err); len(lost) != 1 || lost[0].ID != "w" || lost[0].Tool != "Bash" {
		t.Errorf("for a person to see: %+v", lost)
	}
	before := said(s)
	must(t, a.Release(ctx, "one"))
	s, repairs, err = a.Resume(ctx, "one")
	must(t, err)
	if len(repairs) != 0 || said(s) != before {
		t.Errorf("the second time: repairs %v\n%s", repairs, said(s))
	}
	if stop := work(t, loopOf(script{nil, says("I look first.")}), s, "go on"); stop != agent.StopEnd {
		t.Errorf("it cannot go on: %s", stop)
	}
}

// A session whose process died tells what it was doing before somebody goes on
// with it; one that is at work has lost nothing.
func TestInterruptedCallsAreSeenBeforeTheyAreSettled(t *testing.T) {
	ctx, a := context.Background(), open(t)
	interrupted(t, a, "one")
	other := &Archive{Path: a.Path}
	defer other.Close(ctx)
	lost, err := other.Unsettled(ctx, "one")
	if must(t, err); len(lost) != 1 || lost[0].ID != "w" || lost[0].State != store.Running {
		t.Errorf("before: %+v", lost)
	}
	tr, err := other.Load(ctx, "one")
	must(t, err)
	if r, err := tr.Replay(ctx); err != nil || r.Divergence != nil || r.Open != 3 || r.Calls != 4 {
		t.Errorf("replayed: %+v %v", r, err)
	}
	_, _, err = a.Resume(ctx, "one")
	must(t, err)
	w := call("again", "Bash", `{}`)
	m := model.Message{Role: model.RoleAssistant, Blocks: []model.Block{{Call: &w}}}
	must(t, a.Append(ctx, "one", agent.Record{Seq: 10, Kind: agent.RecordMessage, Message: &m}))
	must(t, a.Append(ctx, "one", agent.Record{Seq: 11, Kind: agent.RecordStart, Call: &w}))
	lost, err = other.Unsettled(ctx, "one")
	if must(t, err); len(lost) != 1 || lost[0].ID != "w" || lost[0].State != store.Unknown {
		t.Errorf("at work: %+v", lost)
	}
}

// What sub-agents were doing when the process died is told to whoever goes on
// with the session that started them, once.
func TestInterruptedSubAgentsAreTold(t *testing.T) {
	ctx, a := context.Background(), open(t)
	user := model.User(abi.TextBlock("go"))
	begin := func(parent, child string, seq int64) {
		t.Helper()
		must(t, a.Append(ctx, parent, agent.Record{Seq: seq, Kind: agent.RecordRun, Run: &agent.RunState{ID: "run_" + child, Session: child, Status: agent.Running}}))
		bash, read := call("b", "Bash", `{"command": "make  it"}`), call("r", "Read", `{}`)
		m := model.Message{Role: model.RoleAssistant, Blocks: []model.Block{{Call: &read}, {Call: &bash}}}
		for i, rec := range []agent.Record{
			{Kind: agent.RecordMessage, Message: &user}, {Kind: agent.RecordMessage, Message: &m},
			{Kind: agent.RecordStart, Call: &bash}, {Kind: agent.RecordStart, Call: &read, Looks: true},
		} {
			rec.Seq = int64(i + 1)
			must(t, a.Append(ctx, child, rec))
		}
	}
	start(t, a, "one")
	must(t, a.Append(ctx, "one", agent.Record{Seq: 1, Kind: agent.RecordMessage, Message: &user}))
	begin("one", "child", 2)
	begin("child", "grand", 5)
	begin("one", "working", 3)
	for _, id := range []string{"one", "child", "grand"} {
		must(t, a.Release(ctx, id)) // they died, and one lives
	}
	other := &Archive{Path: a.Path}
	defer other.Close(ctx)
	if lost, err := other.Unsettled(ctx, "one"); err != nil || len(lost) != 2 || lost[0].Session != "child" || lost[1].Session != "grand" {
		t.Errorf("before: %+v %v", lost, err)
	}
	_, repairs, err := other.Resume(ctx, "one")
	must(t, err)
	if len(repairs) != 2 || repairs[0].Session != "child" || repairs[1].Session != "grand" || repairs[0].Outcome != agent.Unknown {
		t.Fatalf("%+v", repairs)
	}
	if want := `its sub-agent in child was interrupted in the middle of a call of Bash, which may have had effects; it is not repeated by itself: {"command": "make it"}`; repairs[0].Note() != want {
		t.Errorf("got  %s\nwant %s", repairs[0].Note(), want)
	}
	must(t, other.Release(ctx, "one"))
	if _, again, err := other.Resume(ctx, "one"); err != nil || len(again) != 0 {
		t.Errorf("told twice: %+v %v", again, err)
	}
	s, _, err := other.Resume(ctx, "child")
	must(t, err)
	onePerCall(t, s)
	if !strings.Contains(said(s), "may have had effects") {
		t.Errorf("the sub-agent's transcript:\n%s", said(s))
	}
}

func TestWhatWasShownOfAnAnswerStays(t *testing.T) {
	ctx, a := context.Background(), open(t)
	s := start(t, a, "one")
	cut := func(yield func(model.Event, error) bool) {
		_ = yield(model.Event{Kind: model.KindThinking, Text: "two and two"}, nil) &&
			yield(model.Event{Kind: model.KindText, Text: "The answer "}, nil) && yield(model.Event{Kind: model.KindText, Text: "is 4"}, nil)
		panic("power cut")
	}
	func() {
		defer func() { _ = recover() }()
		work(t, loopOf(script{cut}), s, "what is it?")
	}()
	must(t, a.Release(ctx, "one"))
	tr, err := a.Load(ctx, "one")
	must(t, err)
	if tr.Draft == nil || tr.Draft.Text() != "The answer is 4" || tr.Draft.Blocks[0].Thinking.Text != "two and two" {
		t.Fatalf("draft %+v", tr.Draft)
	}
	var exported, markdown bytes.Buffer
	must(t, tr.WriteJSONL(&exported))
	must(t, tr.WriteMarkdown(&markdown))
	if read, err := ReadJSONL(&exported); err != nil || read.Draft == nil || len(read.Draft.Blocks) != 2 {
		t.Errorf("the export lost the draft: %+v %v", read, err)
	}
	if !strings.Contains(markdown.String(), "> two and two") || !strings.Contains(markdown.String(), "The answer is 4") {
		t.Error(markdown.String())
	}
	s, _, err = a.Resume(ctx, "one")
	must(t, err)
	if messages := s.Messages(); !strings.Contains(said(s), "[assistant] The answer is 4") || messages[1].Blocks[0].Thinking == nil {
		t.Errorf("lost what was shown:\n%s", said(s))
	}
	if tr, err = a.Load(ctx, "one"); err != nil || tr.Draft != nil {
		t.Errorf("the draft stayed behind: %v %v", tr, err)
	}
	if stop := work(t, loopOf(script{nil, says("2.")}), s, "go on"); stop != agent.StopEnd {
		t.Error(stop)
	}
}

// What only thinking, or a refusal, was shown of stays as well, in a session
// that goes on.
func TestThinkingAndRefusalsStay(t *testing.T) {
	for kind, want := range map[model.Kind]string{model.KindThinking: "> hm, no", model.KindRefusal: "hm, no"} {
		ctx, a := context.Background(), open(t)
		s := start(t, a, "one")
		cut := func(yield func(model.Event, error) bool) {
			_ = yield(model.Event{Kind: kind, Text: "hm, "}, nil) && yield(model.Event{Kind: kind, Text: "no"}, nil)
			panic("power cut")
		}
		func() {
			defer func() { _ = recover() }()
			work(t, loopOf(script{cut}), s, "may I?")
		}()
		must(t, a.Release(ctx, "one"))
		s, _, err := a.Resume(ctx, "one")
		must(t, err)
		tr, err := a.Load(ctx, "one")
		must(t, err)
		var b bytes.Buffer
		must(t, tr.WriteMarkdown(&b))
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("%s: lost what was shown:\n%s", kind, b.String())
		}
		if stop := work(t, loopOf(script{nil, says("2.")}), s, "go on"); stop != agent.StopEnd {
			t.Error(stop)
		}
	}
	a := open(t)
	s := start(t, a, "whole")
	work(t, loopOf(script{func(yield func(model.Event, error) bool) {
		_ = yield(model.Event{Kind: model.KindRefusal, Text: "I will not."}, nil) && yield(model.Event{Kind: model.KindStop, Stop: model.StopRefusal}, nil)
	}}), s, "do it")
	if !strings.Contains(said(s), "[assistant] I will not.") {
		t.Errorf("a refusal is lost:\n%s", said(s))
	}
}

func TestForkLeavesTheOriginalAlone(t *testing.T) {
	ctx, a := context.Background(), open(t)
	s := start(t, a, "one")
	l := loopOf(script{says("first"), says("second")})
	work(t, l, s, "hello")
	f, _, err := a.Fork(ctx, "one", Info{ID: "two", Origin: "test"})
	must(t, err)
	work(t, l, f, "more")
	if strings.Contains(said(s), "second") || !strings.Contains(said(f), "first") || !strings.Contains(said(f), "second") {
		t.Errorf("%s---\n%s", said(s), said(f))
	}
	one, err := a.Load(ctx, "one")
	must(t, err)
	two, err := a.Load(ctx, "two")
	must(t, err)
	if len(one.Records) != 2 || len(two.Records) != 4 || two.Info.Title != "hello" {
		t.Errorf("%d, %d records, title %q", len(one.Records), len(two.Records), two.Info.Title)
	}
}

func TestSecretsDoNotReachTheStore(t *testing.T) {
	ctx, a := context.Background(), open(t)
	a.Scrub = func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("hunter22"), []byte("[secret]")) }
	s := start(t, a, "one")
	l := loopOf(script{does(call("a", "Read", `{"path":"hunter22"}`)), says("it is hunter22")}, newTool("Read", host.KindRead, echo))
	work(t, l, s, "tell hunter22")
	must(t, a.Approve(ctx, "one", "a", Approval{Tool: "Read", Target: "hunter22"}))
	// Pieces may cut a secret in two, in a draft that nothing ever replaces.
	must(t, a.Draft(ctx, "one", agent.Piece{Kind: agent.KindText, Text: "it is hunt"}))
	must(t, a.Draft(ctx, "one", agent.Piece{Kind: agent.KindText, Text: "er22"}))
	tr, err := a.Load(ctx, "one")
	must(t, err)
	var b bytes.Buffer
	must(t, tr.WriteJSONL(&b))
	if strings.Contains(b.String(), "hunter22") || !strings.Contains(b.String(), "[secret]") {
		t.Error(b.String())
	}
}

func TestChildrenBelongToWhoStartedThem(t *testing.T) {
	ctx, a := context.Background(), open(t)
	s := start(t, a, "main")
	runs := &agent.Runs{}
	spawn := newTool("spawn", host.KindOther, func(ctx context.Context, _ host.Call) (abi.Result, error) {
		run, err := runs.Spawn(ctx, agent.Spawn{Name: "helper", Prompt: "look around"})
		if err != nil {
			return abi.Result{}, err
		}
		st, err := run.Wait(ctx)
		return abi.Text(st.Report), err
	})
	m := script{does(call("a", "spawn", `{}`)), says("thanks")}
	l := loopOf(m, spawn)
	runs.Open = func(_ context.Context, parent *agent.Loop, _ agent.Spawn) (*agent.Loop, error) {
		c := *parent
		c.Model = script{says("all quiet")}
		return &c, nil
	}
	work(t, l, s, "start")
	all, err := a.List(ctx, Query{})
	must(t, err)
	if len(all) != 2 {
		t.Fatalf("%+v", all)
	}
	for _, in := range all {
		if in.ID == "main" {
			continue
		}
		if in.Parent != "main" || in.Origin != "test" || in.Title != "helper" || in.Busy {
			t.Errorf("%+v", in)
		}
		child, _, err := a.Resume(ctx, in.ID)
		must(t, err)
		if !strings.Contains(said(child), "all quiet") {
			t.Error(said(child))
		}
		if err := a.Sees(ctx, in.ID, "main"); !errors.Is(err, ErrNotFound) {
			t.Errorf("a child sees its parent: %v", err)
		}
	}
}

// FuzzDecode: whatever stands in a record, there is a session that providers
// accept, or an error.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"seq":1,"kind":"message","message":{"role":"user","blocks":[]}}`), []byte(`{"seq":2,"kind":"result","result":{"id":"a"}}`))
	f.Add([]byte(`{"seq":1,"kind":"message","message":{"role":"assistant","blocks":[{"call":{"id":"a","name":"x"}},{"call":{"id":"a"}}]}}`), []byte(`{"seq":2,"kind":"start","call":{"id":"a"},"looks":true}`))
	f.Add([]byte(`{"seq":1,"kind":"compact","keep":-1,"message":{}}`), []byte(`{"seq":2,"kind":"run","run":{}}`))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		var records []agent.Record
		for i, body := range [][]byte{one, two} {
			var head struct {
				Kind string `json:"kind"`
			}
			_ = json.Unmarshal(body, &head)
			r, err := new(quick).decode(store.Record{Seq: int64(i + 1), Kind: head.Kind}, string(body))
			if err != nil {
				return
			}
			records = append(records, r)
		}
		s, err := agent.Resume("x", nil, records)
		if err != nil {
			return
		}
		if err := model.Check(s.Messages()); err != nil {
			t.Fatalf("%s\n%s\n%v", one, two, err)
		}
		tr := &Transcript{Info: Info{ID: "x"}, Records: records}
		var b bytes.Buffer
		if err := errors.Join(tr.WriteMarkdown(&b), tr.WriteTail(&b, 1), tr.WriteJSONL(&b)); err != nil {
			t.Fatal(err)
		}
	})
}
