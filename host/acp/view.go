package acp

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
)

// shown is a call that the client was told of.
type shown struct {
	id       sdk.ToolCallId
	tool     string
	args     json.RawMessage
	spec     host.Spec
	agent    string // the sub-agent that makes it; "": the main one
	path     string // of the host, that it is about; "" where it is about none
	terminal string // that runs it
	denied   []string
	begun    bool // its arguments were told
}

// event tells the client what a turn does.
func (c *Client) event(e agent.Event) {
	if e.Run != nil && e.From != "" {
		c.mu.Lock()
		c.runs[e.Run.Session] = e.From
		if c.names[e.From] = e.Run.Name; e.Run.Name == "" {
			c.names[e.From] = e.Run.Agent
		}
		c.mu.Unlock()
	}
	if e.From != "" && (e.Kind == agent.KindText || e.Kind == agent.KindThinking || e.Kind == agent.KindUsage || e.Kind == agent.KindPlan) {
		return // a sub-agent's own affair
	}
	switch e.Kind {
	case agent.KindText, agent.KindRefusal:
		c.say(e.Text)
	case agent.KindThinking:
		c.think(e.Text)
	case agent.KindWriting:
		c.announce(c.key(e.From, e.Call.ID), e.Call.Name, nil)
	case agent.KindSearch:
		c.searched(e.Text)
	case agent.KindStart:
		c.start(e)
	case agent.KindProgress:
		c.progress(e)
	case agent.KindDenied:
		c.denied(e)
	case agent.KindFinish:
		c.finish(c.key(e.From, e.Call.ID), e.Call.Name, e.Result)
	case agent.KindPlan:
		c.plan(e.Plan)
	case agent.KindSteer:
		c.update(sdk.UpdateUserMessageText(c.srv.text(clip(e.Text, maxText))))
	case agent.KindRetry:
		c.retry(e)
	case agent.KindNote, agent.KindCompact:
		c.think(e.Text + "\n")
	}
}

// say shows the words of the agent, as they come.
func (c *Client) say(text string) {
	if text != "" {
		c.update(sdk.UpdateAgentMessageText(c.srv.text(text)))
	}
}

// think shows thoughts, and what the person should know beside the answer: the
// protocol has no other place for it.
func (c *Client) think(text string) {
	if text != "" {
		c.update(sdk.UpdateAgentThoughtText(c.srv.text(clip(text, maxText))))
	}
}

func (c *Client) retry(e agent.Event) {
	text := "The model did not answer; what it said since its last call is void, it is asked again"
	if r := e.Retry; r != nil {
		if r.After >= time.Second {
			text += " in " + r.After.Round(time.Second).String()
		}
		if r.Err != nil {
			text += " (" + c.srv.line(r.Err.Error(), maxTitle) + ")"
		}
	}
	c.think(text + ".\n")
}

// searched shows a search that the model's provider made by itself.
func (c *Client) searched(query string) {
	c.mu.Lock()
	c.asked++
	id := sdk.ToolCallId(fmt.Sprintf("search-%d", c.asked))
	c.mu.Unlock()
	c.update(sdk.StartToolCall(id, c.srv.line("web search "+query, maxTitle), sdk.WithStartKind(sdk.ToolKindSearch), sdk.WithStartStatus(sdk.ToolCallStatusCompleted)))
}

// key is the name of a call for the client; from is the sub-agent's run.
func (c *Client) key(from, id string) string {
	if from != "" {
		id = from + "/" + id
	}
	if len(id) > maxTitle || id == "" {
		return fmt.Sprintf("call-%x", hash(id))
	}
	return c.srv.text(id)
}

// announce tells of a call for the first time. args are nil until they are known.
func (c *Client) announce(key, tool string, args json.RawMessage) *shown {
	c.mu.Lock()
	sh := c.calls[key]
	fresh := sh == nil
	if fresh {
		sh = &shown{id: sdk.ToolCallId(key), tool: tool}
		if s := c.ses.Load(); s.Tools != nil {
			sh.spec, _ = s.Tools.Spec(tool)
		}
		if from, _, ok := strings.Cut(key, "/"); ok {
			if sh.agent = c.names[from]; sh.agent == "" {
				sh.agent = from
			}
		}
		c.calls[key] = sh
	}
	late := args != nil && !sh.begun
	if late {
		sh.args, sh.begun = args, true
		sh.path = c.about(sh)
	}
	c.mu.Unlock()
	if planner(tool) {
		return sh
	}
	switch {
	case fresh:
		opts := []sdk.ToolCallStartOpt{sdk.WithStartKind(kindOf(sh.spec)), sdk.WithStartStatus(sdk.ToolCallStatusPending)}
		if late {
			opts = append(opts, sdk.WithStartRawInput(c.srv.raw(args)), func(tc *sdk.SessionUpdateToolCall) { tc.Locations = c.locations(sh) })
		}
		c.update(sdk.StartToolCall(sh.id, c.title(sh), opts...))
	case late:
		c.update(sdk.UpdateToolCall(sh.id, sdk.WithUpdateTitle(c.title(sh)), sdk.WithUpdateRawInput(c.srv.raw(args)), sdk.WithUpdateLocations(c.locations(sh))))
	}
	return sh
}

// planner is the tool whose calls are shown as the plan that they make.
func planner(tool string) bool { return tool == "Plan" }

func (c *Client) start(e agent.Event) {
	sh := c.announce(c.key(e.From, e.Call.ID), e.Call.Name, argsOf(e.Call.Args))
	if !planner(sh.tool) {
		c.update(sdk.UpdateToolCall(sh.id, sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress)))
	}
}

// argsOf is what a model wrote as arguments, which may be no JSON.
func argsOf(text string) json.RawMessage {
	if strings.TrimSpace(text) == "" {
		return json.RawMessage("{}")
	}
	return json.RawMessage(text)
}

func (c *Client) progress(e agent.Event) {
	p := e.Progress
	if p == nil || p.Message == "" {
		return
	}
	sh := c.announce(c.key(e.From, e.Call.ID), e.Call.Name, nil)
	c.update(sdk.UpdateToolCall(sh.id, sdk.WithUpdateContent([]sdk.ToolCallContent{c.srv.fence(clip(p.Message, maxTitle))})))
}

// denied keeps what was refused for the end of the call.
func (c *Client) denied(e agent.Event) {
	sh := c.announce(c.key(e.From, e.Call.ID), e.Call.Name, nil)
	d := e.Denied
	text := "denied"
	if d.Use != nil {
		text += ": " + string(d.Use.Cap) + " " + strings.ReplaceAll(d.Use.Target, "\x00", " ")
	}
	text += " (" + d.Layer + ": " + d.Why + ")"
	if d.Allow != "" {
		text += "\nto allow it: " + d.Allow
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(sh.denied) < 10 {
		sh.denied = append(sh.denied, clip(text, 2<<10))
	}
}

// finish tells of a call's result.
func (c *Client) finish(key, tool string, res *abi.Result) {
	if planner(tool) && (res == nil || !res.IsError) {
		return
	}
	sh := c.announce(key, tool, nil)
	status := sdk.ToolCallStatusCompleted
	if res != nil && res.IsError {
		status = sdk.ToolCallStatusFailed
	}
	if planner(tool) {
		c.update(sdk.StartToolCall(sh.id, "Plan", sdk.WithStartKind(sdk.ToolKindThink), sdk.WithStartStatus(status), sdk.WithStartContent(c.result(sh, res))))
		return
	}
	opts := []sdk.ToolCallUpdateOpt{sdk.WithUpdateStatus(status), sdk.WithUpdateContent(c.result(sh, res))}
	if res != nil && len(res.Structured) > 0 && len(res.Structured) <= maxRaw {
		opts = append(opts, sdk.WithUpdateRawOutput(c.srv.raw(res.Structured)))
	}
	c.update(sdk.UpdateToolCall(sh.id, opts...))
}

// plan shows a plan as a whole.
func (c *Client) plan(list []agent.PlanEntry) {
	entries := []sdk.PlanEntry{}
	for _, e := range list {
		entries = append(entries, sdk.PlanEntry{
			Content: c.srv.text(clip(e.Content, 2<<10)), Priority: sdk.PlanEntryPriority(e.Priority), Status: sdk.PlanEntryStatus(e.Status),
		})
	}
	c.update(sdk.UpdatePlan(entries...))
}

// showTerminal shows where a call's command runs.
func (c *Client) showTerminal(call, terminal string) {
	c.mu.Lock()
	var sh *shown
	for key, s := range c.calls {
		if key == c.key("", call) || strings.HasSuffix(key, "/"+call) && s.spec.Kind == host.KindExecute {
			sh = s
			sh.terminal = terminal
			break
		}
	}
	c.mu.Unlock()
	if sh != nil {
		c.update(sdk.UpdateToolCall(sh.id, sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress), sdk.WithUpdateContent([]sdk.ToolCallContent{sdk.ToolTerminalRef(terminal)})))
	}
}
