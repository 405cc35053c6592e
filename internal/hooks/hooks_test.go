package hooks

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/config/strict"
)

// script makes a program of a shell script.
func script(t *testing.T, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the hooks of this test are shell scripts")
	}
	name := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

type tool struct {
	name string
	ran  *int
}

func (x tool) Spec() host.Spec {
	return host.Spec{Name: x.name, Origin: host.Origin{Source: host.Builtin}, Kind: host.KindEdit, Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}
}

func (x tool) Call(context.Context, host.Call) (abi.Result, error) {
	*x.ran++
	return abi.Text("written"), nil
}

// open makes a registry with one tool, Write, behind the hooks.
func open(t *testing.T, pol *policy.Policy, list ...config.Hook) (r *host.Registry, h *Hooks, ran *int, notes *[]string) {
	t.Helper()
	ran, notes = new(int), new([]string)
	gate := &host.Gate{Mode: host.ModeAuto, Policy: pol}
	h, err := New(list, Options{Gate: gate, Policy: pol, Dir: t.TempDir(), Session: "s1", Note: func(f string, a ...any) { *notes = append(*notes, fmt.Sprintf(f, a...)) }})
	if err != nil {
		t.Fatal(err)
	}
	gate.Before = h.Before
	r = host.New(host.Options{Gate: gate, After: h.After})
	if err := r.Add(tool{"Write", ran}); err != nil {
		t.Fatal(err)
	}
	return r, h, ran, notes
}

func write(r *host.Registry, path string) abi.Result {
	return r.Invoke(context.Background(), host.Call{ID: "c1", Tool: "Write", Args: json.RawMessage(`{"path":"` + path + `"}`), Caller: host.Caller{Session: "s2", Agent: "a", Step: 3}})
}

// A hook before a call decides, and whatever goes wrong with it is a no.
func TestBeforeTool(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		ran    bool
		says   string
	}{
		"passes":              {"exit 0", true, "written"},
		"says nothing":        {"cat >/dev/null", true, "written"},
		"allows":              {`echo '{"decision":"allow"}'`, true, "written"},
		"denies":              {`echo '{"decision":"deny","reason":"not on a Friday"}'`, false, "not on a Friday"},
		"blocks":              {`echo '{"decision":"block"}'`, false, "says no"},
		"status 2":            {"echo 'not today' >&2; exit 2", false, "not today"},
		"status 1":            {"echo broken >&2; exit 1", false, "failed with status 1: broken"},
		"killed":              {"kill -9 $$", false, "failed with status"},
		"terminated":          {"kill -15 $$", false, "failed with status"},
		"list":                {`echo '[]'`, false, "no JSON object"},
		"null":                {`echo null`, false, "no JSON object"},
		"two objects":         {`echo '{"decision":"deny"}{"decision":"allow"}'`, false, "no JSON object"},
		"half":                {`printf '{"decision":"de'`, false, "no JSON object"},
		"odd type":            {`echo '{"decision":true}'`, false, "not {decision, reason, context}"},
		"foreign no":          {`echo '{"hookSpecificOutput":{"permissionDecision":"deny"}}'`, false, "not {decision, reason, context}"},
		"reason in both":      {`echo '{"decision":"deny","reason":"because"}'; exit 2`, false, "because"},
		"complains at length": {"yes no | head -c 400000 >&2; exit 2", false, "no no no"},
		"talks and passes":    {"yes hm | head -c 400000 >&2", true, "written"},
		"is deaf to ends":     {"trap '' TERM; while :; do sleep 1; done", false, "took longer than"},
		"leaves a talker":     {`(while :; do echo x; : > "$0.said"; sleep 0.01; done) & until [ -e "$0.said" ]; do sleep 0.01; done; exit 0`, false, ""},
		"prose":               {"echo all is well", false, "no JSON object"},
		"odd decision":        {`echo '{"decision":"perhaps"}'`, false, "neither allow nor deny"},
		"floods":              {"yes | head -c 200000", false, "answered more than"},
		"hangs":               {"sleep 300", false, "took longer than"},
		"leaves child":        {"sleep 300 & exit 0", true, "written"},
	} {
		t.Run(name, func(t *testing.T) {
			limit := 5 * time.Minute
			if name == "hangs" || name == "is deaf to ends" {
				limit = 500 * time.Millisecond
			}
			r, _, ran, _ := open(t, nil, config.Hook{Event: BeforeTool, Command: []string{script(t, c.script)}, Timeout: strict.Duration{Duration: limit}})
			start := time.Now()
			res := write(r, "a")
			if (*ran == 1) != c.ran || res.IsError == c.ran || !strings.Contains(res.Text(), c.says) {
				t.Errorf("ran %d times: %s", *ran, res.Text())
			}
			if time.Since(start) > 2*time.Minute {
				t.Errorf("it took %s", time.Since(start))
			}
		})
	}
	r, _, ran, _ := open(t, nil, config.Hook{Event: BeforeTool, Command: []string{filepath.Join(t.TempDir(), "gone")}})
	if res := write(r, "a"); *ran > 0 || !strings.Contains(res.Text(), "could not be run") {
		t.Errorf("a hook that is not there let a call through: %s", res.Text())
	}
}

func TestMatch(t *testing.T) {
	r, _, ran, _ := open(t, nil, config.Hook{Event: BeforeTool, Match: "Write(secret/**)", Command: []string{script(t, "exit 2")}})
	if res := write(r, "open/a"); res.IsError || *ran != 1 {
		t.Errorf("%s", res.Text())
	}
	if res := write(r, "secret/a"); !res.IsError || *ran != 1 {
		t.Errorf("%s", res.Text())
	}
}

// What a hook is told, and in what surroundings it runs.
func TestEventAndSurroundings(t *testing.T) {
	out := filepath.Join(t.TempDir(), "event")
	t.Setenv("ANTHROPIC_API_KEY", "sk-secret")
	r, h, _, _ := open(t, nil,
		config.Hook{Event: BeforeTool, Command: []string{script(t, `cat > "$1.before"; env > "$1.env"; pwd > "$1.pwd"`), out}},
		config.Hook{Event: AfterTool, Command: []string{script(t, `cat > "$1.after"`), out}})
	write(r, "a")
	var e Event
	b, err := os.ReadFile(out + ".before")
	if err != nil || json.Unmarshal(b, &e) != nil {
		t.Fatalf("%s %v", b, err)
	}
	if e.V != 1 || e.Event != BeforeTool || e.Session != "s2" || e.Agent != "a" || e.Step != 3 || e.Tool != "Write" || e.Origin != "builtin" || string(e.Args) != `{"path":"a"}` || e.Mode != host.ModeAuto || e.Result != nil {
		t.Errorf("%s", b)
	}
	b, _ = os.ReadFile(out + ".after")
	if err := json.Unmarshal(b, &e); err != nil || e.Result == nil || e.Result.Text != "written" || e.Result.IsError {
		t.Errorf("%s", b)
	}
	if b, _ := os.ReadFile(out + ".env"); strings.Contains(string(b), "sk-secret") || !strings.Contains(string(b), "ELFHOST_EVENT=before_tool") {
		t.Errorf("%s", b)
	}
	dir, _ := filepath.EvalSymlinks(h.Dir)
	if b, _ := os.ReadFile(out + ".pwd"); strings.TrimSpace(string(b)) != dir {
		t.Errorf("%s", b)
	}
}

func TestAfterTool(t *testing.T) {
	for name, c := range map[string]struct {
		script, says string
		notes        int
	}{
		"adds":     {`echo '{"context":"run the tests"}'`, "A hook of the person adds: run the tests", 0},
		"objects":  {"echo 'badly formatted' >&2; exit 2", "A hook of the person says: badly formatted", 0},
		"fails":    {"exit 1", "written", 1},
		"is quiet": {"exit 0", "written", 0},
	} {
		r, _, ran, notes := open(t, nil, config.Hook{Event: AfterTool, Command: []string{script(t, c.script)}})
		res := write(r, "a")
		if res.IsError || *ran != 1 || !strings.Contains(res.Text(), "written") || !strings.Contains(res.Text(), c.says) || len(*notes) != c.notes {
			t.Errorf("%s: %s, %q", name, res.Text(), *notes)
		}
	}
}

func TestPromptAndSession(t *testing.T) {
	_, h, _, notes := open(t, nil,
		config.Hook{Event: SessionStart, Command: []string{script(t, `echo '{"context":"it is late"}'`)}},
		config.Hook{Event: Prompt, Command: []string{script(t, `grep -q forbidden && { echo no >&2; exit 2; }; echo '{"context":"be brief"}'`)}},
		config.Hook{Event: Stop, Command: []string{script(t, "exit 3")}})
	ctx := context.Background()
	if got := h.Start(ctx); got != "it is late" {
		t.Errorf("%q", got)
	}
	if got, err := h.Ask(ctx, "fine"); got != "be brief" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	if _, err := h.Ask(ctx, "forbidden"); err == nil || err.Error() != "no" {
		t.Errorf("%v", err)
	}
	h.Stopped(ctx, "end")
	h.End(ctx)
	if len(*notes) != 1 || !strings.Contains((*notes)[0], "status 3") {
		t.Errorf("%q", *notes)
	}
}

// A policy that forbids programs forbids hooks; then guards refuse.
func TestPolicyForbidsPrograms(t *testing.T) {
	pol, err := policy.NewPolicy(policy.Layer{Kind: policy.System, Deny: []policy.Grant{{Cap: abi.Exec}}})
	if err != nil {
		t.Fatal(err)
	}
	r, _, ran, _ := open(t, pol, config.Hook{Event: BeforeTool, Command: []string{script(t, "exit 0")}})
	if res := write(r, "a"); *ran > 0 || !res.IsError {
		t.Errorf("%s", res.Text())
	}
}

func TestBadConfiguration(t *testing.T) {
	for _, c := range []config.Hook{
		{Event: "before", Command: []string{"x"}}, {Event: BeforeTool}, {Event: BeforeTool, Command: []string{""}}, {Event: BeforeTool, Match: "Bash(", Command: []string{"x"}},
	} {
		if _, err := New([]config.Hook{c}, Options{}); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"decision":"deny","reason":"x","context":"y"}`))
	f.Add([]byte(`{"decision":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := reply("h", b)
		if err == nil && r.Decision != "" && r.Decision != "allow" && r.Decision != "approve" && r.Decision != "continue" {
			t.Errorf("%q let through as %q", b, r.Decision)
		}
		if err == nil && strings.Contains(r.Reason, "\n") {
			t.Errorf("%q", r.Reason)
		}
	})
}
