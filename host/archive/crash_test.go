package archive

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/store"
)

// crashEnv makes this test binary the victim of TestCrash.
const crashEnv = "ELFHOST_TEST_CRASH"

func TestMain(m *testing.M) {
	if path := os.Getenv(crashEnv); path != "" {
		if err := victim(path); err != nil {
			fmt.Println("error " + err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// shown is a line of the victim: what a person has seen by then.
type shown struct {
	Text string // a piece of an answer, or of the thoughts before it
	Call string // a call that has its result
	Out  string // and what the result says
}

// busy is a model that never comes to an end: it talks, and calls tools in
// parallel, with names that tell each call from all others.
type busy struct{}

// life tells one victim from all others, of which one may have had its process
// number. The calls that carry it are numbers that JSON holds.
var life = rand.IntN(1 << 40)

func (busy) Stream(_ context.Context, r model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		if err := model.Check(r.Messages); err != nil {
			yield(model.Event{}, &model.Error{Code: model.ErrRequest, Message: err.Error()})
			return
		}
		n := len(r.Messages)
		thought := fmt.Sprintf("thought-%d-%d ", life, n)
		if !yield(model.Event{Kind: model.KindThinking, Text: thought}, nil) ||
			!yield(model.Event{Kind: model.KindBlock, Block: &model.Block{Thinking: &model.Thinking{Text: thought}}}, nil) {
			return
		}
		var said strings.Builder
		for i := range 5 {
			piece := fmt.Sprintf("word-%d-%d-%d ", life, n, i)
			said.WriteString(piece)
			if !yield(model.Event{Kind: model.KindText, Text: piece}, nil) {
				return
			}
		}
		c := abi.TextBlock(said.String())
		if !yield(model.Event{Kind: model.KindBlock, Block: &model.Block{Content: &c}}, nil) {
			return
		}
		for i, name := range []string{"Read", "Read", "Write", "Read"} {
			k := call(fmt.Sprintf("c-%d-%d-%d", life, n, i), name, fmt.Sprintf(`{"n":%d}`, life*1000+n*10+i))
			if !yield(model.Event{Kind: model.KindBlock, Block: &model.Block{Call: &k}}, nil) {
				return
			}
		}
		yield(model.Event{Kind: model.KindStop, Stop: model.StopCalls}, nil)
	}
}

// victim works on the session until it is killed, and prints what it shows.
func victim(path string) error {
	ctx := context.Background()
	a := &Archive{Path: path}
	s, _, err := a.Resume(ctx, "crash")
	if err != nil {
		return err
	}
	slow := func(ctx context.Context, c host.Call) (abi.Result, error) {
		time.Sleep(time.Duration(rand.IntN(1500)) * time.Microsecond)
		return echo(ctx, c)
	}
	l := loopOf(busy{}, newTool("Read", host.KindRead, slow), newTool("Write", host.KindEdit, slow))
	l.Limits.Steps = 1 << 20
	out := json.NewEncoder(os.Stdout) // not buffered: a line out is a line shown
	for e, err := range l.Run(ctx, s, abi.TextBlock("go on")) {
		switch e.Kind {
		case agent.KindText, agent.KindThinking:
			err = out.Encode(shown{Text: e.Text})
		case agent.KindFinish:
			err = out.Encode(shown{Call: e.Call.ID, Out: e.Result.Text()})
		case agent.KindDone:
			if err == nil {
				err = fmt.Errorf("it came to an end: %s", e.Stop)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Kill -9 at a random moment of a busy turn: nothing that was shown is lost,
// the session resumes, and every call has exactly one result.
func TestCrash(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 12
	}
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "s.db")
	a := &Archive{Path: path}
	s := start(t, a, "crash")
	work(t, loopOf(script{says("I begin.")}), s, "begin")
	must(t, a.Close(ctx))

	var interrupted, cut int
	for round := range rounds {
		lines := slay(t, path, time.Duration(rand.IntN(25_000))*time.Microsecond)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
		a := &Archive{Path: path}
		before, err := a.Load(ctx, "crash")
		must(t, err)
		if before.Draft != nil {
			cut++
		}
		s, repairs, err := a.Resume(ctx, "crash")
		if err != nil {
			t.Fatalf("round %d: it does not resume: %v", round, err)
		}
		onePerCall(t, s)
		for _, p := range repairs {
			if p.Outcome == agent.Unknown {
				interrupted++
			}
		}
		survives(t, s, lines)
		settled(t, a, repairs)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
		must(t, a.Close(ctx))
	}
	t.Logf("%d kills: %d calls of unknown outcome, %d answers cut off", rounds, interrupted, cut)
	if !testing.Short() && (interrupted == 0 || cut == 0) {
		t.Error("no kill hit a call or an answer: the test does not test")
	}
}

// slay starts a victim, kills it a moment after it has begun to work, and
// returns what it had shown.
func slay(t *testing.T, path string, after time.Duration) []shown {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), crashEnv+"="+path)
	pipe, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var lines []shown
	in := bufio.NewScanner(pipe)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var s shown
		if err := json.Unmarshal(in.Bytes(), &s); err != nil {
			if strings.HasPrefix(in.Text(), "error") {
				t.Error(in.Text())
			}
			continue // the last line may be half written
		}
		if len(lines) == 0 {
			time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
		lines = append(lines, s)
	}
	_ = cmd.Wait() // it was killed
	if len(lines) == 0 {
		t.Error("the victim did not begin")
	}
	return lines
}

// survives checks that all that was shown is in the session.
func survives(t *testing.T, s *agent.Session, lines []shown) {
	t.Helper()
	all := said(s)
	results := map[string]string{}
	for _, m := range s.Messages() {
		for _, b := range m.Blocks {
			if b.Result != nil {
				results[b.Result.ID] = b.Result.Text()
			}
		}
	}
	for _, l := range lines {
		if l.Text != "" && !strings.Contains(all, l.Text) {
			t.Errorf("%q was shown and is lost", l.Text)
		}
		if l.Call != "" && results[l.Call] != l.Out {
			t.Errorf("the result of %s was shown as %q and is now %q", l.Call, l.Out, results[l.Call])
		}
	}
}

// settled checks that no call is left open, and that only calls which may have
// had effects are told as unknown.
func settled(t *testing.T, a *Archive, repairs []agent.Repair) {
	t.Helper()
	open, err := a.store.Calls(context.Background(), "crash", store.Pending, store.Running)
	if must(t, err); len(open) > 0 {
		t.Errorf("calls are still open: %+v", open)
	}
	for _, p := range repairs {
		if p.Outcome == agent.Unknown && p.Call.Name != "Write" {
			t.Errorf("%s only reads, and is told as unknown", p.Call.Name)
		}
	}
}
