package bench

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the bare engine, as the peer

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/archive"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/store"
)

// Agent measures the loop and its sessions against the bare engine that keeps
// them, on the same disk in the same run.
func Agent(ctx context.Context, w io.Writer) error {
	dir, err := os.MkdirTemp("", "elfhost-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, f := range []func(context.Context, io.Writer, string) error{agentStep, agentResume, agentMany, agentIdle} {
		if err := f(ctx, w, dir); err != nil {
			return err
		}
	}
	return nil
}

// bareDB is the engine with nothing around it: one connection, write-ahead
// logging, and the sync that the store uses.
func bareDB(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path)+"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.Exec(`CREATE TABLE row (n INTEGER PRIMARY KEY, body BLOB NOT NULL)`)
	return db, errors.Join(err)
}

// stepping is a model that always answers with one call, at once.
type stepping struct{}

func (stepping) Stream(_ context.Context, r model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		n := len(r.Messages)
		c := model.Call{ID: "call-" + strconv.Itoa(n), Name: "Look", Args: `{"path":"internal/bench/agent.go","n":` + strconv.Itoa(n) + `}`}
		text := abi.TextBlock("I look at the file.")
		_ = yield(model.Event{Kind: model.KindText, Text: text.Text}, nil) &&
			yield(model.Event{Kind: model.KindBlock, Block: &model.Block{Content: &text}}, nil) &&
			yield(model.Event{Kind: model.KindBlock, Block: &model.Block{Call: &c}}, nil) &&
			yield(model.Event{Kind: model.KindUsage, Usage: &model.Usage{Input: 1000, Output: 50}}, nil) &&
			yield(model.Event{Kind: model.KindStop, Stop: model.StopCalls}, nil)
	}
}

type look struct{}

func (look) Spec() host.Spec {
	return host.Spec{
		Name: "Look", Description: "Looks.", Kind: host.KindRead, Origin: host.Origin{Source: host.Builtin},
		Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"}},"required":["path"]}`),
	}
}

func (look) Call(_ context.Context, c host.Call) (abi.Result, error) {
	return abi.Text(strings.Repeat("a line of a file\n", 20) + string(c.Args)), nil
}

func agentLoop(steps int) (*agent.Loop, error) {
	tools := host.New(host.Options{Gate: &host.Gate{Mode: host.ModeAuto}})
	if err := tools.Add(look{}); err != nil {
		return nil, err
	}
	return &agent.Loop{Model: stepping{}, Tools: tools, Limits: agent.Limits{Steps: steps}}, nil
}

// agentStep: a step of the loop (draft, answer, start, result: four commits)
// against one commit of the bare engine.
func agentStep(ctx context.Context, w io.Writer, dir string) error {
	a := &archive.Archive{Path: filepath.Join(dir, "step.db")}
	defer a.Close(ctx)
	db, err := bareDB(filepath.Join(dir, "bare.db"))
	if err != nil {
		return err
	}
	defer db.Close()
	insert, err := db.Prepare(`INSERT INTO row (body) VALUES (?)`)
	if err != nil {
		return err
	}
	const steps = 100
	l, err := agentLoop(steps)
	if err != nil {
		return err
	}
	body := []byte(strings.Repeat("x", 500))
	var failed error
	took := Times(15, 1, func() {
		for range steps {
			_, err := insert.Exec(body)
			failed = errors.Join(failed, err)
		}
	}, func() {
		s, err := a.Start(archive.Info{ID: archive.NewID(), Origin: "bench"})
		failed = errors.Join(failed, err)
		for e, err := range l.Run(ctx, s, abi.TextBlock("go")) {
			if e.Kind == agent.KindDone && e.Stop != agent.StopSteps {
				failed = errors.Join(failed, err, fmt.Errorf("the run stopped: %s", e.Stop))
			}
		}
		failed = errors.Join(failed, a.Release(ctx, s.ID))
	})
	if failed != nil {
		return failed
	}
	fmt.Fprintf(w, "a bare commit %s, a step of the loop with the store on %s\n", took[0]/steps, took[1]/steps)
	Figure(w, "agent.step/sqlite.commit", float64(took[1])/float64(took[0]), 25)
	return nil
}

// agentResume: a session of 5,000 messages, ready to go on, against reading
// its rows.
func agentResume(ctx context.Context, w io.Writer, dir string) error {
	path := filepath.Join(dir, "long.db")
	a := &archive.Archive{Path: path}
	defer a.Close(ctx)
	const id = "long"
	s, err := a.Start(archive.Info{ID: id, Origin: "bench"})
	if err != nil {
		return err
	}
	if err := converse(ctx, a, s, 5000); err != nil {
		return err
	}
	if err := a.Release(ctx, id); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path)+"?_pragma=query_only(1)")
	if err != nil {
		return err
	}
	defer db.Close()
	var failed error
	rows := 0
	took := Times(11, 1, func() {
		rows = 0
		r, err := db.QueryContext(ctx, `SELECT key, time, kind, body FROM record ORDER BY key`)
		if err != nil {
			failed = errors.Join(failed, err)
			return
		}
		for r.Next() {
			var key, at int64
			var kind string
			var body []byte
			failed = errors.Join(failed, r.Scan(&key, &at, &kind, &body))
			rows++
		}
		failed = errors.Join(failed, r.Err(), r.Close())
	}, func() {
		s, _, err := a.Resume(ctx, id)
		if err != nil {
			failed = errors.Join(failed, err)
			return
		}
		if n := len(s.Messages()); n < 5000 {
			failed = errors.Join(failed, fmt.Errorf("%d messages came back", n))
		}
		failed = errors.Join(failed, a.Release(ctx, id))
	})
	if failed != nil {
		return failed
	}
	fmt.Fprintf(w, "reading %d rows %s, resuming the session %s\n", rows, took[0], took[1])
	Figure(w, "agent.resume.5000/read.rows", float64(took[1])/float64(took[0]), 3)
	return nil
}

// converse works in a session until it has n messages.
func converse(ctx context.Context, a *archive.Archive, s *agent.Session, n int) error {
	seq := int64(0)
	add := func(r agent.Record) error {
		seq++
		r.Seq, r.Time = seq, time.Now()
		return a.Append(ctx, s.ID, r)
	}
	user := model.User(abi.TextBlock("go"))
	if err := add(agent.Record{Kind: agent.RecordMessage, Message: &user}); err != nil {
		return err
	}
	for i := 1; i < n; i += 2 {
		text := abi.TextBlock("I look at the next part of the file, since the function that fails is defined there.")
		c := model.Call{ID: "call-" + strconv.Itoa(i), Name: "Look", Args: `{"path":"internal/bench/agent.go"}`}
		m := model.Message{Role: model.RoleAssistant, Blocks: []model.Block{{Content: &text}, {Call: &c}}}
		res := model.CallResult{ID: c.ID, Name: c.Name, Result: abi.Text(strings.Repeat("a line of a file\n", 20))}
		err := errors.Join(
			add(agent.Record{Kind: agent.RecordMessage, Message: &m, Model: "m", Stop: model.StopCalls, Usage: &agent.Usage{Steps: i}}),
			add(agent.Record{Kind: agent.RecordStart, Call: &c, Looks: true}),
			add(agent.Record{Kind: agent.RecordResult, Result: &res, Outcome: agent.Done}))
		if err != nil {
			return err
		}
	}
	return nil
}

// agentMany: 200 sessions at work on one store, against one alone. Each piece
// that a model says is a commit, and between two of them its session waits:
// here 50 ms on average, as if all 200 were streaming 20 pieces a second at
// once. What happens when nobody waits at all is printed beside it.
//
// The figure is the median of several rounds: a percentile of one round tells
// more of what else the machine was doing. Each round writes enough for a
// checkpoint of its own. What the machine alone does to a percentile is printed
// too: as many goroutines with the same pauses, that hold one lock for as long
// as a commit takes and write nothing.
func agentMany(ctx context.Context, w io.Writer, dir string) error {
	s, err := store.Open(ctx, filepath.Join(dir, "many.db"))
	if err != nil {
		return err
	}
	defer s.Close()
	const sessions, rounds, pause = 200, 7, 100 * time.Millisecond
	var one, many, p99, flood, floodP99, bare [rounds]time.Duration
	for i := range rounds {
		for _, m := range []struct {
			sessions, commits int
			pause             time.Duration
			median, p99       *time.Duration
		}{
			{1, 500, 0, &one[i], new(time.Duration)},
			{sessions, 25, pause, &many[i], &p99[i]},
			{sessions, 25, 0, &flood[i], &floodP99[i]},
		} {
			took, err := commitAll(ctx, s, m.sessions, m.commits, m.pause)
			if err != nil {
				return fmt.Errorf("%d sessions on one store: %w", m.sessions, err)
			}
			*m.median, *m.p99 = took[len(took)/2], took[len(took)*99/100]
		}
		took := holdAll(sessions, 25, pause, one[i])
		bare[i] = took[len(took)*99/100]
	}
	middle := func(t [rounds]time.Duration) time.Duration { slices.Sort(t[:]); return t[rounds/2] }
	fmt.Fprintf(w, "one session: median commit %s; %d sessions: median %s, p99 %s, no lock errors; without any pause between commits: median %s, p99 %s; a lock in the place of the store: p99 %s\n",
		middle(one), sessions, middle(many), middle(p99), middle(flood), middle(floodP99), middle(bare))
	Figure(w, "agent.200.commit.p99/commit.median", float64(middle(p99))/float64(middle(one)), 50)
	return nil
}

// commitAll lets n sessions commit at once, with pauses of up to pause, and
// returns how long each commit took, sorted.
func commitAll(ctx context.Context, s *store.Store, n, commits int, pause time.Duration) ([]time.Duration, error) {
	took := make([][]time.Duration, n)
	errs := make([]error, n)
	body := json.RawMessage(`{"text":"` + strings.Repeat("x", 400) + `"}`)
	var writers []*store.Writer
	for range n {
		w, err := s.Create(ctx, store.Session{ID: store.NewID(), Origin: "bench"})
		if err != nil {
			return nil, err
		}
		writers = append(writers, w)
	}
	var group sync.WaitGroup
	for i, w := range writers {
		group.Go(func() {
			for k := range commits {
				if pause > 0 {
					time.Sleep(rand.N(pause))
				}
				start := time.Now()
				err := w.Append(ctx, store.Record{Seq: int64(k + 1), Time: start, Kind: "message", Body: body}, false)
				took[i] = append(took[i], time.Since(start))
				errs[i] = errors.Join(errs[i], err)
			}
			errs[i] = errors.Join(errs[i], w.Close(ctx))
		})
	}
	group.Wait()
	all := slices.Concat(took...)
	slices.Sort(all)
	return all, errors.Join(errs...)
}

// holdAll is commitAll with a lock in the place of the store, each held for as
// long as a commit takes.
func holdAll(n, times int, pause, hold time.Duration) []time.Duration {
	took := make([][]time.Duration, n)
	var lock sync.Mutex
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			for range times {
				time.Sleep(rand.N(pause))
				start := time.Now()
				lock.Lock()
				for held := time.Now(); time.Since(held) < hold; {
				}
				lock.Unlock()
				took[i] = append(took[i], time.Since(start))
			}
		})
	}
	group.Wait()
	all := slices.Concat(took...)
	slices.Sort(all)
	return all
}

// agentIdle: what a session costs that is open and waits for a person.
func agentIdle(ctx context.Context, w io.Writer, dir string) error {
	a := &archive.Archive{Path: filepath.Join(dir, "idle.db")}
	defer a.Close(ctx)
	var held []*agent.Session
	open := func(n int) error {
		for range n {
			s, err := a.Start(archive.Info{ID: archive.NewID(), Origin: "bench"})
			if err != nil {
				return err
			}
			if err := converse(ctx, a, s, 20); err != nil {
				return err
			}
			if err := a.Release(ctx, s.ID); err != nil {
				return err
			}
			if s, _, err = a.Resume(ctx, s.ID); err != nil {
				return err
			}
			held = append(held, s)
		}
		return nil
	}
	if err := open(20); err != nil { // what all sessions share
		return err
	}
	const n = 200
	before := footprint()
	if err := open(n); err != nil {
		return err
	}
	each := float64(footprint()-before) / n / 1e3
	runtime.KeepAlive(held)
	fmt.Fprintf(w, "an idle session of 20 messages holds %.1f KB\n", each)
	Figure(w, "agent.idle.KB", each, 200)
	return nil
}

// footprint is the memory of this process: what the system says, or where it
// does not say, the heap.
func footprint() int64 {
	runtime.GC()
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		if f := strings.Fields(string(b)); len(f) > 1 {
			if pages, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return pages * int64(os.Getpagesize())
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
