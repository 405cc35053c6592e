package app_test

import (
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
)

// TestSubAgentsInAnEditor: what children do is shown below their parent's
// call, with its questions at the calls that they are about.
func TestSubAgentsInAnEditor(t *testing.T) {
	h := newHouse(t)
	h.script(
		"[[turn]]\nalways = true\nwhen = { prompt = 'first child', lacks = 'Created' }\ntext = 'a child says'\n[[turn.call]]\ntool = 'WriteFile'\nargs = { path = 'one.txt', content = 'one' }\n",
		"[[turn]]\nalways = true\nwhen = { prompt = 'second child', lacks = 'Created' }\n[[turn.call]]\ntool = 'WriteFile'\nargs = { path = 'two.txt', content = 'two' }\n",
		"[[turn]]\nalways = true\nwhen = { tool = 'WriteFile' }\ntext = 'Written.'\n",
		call("Subagent", `{"purpose":"writing","tasks":[{"name":"a","prompt":"first child"},{"name":"b","prompt":"second child"}]}`),
		say("Both are done."),
	)
	e := h.start()
	e.hello(sdk.ClientCapabilities{})
	e.ask(e.open(), "go")
	if got := e.said(); got != "Both are done." {
		t.Errorf("the agent said %q", got)
	}
	if h.read("one.txt") != "one" || h.read("two.txt") != "two" {
		t.Error("the children did not write")
	}
	var parent, children int
	for _, c := range e.calls() {
		switch {
		case strings.HasPrefix(c.title, "Subagent"):
			parent++
		case c.title == "[a] WriteFile one.txt", c.title == "[b] WriteFile two.txt":
			children++
			if c.diff() == nil {
				t.Errorf("without its diff: %+v", c)
			}
		default:
			t.Errorf("also shown: %+v", c)
		}
		if c.status != "completed" {
			t.Errorf("%s is %s", c.title, c.status)
		}
	}
	if parent != 1 || children != 2 {
		t.Errorf("%d calls of the parent's, %d of the children's", parent, children)
	}
	for _, q := range e.questions {
		if q.ToolCall.Title == nil || !strings.Contains(*q.ToolCall.Title, "WriteFile") && !strings.HasPrefix(*q.ToolCall.Title, "Subagent") {
			t.Errorf("asked about %+v", q.ToolCall)
		}
	}
}

func TestCompactInAnEditor(t *testing.T) {
	h := newHouse(t)
	h.script(
		"[[turn]]\nalways = true\nwhen = { system = 'You write the minutes' }\ntext = 'A summary of it all.'\n",
		"[[turn]]\nalways = true\ntext = 'Yes.'\n")
	e := h.start()
	e.hello(sdk.ClientCapabilities{})
	id := e.open()
	if _, err := e.conn.Prompt(e.ctx(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock("/compact")}}); err == nil || !strings.Contains(err.Error(), "nothing to shorten") {
		t.Errorf("an empty conversation: %v", err)
	}
	e.ask(id, "first "+strings.Repeat("long ", 2000))
	e.ask(id, "second")
	if r := e.ask(id, "/compact"); r.StopReason != sdk.StopReasonEndTurn {
		t.Errorf("it ended with %s", r.StopReason)
	}
	if e.ask(id, "third"); e.said() != "Yes.Yes.Yes." {
		t.Errorf("the agent said %q", e.said())
	}
	if _, err := e.conn.LoadSession(e.ctx(), sdk.LoadSessionRequest{SessionId: id, Cwd: h.dir, McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	var told string
	for _, u := range e.all() {
		if th := u.Update.AgentThoughtChunk; th != nil && th.Content.Text != nil {
			told += th.Content.Text.Text
		}
	}
	if !strings.Contains(told, "The conversation was shortened here.") {
		t.Errorf("it was not shortened: %s", told)
	}
}
