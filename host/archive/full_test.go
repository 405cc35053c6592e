package archive

import (
	"context"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
)

// fullFor is a disk that has no room for one kind of record, until it is emptied.
type fullFor struct {
	*Archive
	kind agent.RecordKind
}

func (f *fullFor) Append(ctx context.Context, session string, r agent.Record) error {
	if r.Kind == f.kind {
		return ErrFull
	}
	return f.Archive.Append(ctx, session, r)
}

// A result that had no room is lost with what it said: the call may have had
// effects, which is told at every resume, however the conversation went on.
func TestAResultThatHadNoRoom(t *testing.T) {
	ctx, a := context.Background(), open(t)
	full := &fullFor{a, agent.RecordResult}
	start(t, a, "one") // the archive expects it
	s := agent.New("one", full)
	ran := 0
	push := newTool("Push", host.KindEdit, func(context.Context, host.Call) (abi.Result, error) { ran++; return abi.Text("pushed"), nil })
	l := loopOf(script{does(call("w", "Push", `{"n":1}`)), says("I go on."), says("And on.")}, push)
	if stop := work(t, l, s, "push"); stop != agent.StopError || ran != 1 {
		t.Fatalf("%s, ran %d times", stop, ran)
	}
	onePerCall(t, s)
	full.kind = "" // there is room again, and the chat goes on
	if stop := work(t, l, s, "go on"); stop != agent.StopEnd {
		t.Fatalf("it cannot go on: %s", stop)
	}
	onePerCall(t, s)
	for n := range 3 {
		must(t, a.Release(ctx, "one"))
		lost, err := a.Unsettled(ctx, "one")
		if must(t, err); len(lost) != 1 || lost[0].ID != "w" {
			t.Errorf("before resume %d: %+v", n, lost)
		}
		var repairs []agent.Repair
		s, repairs, err = a.Resume(ctx, "one")
		must(t, err)
		if len(repairs) != 1 || repairs[0].Call.ID != "w" || repairs[0].Outcome != agent.Unknown {
			t.Errorf("resume %d: %+v", n, repairs)
		}
		onePerCall(t, s)
		if n == 1 {
			if stop := work(t, l, s, "and on"); stop != agent.StopEnd {
				t.Fatalf("it cannot go on: %s", stop)
			}
		}
	}
	if ran != 1 {
		t.Errorf("it ran %d times", ran)
	}
}
