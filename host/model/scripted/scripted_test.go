package scripted

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

const script = `
[[turn]]
text = "I read {{prompt}} first."
[[turn.call]]
tool = "Read"
args = { path = "notes.md", lines = [1, 2], note = "{{prompt}}" }

[[turn]]
when = { tool = "Read", error = true }
text = "I cannot read it."

[[turn]]
when = { tool = "Read", matches = 'https?://' }
capture = { url = '(https?://\S+)' }
thinking = "A link."
[[turn.call]]
tool = "WebFetch"
args = { url = "{{url}}" }

[[turn]]
text = "{{url}} says {{result}}"

[[turn]]
always = true
when = { system = "Summarise" }
text = "A summary."
`

func ask(t *testing.T, s *Script, messages []model.Message, system string) (*model.Turn, error) {
	t.Helper()
	var turn model.Turn
	for e, err := range s.Stream(context.Background(), model.Request{System: system, Messages: messages}) {
		if err != nil {
			return &turn, err
		}
		turn.Add(e)
	}
	return &turn, nil
}

func answer(c model.Call, r abi.Result) model.Message {
	return model.Message{Role: model.RoleTool, Blocks: []model.Block{{Result: &model.CallResult{ID: c.ID, Name: c.Name, Result: r}}}}
}

func TestScriptDependsOnResults(t *testing.T) {
	s, err := Parse("test.toml", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	talk := []model.Message{model.User(abi.TextBlock("the notes"))}
	one, err := ask(t, s, talk, "")
	if err != nil {
		t.Fatal(err)
	}
	calls := one.Message.Calls()
	if got := one.Message.Text(); got != "I read the notes first." || one.Stop != model.StopCalls || len(calls) != 1 {
		t.Fatalf("first turn: %q, stop %q, %d calls", got, one.Stop, len(calls))
	}
	if want := `{"lines":[1,2],"note":"the notes","path":"notes.md"}`; calls[0].Args != want {
		t.Errorf("args %s, want %s", calls[0].Args, want)
	}
	talk = append(talk, one.Message)

	failed, err := ask(t, s, append(talk[:len(talk):len(talk)], answer(calls[0], abi.Errorf("no such file"))), "")
	if err != nil || failed.Message.Text() != "I cannot read it." || failed.Stop != model.StopEnd {
		t.Errorf("after an error: %q %v", failed.Message.Text(), err)
	}

	talk = append(talk, answer(calls[0], abi.Text("see https://example.org/a now")))
	two, err := ask(t, s, talk, "")
	if err != nil {
		t.Fatal(err)
	}
	fetch := two.Message.Calls()[0]
	if fetch.Args != `{"url":"https://example.org/a"}` {
		t.Errorf("captured: %s", fetch.Args)
	}
	if aside, err := ask(t, s, talk, "Summarise this."); err != nil || aside.Message.Text() != "A summary." {
		t.Errorf("always: %q %v", aside.Message.Text(), err)
	}

	talk = append(talk, two.Message, answer(fetch, abi.Text("hello")))
	three, err := ask(t, s, talk, "")
	if err != nil || three.Message.Text() != "https://example.org/a says hello" {
		t.Errorf("a variable of an earlier turn: %q %v", three.Message.Text(), err)
	}

	talk = append(talk, three.Message, model.User(abi.TextBlock("more")))
	if _, err := ask(t, s, talk, ""); !errors.Is(err, model.ErrRequest) {
		t.Errorf("past the end: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"unknown key":   {"[[turn]]\ntext = \"a\"\n[[turn]]\ntxet = \"b\"\n", `line 4: unknown key "turn.txet"`},
		"unknown json":  {`{"turn":[{"txet":"a"}]}`, `unknown field "txet"`},
		"no turn":       {"", "no turn"},
		"syntax":        {"[[turn]\n", "line 1"},
		"bad regexp":    {"[[turn]]\nwhen = { matches = '(' }\n", "turn 1: when.matches"},
		"bad stop":      {"[[turn]]\nstop = 'now'\n", `unknown stop "now"`},
		"args and raw":  {"[[turn]]\n[[turn.call]]\ntool='A'\nraw='x'\nargs={}\n", "both args and raw"},
		"nameless call": {"[[turn]]\n[[turn.call]]\nraw='x'\n", "names no tool"},
	} {
		if _, err := Parse("bad", []byte(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestErrorAndRaw(t *testing.T) {
	s, err := Parse("x", []byte(`{"turn":[{"call":[{"tool":"T","raw":"{\"path\": \"a"}]},{"text":"half","error":"overload"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	talk := []model.Message{model.User(abi.TextBlock("go"))}
	one, err := ask(t, s, talk, "")
	if err != nil || one.Message.Calls()[0].Args != `{"path": "a` {
		t.Fatalf("raw: %+v %v", one.Message.Calls(), err)
	}
	two, err := ask(t, s, append(talk, one.Message, answer(one.Message.Calls()[0], abi.Text("x"))), "")
	if !errors.Is(err, model.ErrOverload) {
		t.Errorf("error: %v", err)
	}
	if m, ok := two.Partial(); !ok || m.Text() != "half" {
		t.Errorf("partial: %q", m.Text())
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(script))
	f.Add([]byte(`{"turn":[{"text":"a"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("fuzz", data)
		if err != nil {
			return
		}
		_, _ = ask(t, s, []model.Message{model.User(abi.TextBlock("go"))}, "")
	})
}
