package app_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/elfhost/elfhost/internal/app"
)

// TestToolsOfTheDialect: clients and prompts that were written for these tools
// find them with these parameters. Only what may be left out can be added.
func TestToolsOfTheDialect(t *testing.T) {
	h := newHouse(t)
	a, err := app.Open(context.Background(), app.Options{Dir: h.dir, Dialect: "acp", Env: h.env})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close(context.Background())
	for tool, want := range map[string]struct {
		required, optional []string
		more               []string // that we add
	}{
		"ReadFile":     {[]string{"path"}, []string{"cwd", "force", "limit", "line"}, nil},
		"WriteFile":    {[]string{"content", "path"}, []string{"cwd"}, nil},
		"EditFile":     {[]string{"newText", "oldText", "path"}, []string{"cwd", "replaceAll"}, nil},
		"Shell":        {[]string{"command"}, []string{"args", "cwd", "env", "outputByteLimit", "timeoutSeconds"}, []string{"background"}},
		"Plan":         {[]string{"entries"}, nil, nil},
		"Subagent":     {[]string{"purpose", "tasks"}, nil, nil},
		"rg":           {[]string{"args"}, nil, []string{"cwd"}},
		"file_outline": {[]string{"path"}, nil, []string{"cwd"}},
		"search": {[]string{"pattern"}, []string{"path", "ignoreCase", "fixedStrings", "type", "glob", "context", "maxResults", "listFiles", "invertMatch", "wordMatch"},
			[]string{"cwd"}},
	} {
		spec, ok := a.Registry.Spec(tool)
		if !ok {
			t.Errorf("there is no %s", tool)
			continue
		}
		var in struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
		}
		if err := json.Unmarshal(spec.Input, &in); err != nil {
			t.Fatal(err)
		}
		slices.Sort(in.Required)
		if !slices.Equal(in.Required, want.required) {
			t.Errorf("%s needs %q, not %q", tool, in.Required, want.required)
		}
		all := slices.Concat(want.required, want.optional, want.more)
		slices.Sort(all)
		if got := slices.Sorted(maps.Keys(in.Properties)); !slices.Equal(got, all) {
			t.Errorf("%s takes %q, not %q", tool, got, all)
		}
	}
	want := []string{
		"ReadFile", "WriteFile", "EditFile", "Shell", "Plan", "Subagent", "ImageAnalysis", "search", "rg", "file_outline", // the dialect
		"ShellJob",                                                                                                             // the other half of Shell's background
		"WebSearch", "WebFetch", "list_skills", "read_skill", "skillhub_search", "skillhub_install", "slash_command", "Notify", // of no dialect
		"mcp__search__search", "mcp__search__rg", "mcp__search__file_outline", "mcp__skills__list_skills", "mcp__skills__read_skill",
	}
	slices.Sort(want)
	var got []string
	for _, tool := range a.Registry.All() {
		got = append(got, tool.Spec().Name)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the tools are\n%q, not\n%q", got, want)
	}
	b, err := app.Open(context.Background(), app.Options{Dir: h.dir, Dialect: "acp", Env: h.env, Tools: []string{"Glob"}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	if !b.Registry.Has("Glob") {
		t.Error("a tool that was named is not here")
	}
}
