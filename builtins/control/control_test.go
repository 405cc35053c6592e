package control

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/shell"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

func callOf(args string) host.Call {
	return host.Call{ID: "c1", Args: json.RawMessage(args), Caller: host.Caller{Session: "s1"}}
}

// house is a session with a real shell, a workspace and two folders of commands.
type house struct {
	t        *testing.T
	dir      string // the workspace
	user     string // the user's commands
	trusted  bool
	swapped  string // content that nobody trusted
	gate     *host.Gate
	registry *host.Registry
	commands *Commands
}

func newHouse(t *testing.T, mode host.Mode) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), user: t.TempDir()}
	mount := func(name, dir string) *reach.Tree {
		tree, err := reach.NewTree(reach.Mount{Name: name, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tree.Close() })
		return tree
	}
	ws, own := mount("/ws", h.dir), mount("/commands", h.user)
	grants := func(gs ...policy.Grant) policy.Grants {
		g, err := policy.New("test", gs...)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	sh, err := shell.New(shell.Options{Tree: ws, Runner: &reach.Runner{}, Logs: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sh.Close() })
	h.gate = &host.Gate{Mode: mode, Workspace: h.dir, Grants: grants(
		policy.Grant{Cap: abi.FSRead, Scope: []string{"/ws/**"}}, policy.Grant{Cap: abi.FSWrite, Scope: []string{"/ws/**"}}, shell.Grant())}
	h.registry = host.New(host.Options{Gate: h.gate})
	read := policy.Rights{Grants: grants(policy.Grant{Cap: abi.FSRead, Scope: []string{"/commands", "/commands/**"}})}
	h.commands = &Commands{
		Folders: []Folder{
			{Source: "user", Tree: own, Dir: "/commands", Rights: &read},
			{Source: "project", Tree: ws, Dir: "/ws/.elfhost/commands", Trusted: h.trust},
		},
		Tree:     ws,
		Registry: func(context.Context) *host.Registry { return h.registry },
		Narrow:   func(_ context.Context, p []policy.Pattern) { h.gate.Narrow(p...) },
	}
	if err := h.registry.Add(sh.Tools()...); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) trust() func(string, []byte) bool {
	if !h.trusted {
		return nil
	}
	return func(file string, b []byte) bool { return h.swapped == "" || !strings.Contains(string(b), h.swapped) }
}

// open registers the tools, once the folders hold what they should.
func (h *house) open() *house {
	h.t.Helper()
	if err := h.registry.Add(append(Tools(Options{}), h.commands.Tool())...); err != nil {
		h.t.Fatal(err)
	}
	return h
}

func (h *house) write(dir, name, text string) {
	h.t.Helper()
	p := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) call(tool string, args map[string]any) abi.Result {
	h.t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.registry.Invoke(context.Background(), host.Call{ID: "c1", Tool: tool, Args: b, Caller: host.Caller{Session: "s1"}})
}

func (h *house) slash(command, args string) abi.Result {
	h.t.Helper()
	return h.call("slash_command", map[string]any{"command": command, "args": args})
}

func want(t *testing.T, res abi.Result, isError bool, texts ...string) {
	t.Helper()
	if res.IsError != isError {
		t.Errorf("IsError is %v: %s", res.IsError, res.Text())
	}
	for _, w := range texts {
		if !strings.Contains(res.Text(), w) {
			t.Errorf("the result lacks %q:\n%s", w, res.Text())
		}
	}
}

func TestSlashCommand(t *testing.T) {
	h := newHouse(t, host.ModeAuto)
	h.write(h.dir, "main.go", "package main\n")
	h.write(h.user, "review.md", "---\ndescription: Reviews a file\nargument-hint: FILE\n---\nReview @$1 for $2.\n")
	h.write(h.user, "git/log.md", "Last: !`echo one; echo two`\nDone.")
	h.write(h.user, "plain.md", "Just do it.")
	h.write(h.dir, ".elfhost/commands/review.md", "The project's own.")
	h.write(h.dir, ".elfhost/commands/deploy.md", "Deploy it.")
	h.open()

	spec, _ := h.registry.Spec("slash_command")
	for _, w := range []string{"/review FILE: Reviews a file", "/git:log"} {
		if !strings.Contains(spec.Description, w) {
			t.Errorf("the description lacks %q", w)
		}
	}
	want(t, h.slash("/review", "main.go speed"), false, "Review @main.go for speed.", "The file main.go:\n```\npackage main\n```", "(user)")
	want(t, h.slash("review main.go speed", ""), false, "Review @main.go for speed.")
	want(t, h.slash("git:log", ""), false, "Last: one\ntwo\nDone.")
	want(t, h.slash("git/log", ""), false, "Last: one")
	want(t, h.slash("plain", "and well"), false, "Just do it.\n\nArguments: and well")
	want(t, h.slash("review", "gone.go x"), false, "There is no file gone.go")
	want(t, h.slash("review", "../../etc/passwd x"), false, "outside of what may be read")
	want(t, h.slash("nothing", ""), true, "There is no such command", "/git:log, /plain, /review")
	for _, name := range []string{"../review", "/etc/passwd", ".hidden", "a::b", "", strings.Repeat("a", 200)} {
		if res := h.slash(name, ""); !res.IsError {
			t.Errorf("%q is a command: %s", name, res.Text())
		}
	}
	// A project's commands wait for trust, and never replace a person's own.
	want(t, h.slash("deploy", ""), true, "nobody trusts this folder", "elfhost trust")
	h.trusted = true
	want(t, h.slash("deploy", ""), false, "Deploy it.", "(project)")
	want(t, h.slash("review", "main.go x"), false, "(user)")
	// The folder is trusted, and what was read of this file is not what was.
	h.swapped = "Deploy it."
	want(t, h.slash("deploy", ""), true, "nobody trusts this folder")
	for _, c := range h.commands.List(t.Context(), policy.Rights{Grants: h.gate.Grants}) {
		if c.Name == "deploy" {
			t.Error("it is listed")
		}
	}
}

// TestX01ArgumentsAreNotShellText: whatever is in an argument, the shell takes
// it for a value, in every kind of quotes.
// What a command's program has in single quotes is that program's own, in which
// a dollar is no argument of the command, given or not.
func TestX04DollarsOfAProgram(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no POSIX shell")
	}
	h := newHouse(t, host.ModeAuto)
	h.write(h.user, "x.md", "Second: !`echo left right | awk '{print $2}'` of $1 and [$2]\n")
	h.open()
	want(t, h.slash("x", "one"), false, "Second: right of one and []")
	want(t, h.slash("x", "one two"), false, "Second: right of one and [two]")
}

func TestX01ArgumentsAreNotShellText(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no POSIX shell")
	}
	h := newHouse(t, host.ModeAuto)
	h.write(h.user, "x.md", "Bare: !`echo $ARGUMENTS`\nQuoted: !`echo \"$ARGUMENTS\"`\nFirst: !`echo \"<$1>\" '$1'`\nMissing: !`echo [$9]`\n")
	h.open()
	want(t, h.slash("x", "don't try $(touch pwn)"), false,
		"Bare: don't try $(touch pwn)\n", "Quoted: don't try $(touch pwn)\n", "First: <don't> $1\n", "Missing: []")
	for _, args := range []string{"`touch pwn`", `"; touch pwn; "`, "'; touch pwn; '", "x\ntouch pwn", "$(touch pwn)", `\'; touch pwn #`, "& touch pwn &"} {
		h.slash("x", args)
		if _, err := os.Stat(filepath.Join(h.dir, "pwn")); err == nil {
			t.Fatalf("the argument %q was run", args)
		}
	}
}

// TestShellLinesAreAskedAbout: a shell line goes through the same gate as Bash,
// and a refusal fails the command.
func TestShellLinesAreAskedAbout(t *testing.T) {
	h := newHouse(t, host.ModeAsk)
	h.gate.Approver = approves{"slash_command"}
	h.write(h.user, "x.md", "Now: !`touch made`")
	h.write(h.user, "crit.md", "Now: !`rm -rf /`")
	h.open()
	want(t, h.slash("x", ""), true, "was not expanded", "touch made", "refused")
	if _, err := os.Stat(filepath.Join(h.dir, "made")); err == nil {
		t.Fatal("a refused shell line was run")
	}
	h.gate.Approver = approves{"slash_command", "Bash"}
	want(t, h.slash("x", ""), false, "Now:")
	if _, err := os.Stat(filepath.Join(h.dir, "made")); err != nil {
		t.Fatal("an approved shell line was not run")
	}
	want(t, h.slash("crit", ""), true, "was not expanded")
}

type approves []string

func (a approves) Approve(_ context.Context, q host.Ask) (host.Answer, error) {
	for _, name := range a {
		if q.Spec.Name == name {
			return host.Answer{Allow: true, Scope: host.Once}, nil
		}
	}
	return host.Answer{}, nil
}

func TestAllowedToolsNarrow(t *testing.T) {
	h := newHouse(t, host.ModeAuto)
	h.write(h.user, "look.md", "---\nallowed-tools: Read, Bash(git status:*), Bash(printf:*)\n---\nLook. !`printf ran`")
	h.write(h.user, "none.md", "---\nallowed-tools: \"Bash(\"\n---\nLook.")
	h.open()
	want(t, h.slash("look", ""), false, "Look. ran", "only these tools may be used: Read, Bash(git status:*), Bash(printf:*)")
	want(t, h.call("Bash", map[string]any{"command": "echo x"}), true, "other things only")
	want(t, h.call("Plan", map[string]any{"entries": []any{}}), true, "may not use this tool")
	h.gate.Widen()
	want(t, h.call("Bash", map[string]any{"command": "echo x"}), false, "x")
	// What cannot be read leaves nothing; it never means everything.
	want(t, h.slash("none", ""), false)
	want(t, h.call("Bash", map[string]any{"command": "echo x"}), true, "may not use")

	p, narrowed := Command{Tools: []string{"Read", "Bash(ls:*)"}, narrowed: true}.Allowed()
	var names []string
	for _, x := range p {
		names = append(names, x.String())
	}
	if got := strings.Join(names, " "); !narrowed || got != "Read ReadFile Bash(ls:*) Shell(ls:*)" {
		t.Errorf("Allowed gives %q", got)
	}
}

// A command's own shell lines are among what its allowed-tools leave, or it
// is not carried out at all.
func TestAllowedToolsHoldShellLines(t *testing.T) {
	h := newHouse(t, host.ModeAuto)
	for name, c := range map[string]struct {
		tools, line string
		runs        bool
	}{
		"covered":  {"Read, Bash(echo:*)", "echo ran", true},
		"argument": {"Bash(echo:*)", "echo ran $1 \"$ARGUMENTS\"", true},
		"whole":    {"Bash", "touch f; echo ran", true},
		"twin":     {"Shell(echo:*)", "echo ran", true},
		"other":    {"Bash(git status:*)", "touch ran", false},
		"chain":    {"Bash(echo:*)", "echo ran; touch ran", false},
		"hidden":   {"Bash(echo:*)", "echo $(touch ran)", false},
		"none":     {"Read", "touch ran", false},
		"empty":    {"[]", "touch ran", false},
		"verb":     {"Bash(git status:*)", "git $1 ran", false},
	} {
		h.write(h.user, name+".md", "---\nallowed-tools: "+c.tools+"\n---\nLook. !`"+c.line+"`")
		x, err := h.commands.Expand(t.Context(), callOf("{}"), name, "a b")
		switch {
		case c.runs && (err != nil || !strings.Contains(x.Text, "ran")):
			t.Errorf("%s: %q, %v", name, x.Text, err)
		case !c.runs && (err == nil || !strings.Contains(err.Error(), "allowed-tools")):
			t.Errorf("%s: %q, %v", name, x.Text, err)
		}
		if _, err := os.Stat(filepath.Join(h.dir, "ran")); err == nil {
			t.Fatalf("%s: it ran", name)
		}
	}
}

func TestPlan(t *testing.T) {
	var told [][]Entry
	plans := &Plans{}
	r := host.New(host.Options{})
	if err := r.Add(Tools(Options{Plans: plans, Planned: func(_ context.Context, e []Entry) { told = append(told, e) }})...); err != nil {
		t.Fatal(err)
	}
	plan := func(args string) abi.Result {
		return r.Invoke(context.Background(), host.Call{ID: "c", Tool: "Plan", Args: json.RawMessage(args), Caller: host.Caller{Session: "s1"}})
	}
	want(t, plan(`{"entries":[{"content":"read","priority":"high","status":"completed"},{"content":"write","status":"in_progress"},{"content":"test"}]}`), false, "1 completed, 1 in progress, 1 pending")
	if got := plans.Text("s1"); got != "- [x] read (high)\n- [~] write\n- [ ] test" {
		t.Errorf("the plan is\n%s", got)
	}
	if plans.Text("s2") != "" {
		t.Error("another session sees the plan")
	}
	// The whole list replaces; a list in a string is repaired, a wrong status is not.
	want(t, plan(`{"entries":"[{\"content\":\"all new\"}]"}`), false, "1 pending")
	want(t, plan(`{"entries":[{"content":"x","status":"done"}]}`), true, "status")
	want(t, plan(`{"entries":[{"content":"  "}]}`), true, "blank")
	if got := plans.Text("s1"); got != "- [ ] all new" {
		t.Errorf("the plan is\n%s", got)
	}
	want(t, plan(`{"entries":[]}`), false, "cleared")
	if len(told) != 3 || len(told[0]) != 3 || told[1][0].Priority != "medium" || plans.Of("s1") != nil {
		t.Errorf("the front end was told %v", told)
	}
	plans.Restore("s1", []byte(`{"entries":[{"content":"old"}]}`))
	plans.Restore("s1", []byte(`{"entries":`))
	if got := plans.Text("s1"); got != "- [ ] old" {
		t.Errorf("restored: %s", got)
	}
}
