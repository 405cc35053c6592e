package agents

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

const reviewer = `---
name: reviewer
description: Reviews: carefully
model: anthropic/claude-haiku-4-5
allowedTools: [Read, Grep, "Bash(git diff:*)"]
disallowedTools: mcp__web__*
permissionMode: plan
maxIterations: 12
mcpServerIds: [git]
directMcpServers:
  - name: lint
    command: python3
    args: ["-m", "lint"]
    env: {LEVEL: 3}
---
You review.

---
A rule in the text.
`

func TestDefinition(t *testing.T) {
	d := ParseDefinition([]byte(reviewer), "file", false)
	if d.Problem != "" || d.Name != "reviewer" || d.Description != "Reviews: carefully" || d.Model != "anthropic/claude-haiku-4-5" || d.Mode != host.ModePlan || d.Steps != 12 {
		t.Errorf("%+v", d)
	}
	if !slices.Equal(d.Tools, []string{"Read", "Grep", "Bash(git diff:*)"}) || !slices.Equal(d.Without, []string{"mcp__web__*"}) || !slices.Equal(d.Servers, []string{"git"}) {
		t.Errorf("%q %q %q", d.Tools, d.Without, d.Servers)
	}
	if want := []Server{{Name: "lint", Command: "python3", Args: []string{"-m", "lint"}, Env: map[string]string{"LEVEL": "3"}}}; !reflect.DeepEqual(d.Direct, want) {
		t.Errorf("%+v", d.Direct)
	}
	if !strings.HasPrefix(d.Text, "You review.") || !strings.HasSuffix(d.Text, "A rule in the text.") {
		t.Errorf("%q", d.Text)
	}
	if acp := ParseDefinition([]byte(reviewer), "file", true); !slices.Equal(acp.Tools, []string{"ReadFile", "search", "Shell(git diff:*)"}) {
		t.Errorf("%q", acp.Tools)
	}
}

func TestDefinitionForms(t *testing.T) {
	for name, c := range map[string]struct {
		in    string
		check func(d Definition) bool
	}{
		"bare": {"Just do it.", func(d Definition) bool {
			return d.Name == "file" && d.Problem == "" && d.Tools == nil && d.Servers == nil
		}},
		"empty":      {"---\nname: x\n---\n", func(d Definition) bool { return d.Problem == "it has no instructions" }},
		"binary":     {"\x00", func(d Definition) bool { return d.Problem != "" }},
		"no tools":   {"---\ntools: []\n---\nx", func(d Definition) bool { return d.Tools != nil && len(d.Tools) == 0 }},
		"no servers": {"---\nmcpServerIds: []\n---\nx", func(d Definition) bool { return d.Servers != nil && len(d.Servers) == 0 }},
		"others": {"---\ntools: LS, MultiEdit, Task\nmodel: sonnet\n---\nx", func(d Definition) bool {
			return slices.Equal(d.Tools, []string{"ListDir", "Edit", "spawn_agent"}) && d.Model == "" && len(d.Warnings) == 1
		}},
		"bad mode": {"---\npermissionMode: root\n---\nx", func(d Definition) bool { return strings.Contains(d.Problem, "no permission mode") }},
		"effort": {"---\neffort: High\n---\nx", func(d Definition) bool {
			s, err := d.Request("")
			return s.Effort == "high" && err == nil && d.Warnings == nil
		}},
		"most": {"---\neffort: max\n---\nx", func(d Definition) bool { return d.Effort == "high" && d.Warnings == nil }},
		"bad effort": {"---\neffort: lots\n---\nx", func(d Definition) bool {
			return d.Effort == "" && d.Problem == "" && len(d.Warnings) == 1 && strings.Contains(d.Warnings[0], "none, low, medium, high")
		}},
		"bad rule": {"---\ntools: [\"Bash(git\", Read]\n---\nx", func(d Definition) bool { return slices.Equal(d.Tools, []string{"Read"}) && len(d.Warnings) == 1 }},
		"bad servers": {"---\nmcpServerIds: {a: b}\ndirectMcpServers: [x, {name: y}]\n---\nx", func(d Definition) bool {
			return d.Servers != nil && len(d.Servers) == 0 && d.Direct == nil && len(d.Warnings) == 3
		}},
		"by name": {"---\ndirectMcpServers:\n  lint: {command: lint, args: []}\n---\nx", func(d Definition) bool { return len(d.Direct) == 1 && d.Direct[0].Name == "lint" }},
		"args":    {"---\ndirectMcpServers:\n  lint: {command: lint, args: \"a b\"}\n---\nx", func(d Definition) bool { return d.Direct == nil && len(d.Warnings) == 1 }},
		"steps":   {"---\nmaxTurns: -1\n---\nx", func(d Definition) bool { return d.Steps == 0 && len(d.Warnings) == 1 }},
	} {
		if d := ParseDefinition([]byte(c.in), "file", false); !c.check(d) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// A definition narrows a request, never the other way round.
func TestDefinitionNarrows(t *testing.T) {
	d := Definition{Name: "a", Text: "T", Tools: []string{"Read"}, Mode: host.ModeAcceptEdits, Steps: 10, Model: "p/m", Servers: []string{"git"}}
	for _, c := range []struct {
		in    agent.Spawn
		steps int
		mode  host.Mode
		model string
	}{
		{agent.Spawn{}, 10, host.ModeAcceptEdits, "p/m"},
		{agent.Spawn{Steps: 5, Mode: host.ModePlan, Model: "q/n"}, 5, host.ModePlan, "q/n"},
		{agent.Spawn{Steps: 500, Mode: "bypass"}, 10, host.ModeAcceptEdits, "p/m"},
	} {
		s := c.in
		if err := d.apply(&s); err != nil || s.Steps != c.steps || s.Mode != c.mode || s.Model != c.model || !slices.Equal(s.Within, []string{"Read"}) || s.System != "T" {
			t.Errorf("%+v %v", s, err)
		}
		if s.Keep(host.Spec{Name: "mcp__web__get", Origin: host.Origin{Source: host.MCP, Name: "web"}}) || !s.Keep(host.Spec{Name: "mcp__git__log", Origin: host.Origin{Source: host.MCP, Name: "git"}}) {
			t.Error("mcpServerIds do not hold")
		}
	}
	if err := d.apply(&agent.Spawn{Mode: "root"}); err == nil {
		t.Error("an unknown mode was taken")
	}
}

func TestNamedAgent(t *testing.T) {
	defs := []Definition{ParseDefinition([]byte(reviewer), "reviewer", false), {Name: "broken", Problem: "it has no instructions"}}
	o := Options{Known: defs, Definitions: func(context.Context, policy.Rights) ([]Definition, error) { return defs, nil }}
	h := newHouse(t, o, &host.Gate{Mode: host.ModeAuto}, map[string][]answer{
		"": {does("spawn_agent", `{"prompt":"CHILD","agent":"Reviewer","model":"x/y","tools":["Read","Write","mcp__git__log","Bash"]}`, `{"prompt":"x","agent":"nobody"}`, `{"prompt":"x","agent":"broken"}`)},
		// In plan mode nothing but the safe set is offered, and the definition has no Write.
		"CHILD": {does("Write", "{}"), does("Read", "{}")},
	})
	h.run(context.Background())
	res := h.results()
	if res[0].IsError || !strings.Contains(res[1].Text(), "There are: reviewer.") || !strings.Contains(res[2].Text(), "it has no instructions") {
		t.Errorf("%s\n%s\n%s", res[0].Text(), res[1].Text(), res[2].Text())
	}
	r := h.model.request(t, "CHILD")
	if got := offered(r); !slices.Equal(got, []string{"Read"}) || !slices.Equal(h.ran, []string{"Read{}"}) {
		t.Errorf("offered %q, ran %q", got, h.ran)
	}
	if !strings.Contains(r.System, "You review.") || !strings.HasPrefix(r.System, "PARENT") {
		t.Errorf("%q", r.System)
	}
	spec, _ := h.tools.Spec("spawn_agent")
	if !strings.Contains(spec.Description, "- reviewer: Reviews: carefully") || strings.Contains(spec.Description, "broken") {
		t.Errorf("%s", spec.Description)
	}
}

func TestFindDefinitions(t *testing.T) {
	user, ws := t.TempDir(), t.TempDir()
	put := func(dir, name, text string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(user, "reviewer.md", reviewer)
	put(user, "README.md", "no agent")
	put(user, "notes.txt", "no agent")
	put(ws, ".elfhost/agents/reviewer.md", "THEIRS")
	put(ws, ".elfhost/agents/lint.md", strings.Replace(reviewer, "name: reviewer", "name: lint", 1))
	put(ws, ".elfhost/agents/huge.md", strings.Repeat("x", 1<<20+1))
	tree, err := reach.NewTree(reach.Mount{Name: "/ws", Dir: ws}, reach.Mount{Name: "/agents", Dir: user, Hidden: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	grants, err := policy.New("session", policy.Grant{Cap: abi.FSRead, Scope: []string{"/ws/**"}})
	if err != nil {
		t.Fatal(err)
	}
	trusted, seen := false, strings.Replace(reviewer, "name: reviewer", "name: lint", 1)
	s := &Shelf{Tree: tree.Reveal(), Folders: []Folder{{"/agents", false}, {"/ws/.elfhost/agents", true}, {"/ws/none", true}}, Trusted: func() func(string, []byte) bool {
		if !trusted {
			return nil
		}
		return func(file string, b []byte) bool { return file == "/ws/.elfhost/agents/lint.md" && string(b) == seen }
	}}
	for _, trusted = range []bool{false, true} {
		all, err := s.All(context.Background(), policy.Rights{Grants: grants})
		if err != nil || len(all) != 3 {
			t.Fatalf("%+v %v", all, err)
		}
		huge, lint, own := all[0], all[1], all[2]
		if huge.Problem == "" || own.Project || len(own.Direct) != 1 || !lint.Project || (len(lint.Direct) == 1) != trusted {
			t.Errorf("trusted %v: %+v", trusted, all)
		}
	}
	// The folder is trusted, and this is not what was.
	put(ws, ".elfhost/agents/lint.md", strings.Replace(seen, "command: ", "command: evil-", 1)+"\n")
	all, err := s.All(context.Background(), policy.Rights{Grants: grants})
	if err != nil || len(all) != 3 || len(all[1].Direct) != 0 || len(all[1].Warnings) == 0 {
		t.Errorf("what was put in a trusted file's place: %+v %v", all, err)
	}
}

func FuzzDefinition(f *testing.F) {
	f.Add([]byte(reviewer))
	f.Add([]byte("---\ndirectMcpServers: {a: {command: b, env: {c: d}}}\nmaxTurns: x\n---\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := ParseDefinition(b, "file", true)
		for _, r := range d.Tools {
			if _, err := policy.ParsePattern(r); err != nil {
				t.Errorf("%q: %v", r, err)
			}
		}
		for _, s := range d.Direct {
			if s.Name == "" || s.Command == "" {
				t.Errorf("%+v", s)
			}
		}
		if d.Problem == "" {
			if err := d.apply(&agent.Spawn{}); err != nil {
				t.Error(err)
			}
		}
	})
}
