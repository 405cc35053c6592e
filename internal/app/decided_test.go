package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/store"
)

// A decision that cannot be kept with its session is none: the call does not
// happen.
func TestADecisionThatCannotBeKept(t *testing.T) {
	ctx, person := t.Context(), &yes{}
	a := opened(t, person)
	s, err := a.Conversation(ctx, "m")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Sessions.Append(ctx, s.ID, agent.Record{Seq: 1, Kind: agent.RecordRun, Run: &agent.RunState{Status: agent.Completed}}); err != nil {
		t.Fatal(err)
	}
	write := func(name string) (told string, there bool) {
		args, _ := json.Marshal(map[string]string{"path": name, "content": "x"})
		res := a.Registry.Invoke(ctx, host.Call{ID: "c", Tool: "Write", Args: args, Caller: host.Caller{Session: s.ID}})
		_, err := os.Stat(filepath.Join(a.Dir, name))
		return res.Text(), err == nil
	}
	if told, there := write("before.txt"); !there || len(person.asked) != 1 {
		t.Fatalf("asked %d times: %s", len(person.asked), told)
	}

	// Somebody takes the session away, with all that is kept of it.
	other, err := store.Open(ctx, a.Sessions.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	w, err := other.Seize(ctx, s.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Delete(ctx, s.ID); err != nil {
		t.Fatal(err)
	}
	if told, there := write("after.txt"); there || len(person.asked) != 2 || !strings.Contains(told, "keeping a decision") {
		t.Errorf("written: %v, asked %d times: %s", there, len(person.asked), told)
	}
}
