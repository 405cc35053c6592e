package app_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
)

// withKeys opens a session whose environment has the keys of these vendors.
func withKeys(m *machine, env map[string]string) *app.App {
	m.t.Helper()
	a, err := app.Open(m.t.Context(), app.Options{Dir: m.dir, Paths: &m.paths, Env: func(k string) string { return env[k] }})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { a.Close(context.Background()) })
	return a
}

var everyKey = map[string]string{"ANTHROPIC_API_KEY": "k1", "OPENAI_API_KEY": "k2", "XAI_API_KEY": "k3", "GOOGLE_API_KEY": "k4", "DEEPSEEK_API_KEY": "k5"}

func TestModelNames(t *testing.T) {
	m := newMachine(t)
	m.write("home/config.toml", `
[providers.work]
kind = "openai-chat"
base_url = "https://models.example/v1"
models = ["qwen/qwen3", "twice"]
[providers.home]
kind = "openai-chat"
base_url = "https://other.example/v1"
models = ["twice"]
[providers.grok]
kind = "openai-chat"
base_url = "https://grok.example/v1"
`)
	a := withKeys(m, everyKey)
	for name, want := range map[string]string{
		"anthropic/claude-opus-5-5": "anthropic/claude-opus-5-5", "gemini/gemini-3.8-flash": "google/gemini-3.8-flash", "Claude/x": "anthropic/x",
		"gpt-5.6": "openai/gpt-5.6", "claude-haiku-4-5": "anthropic/claude-haiku-4-5", "gemini-2.5-pro": "google/gemini-2.5-pro", "grok-4.7": "xai/grok-4.7",
		"o3": "openai/o3", "deepseek-chat": "deepseek/deepseek-chat", "qwen/qwen3": "work/qwen/qwen3", "work/other": "work/other", "grok/x": "grok/x", "x-ai/x": "xai/x",
		"ollama/qwen3:8b": "ollama/qwen3:8b", "lm-studio/a/b": "lmstudio/a/b",
	} {
		c, err := a.Model(t.Context(), name)
		if err != nil || c.Name != want {
			t.Errorf("%s is %q, want %q: %v", name, c.Name, want, err)
		}
	}
	for name, says := range map[string]string{
		"twice": "home/twice or work/twice", "nobody/x": `no model provider "nobody"`, "/x": "no model provider", "grok": "no default model", "llama": "no model provider",
	} {
		_, err := a.Model(t.Context(), name)
		if says != "" && (err == nil || !strings.Contains(err.Error()+hint(err), says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A provider's own search takes WebSearch's place where it works beside other
// tools, and nowhere else.
func TestNativeSearchTakesThePlace(t *testing.T) {
	m := newMachine(t)
	m.write("home/config.toml", `
[providers.work]
kind = "openai"
base_url = "https://models.example/v1"
[providers.openrouter]
kind = "openai-chat"
api_key_env = "XAI_API_KEY"
`)
	a := withKeys(m, everyKey)
	for _, name := range slices.Sorted(maps.Keys(searching)) {
		c, err := a.Model(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		l, err := a.Loop(t.Context(), c, agent.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		native, offered := asked(t, l)
		if native != searching[name] || offered == native {
			t.Errorf("%s: native %v, and WebSearch is offered: %v", name, native, offered)
		}
	}
}

// asked runs a loop, with the same settings, whose model says one word: what
// it was asked with is returned.
func asked(t *testing.T, l *agent.Loop) (native, offered bool) {
	t.Helper()
	one := *l
	one.Model = listener{&native, &offered}
	for _, err := range one.Run(t.Context(), agent.New("asked", nil), abi.TextBlock("hi")) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return native, offered
}

type listener struct{ native, offered *bool }

func (l listener) Stream(_ context.Context, r model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		*l.native = r.Search != nil
		*l.offered = slices.ContainsFunc(r.Tools, func(t model.Tool) bool { return t.Name == "WebSearch" })
		word := abi.TextBlock("yes")
		_ = yield(model.Event{Kind: model.KindBlock, Block: &model.Block{Content: &word}}, nil) &&
			yield(model.Event{Kind: model.KindStop, Stop: model.StopEnd}, nil)
	}
}

// A sub-agent on a vendor without a search of its own has the tool, although
// its parent's provider searches by itself; and the other way round.
func TestSearchOfASubAgentElsewhere(t *testing.T) {
	m := newMachine(t)
	a := withKeys(m, everyKey)
	for _, c := range []struct{ parent, child string }{
		{"anthropic/claude-sonnet-5-5", "deepseek/deepseek-chat"}, {"deepseek/deepseek-chat", "anthropic/claude-sonnet-5-5"}, {"xai/grok-4.7", ""},
	} {
		chosen, err := a.Model(t.Context(), c.parent)
		if err != nil {
			t.Fatal(err)
		}
		l, err := a.Loop(t.Context(), chosen, agent.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		var native, offered bool
		open := a.Runs.Open
		a.Runs.Open = func(ctx context.Context, parent *agent.Loop, s agent.Spawn) (*agent.Loop, error) {
			child, err := open(ctx, parent, s)
			if err == nil {
				child.Model = listener{&native, &offered}
			}
			return child, err
		}
		l.Model = spawns(c.child)
		if err := a.Gate.Switch(host.ModeAuto); err != nil {
			t.Fatal(err)
		}
		for _, err := range l.Run(t.Context(), agent.New("parent", nil), abi.TextBlock("hi")) {
			if err != nil {
				t.Fatal(err)
			}
		}
		a.Runs.Open = open
		name := c.child
		if name == "" {
			name = c.parent
		}
		if native != searching[name] || offered == native {
			t.Errorf("a child on %q of a parent on %s: native %v, and WebSearch is offered: %v", c.child, c.parent, native, offered)
		}
	}
}

// spawns is a model that starts one sub-agent, on the model of this name.
type spawns string

func (s spawns) Stream(_ context.Context, r model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		word := abi.TextBlock("done")
		block, stop := model.Block{Content: &word}, model.StopEnd
		if len(r.Messages) == 1 {
			args := fmt.Sprintf(`{"prompt": "look", "model": %q}`, string(s))
			block, stop = model.Block{Call: &model.Call{ID: "1", Name: "spawn_agent", Args: args}}, model.StopCalls
		}
		_ = yield(model.Event{Kind: model.KindBlock, Block: &block}, nil) && yield(model.Event{Kind: model.KindStop, Stop: stop}, nil)
	}
}

var searching = map[string]bool{
	"anthropic/claude-sonnet-5-5": true, "openai/gpt-5.6": true, "openai/gpt-4.1-nano": false, "xai/grok-4.7": true, "xai/grok-3": false,
	"google/gemini-3.8-flash": true, "google/gemini-2.5-pro": false, "deepseek/deepseek-chat": false, "work/gpt-5.6": false, "ollama/gpt-5": false,
}

// write puts a file below the machine's folder.
func (m *machine) write(name, text string) {
	m.t.Helper()
	file := filepath.Join(filepath.Dir(m.dir), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func hint(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		return " " + f.Hint
	}
	return ""
}

// What stands before a conversation stays as it is: a provider finds what it
// has cached, whatever branch is checked out meanwhile.
func TestTheSameBeginningInEveryTurn(t *testing.T) {
	m := newMachine(t)
	m.write("ws/.git/HEAD", "ref: refs/heads/main\n")
	m.write("ws/AGENTS.md", "Use tabs.\n")
	a := withKeys(m, everyKey)
	chosen, err := a.Model(t.Context(), "anthropic")
	if err != nil {
		t.Fatal(err)
	}
	var first *agent.Loop
	for range 3 {
		l, err := a.Loop(t.Context(), chosen, agent.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = l
		}
		if l.System != first.System || !strings.Contains(l.System, "branch main") || !strings.Contains(l.System, "Use tabs.") {
			t.Errorf("the system prompt is another one:\n%s", l.System)
		}
		one, err := first.Tools.Definitions(host.FormatAnthropic)
		if err != nil {
			t.Fatal(err)
		}
		two, err := l.Tools.Definitions(host.FormatAnthropic)
		if err != nil || fmt.Sprint(one) != fmt.Sprint(two) {
			t.Errorf("the tools are others: %v", err)
		}
		m.write("ws/.git/HEAD", "ref: refs/heads/other\n")
	}
}
