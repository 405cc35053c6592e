package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/archive"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/chaos"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
)

// fewTurns is how many answers TestChaosOfARealApp has of its model, so that
// it takes a few seconds; ELFHOST_CHAOS says another number, as `make chaos` does.
const fewTurns = 300

// commands do no harm. Some leave programs behind, in ways that are meant to
// escape.
var commands = []string{
	"echo hi", "cat a.txt; false", "", "no-such-program", "printf '\\033[2J\\377'", "seq 3000", "mkdir -p d && cd d && pwd", "ls -la | head -3",
	"exit 7", "kill -9 $$", "sleep 0.02", "sleep 601.7", "sleep 602.7 & echo left", "(setsid sleep 603.7 >/dev/null 2>&1 &)", "nohup sleep 604.7 >/dev/null 2>&1 & disown; echo gone",
	"trap '' TERM HUP INT; sleep 605.7", "echo x >> out.txt", "read line; echo $line",
}

// TestChaosOfARealApp lets a hostile model call everything that a session
// really has: files, searches, commands in the foreground and background,
// sub-agents, sessions, plans, Wasm plugins. Nothing panics, no call is lost,
// every transcript is valid and comes back from the store as it was, nothing is
// written outside of the workspace, and when the session is closed no program
// of it is left.
func TestChaosOfARealApp(t *testing.T) {
	turns := fewTurns
	if n, err := strconv.Atoi(os.Getenv("ELFHOST_CHAOS")); err == nil {
		turns = n
	}
	c := newChaosPlace(t)
	for round := 0; c.model.Answers() < turns; round++ {
		c.model.Most = min(turns, c.model.Answers()+150)
		c.round(round)
	}
	t.Logf("%d answers, %d calls, of which worked: %v", c.model.Answers(), c.calls, c.worked)
	for _, tool := range c.model.Often {
		if c.worked[tool] == 0 && (tool == "Bash" || turns >= 10_000) {
			t.Errorf("%s never worked", tool)
		}
	}
}

// chaosPlace is the home and the workspace of all rounds.
type chaosPlace struct {
	t        *testing.T
	top, dir string
	paths    config.Paths
	self     string
	model    *chaos.Model
	r        *rand.Rand
	log      *bytes.Buffer // of errors: panics of tools

	calls  int
	worked map[string]int // by tool
}

func newChaosPlace(t *testing.T) *chaosPlace {
	t.Helper()
	top := t.TempDir()
	home := filepath.Join(top, "home")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(home, "cache")
	if dir, err := os.UserCacheDir(); err == nil { // plugins are compiled once for all tests
		cache = filepath.Join(dir, "elfhost-test")
	}
	c := &chaosPlace{
		t: t, top: top, dir: filepath.Join(top, "work", "project"), self: self, model: chaos.New(5), r: rand.New(rand.NewPCG(5, 5)),
		paths: config.Paths{Config: home, State: filepath.Join(home, "state"), Cache: cache, SystemPolicy: filepath.Join(home, "none")},
		log:   &bytes.Buffer{}, worked: map[string]int{},
	}
	c.model.End = 40
	c.model.Often = []string{"Bash", "BashJob", "Read", "Edit", "Grep", "spawn_agent"}
	c.model.Texts = map[string][]string{
		"command": commands,
		"path":    {"a.txt", "a.txt", "a.txt", "a.go", "a.go", "d", ".", "new.txt", "../../outside.txt", "/etc/hostname", "a\x00b", strings.Repeat("d/", 300)},
		"pattern": {"hi", "*.go", "(", "a{1000}{1000}", "**/*"},
		"content": {"", "hi\n", "package a\n", strings.Repeat("x\n", 2000)},
		"prompt":  {"go", "look at a.txt"}, "permissionMode": {"auto", "plan"},
		"old_string": {"hi", "there", "func"}, "new_string": {"hi there", "", "hi"},
		"jobId": {"job-1", "job-2", "job-9"},
	}
	for name, text := range map[string]string{"a.txt": "hi there\n", "a.go": "package a\n\nfunc A() {}\n", "x.bin": "\x00\xff\x00"} {
		if err := errors.Join(os.MkdirAll(c.dir, 0o755), os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// round is a session with three runs, the last of which may be cancelled.
func (c *chaosPlace) round(n int) {
	t, ctx := c.t, c.t.Context()
	t.Helper()
	a, err := app.Open(ctx, app.Options{
		Dir: c.dir, Env: func(string) string { return "" }, Paths: &c.paths, Compiler: c.self, Mode: host.ModeAuto, Offline: true,
		Log: slog.New(slog.NewTextHandler(c.log, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.Conversation(ctx, "chaos")
	if err != nil {
		t.Fatal(err)
	}
	for k := range 3 {
		limit := 700 * time.Millisecond
		if k == 2 || n%3 == 0 {
			limit = time.Duration(c.r.IntN(500)) * time.Millisecond
		}
		c.work(a, s, limit, n%4 == 1)
	}
	id, said := s.ID, len(s.Messages())
	began := time.Now()
	closing, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := a.Close(closing); err != nil {
		t.Errorf("round %d: closing: %v", n, err)
	}
	if d := time.Since(began); d > 30*time.Second {
		t.Errorf("round %d: it took %s to close", n, d)
	}
	c.nothingIsLeft(n)
	c.comesBack(id, said)
}

func (c *chaosPlace) work(a *app.App, s *agent.Session, limit time.Duration, plugins bool) {
	t := c.t
	t.Helper()
	if err := a.Gate.Switch(host.ModeAuto); err != nil {
		t.Fatal(err)
	}
	l, err := a.Loop(t.Context(), app.Chosen{Name: "chaos", Model: c.model, Info: model.Info{ID: "chaos", Window: 60_000}}, agent.Limits{Steps: 40, Parallel: 8})
	if err != nil {
		t.Fatal(err)
	}
	if !plugins { // each session loads them anew, which takes a second
		l.Tools = a.Registry.Filter(func(s host.Spec) bool { return s.Origin.Source == host.Builtin })
	}
	l.Retry = model.Retry{Attempts: 4, First: time.Microsecond, Longest: time.Microsecond}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for e, err := range a.Work(ctx, l, s, abi.TextBlock("go")) {
		if e.Kind == agent.KindDone && err != nil {
			if cause, ok := errors.AsType[*model.Error](err); !ok || cause.Code == model.ErrRequest {
				t.Errorf("a run ended with: %v", err)
			}
		}
		if e.Kind == agent.KindFinish && !e.Result.IsError {
			c.worked[e.Call.Name]++
		}
	}
	if err := model.Check(s.Messages()); err != nil {
		t.Fatalf("the transcript is broken: %v", err)
	}
	if c.log.Len() > 0 {
		t.Fatalf("inside a tool: %.2000s", c.log)
	}
}

// nothingIsLeft looks for programs that know of the place, and for files that
// were written outside of the workspace.
func (c *chaosPlace) nothingIsLeft(round int) {
	t := c.t
	t.Helper()
	var left []string
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // one that was killed a moment ago may still be there
		if left = c.programs(); len(left) == 0 || time.Now().After(end) {
			break
		}
	}
	if len(left) > 0 {
		t.Errorf("round %d: programs are left:\n%s", round, strings.Join(left, "\n"))
	}
	for _, dir := range []string{c.top, filepath.Dir(c.dir)} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if n := e.Name(); n != "home" && n != "work" && n != "project" {
				t.Errorf("round %d: %q was written outside of the workspace", round, n)
			}
		}
	}
}

// programs are those whose command, environment or folder is of this place.
func (c *chaosPlace) programs() []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if filepath.Base(dir) == strconv.Itoa(os.Getpid()) {
			continue
		}
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		cmd, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		if strings.Contains(cwd, c.top) || bytes.Contains(cmd, []byte(c.top)) || bytes.Contains(env, []byte(c.top)) {
			found = append(found, fmt.Sprintf("%s: %q in %s", filepath.Base(dir), cmd, cwd))
		}
	}
	return found
}

// comesBack reads a session anew: each call that was begun has its result, and
// the conversation is as long as it was.
func (c *chaosPlace) comesBack(id string, said int) {
	t, ctx := c.t, c.t.Context()
	t.Helper()
	kept := app.Archive(c.paths)
	defer kept.Close(ctx)
	tr, err := kept.Load(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]int{}
	for _, r := range tr.Records {
		switch r.Kind {
		case agent.RecordMessage:
			for _, k := range r.Message.Calls() {
				open[k.ID]++
				c.calls++
			}
		case agent.RecordResult:
			open[r.Result.ID]--
		}
	}
	for call, n := range open {
		if n != 0 {
			t.Errorf("session %s: call %q has %d results too few", id, call, n)
		}
	}
	again, repairs, err := kept.Resume(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if err := model.Check(again.Messages()); err != nil || len(again.Messages()) != said || len(repairs) > 0 {
		t.Errorf("session %s came back with %d messages of %d, %d repairs, %v", id, len(again.Messages()), said, len(repairs), err)
	}
	below, err := kept.List(ctx, archive.Query{Viewer: id, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range below {
		if m.Busy && m.ID != id {
			t.Errorf("session %s is still at work", m.ID)
		}
	}
}
