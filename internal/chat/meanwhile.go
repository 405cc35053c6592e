package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/internal/term"
)

// meanwhile is what comes while something else has the screen: lines of the
// person while the agent works, and news of agents in the background.
type meanwhile struct {
	mu     sync.Mutex
	queued []queued
	news   []string
	agents map[string]helper // that are at work, by their runs
	inTurn bool
}

// helper is a sub-agent.
type helper struct {
	name       string
	background bool
}

// queued is a line that was sent while the agent worked.
type queued struct {
	text     string
	withdraw func() bool // takes it back from the agent; nil: it is a command, for after the turn
}

// typeahead reads what the person writes during a turn.
func (c *chat) typeahead() *term.Typeahead {
	return &term.Typeahead{In: c.In, Out: c.Out, Show: c.screen.typing, Sent: c.sent, Lines: c.lines}
}

// sent takes a line that was sent while the agent works: it reads it after the
// calls of its step. A command waits for the end of the turn.
func (c *chat) sent(text string) {
	m := &c.meanwhile
	m.mu.Lock()
	defer m.mu.Unlock()
	c.past.add(text)
	q := queued{text: text}
	if !isCommand(text) {
		q.withdraw = c.session.SteerWith(func(ctx context.Context) []abi.Content { return c.bring(ctx, text) })
	}
	m.queued = append(m.queued, q)
	c.screen.waiting(len(m.queued))
	if c.lines != nil { // there is no status line to say it
		c.screen.printf("(%d queued)\n", len(m.queued))
	}
}

// delivered notes that the agent has read a line.
func (c *chat) delivered(text string) {
	m := &c.meanwhile
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.queued, func(q queued) bool { return q.withdraw != nil && q.text == text })
	if i >= 0 {
		m.queued = slices.Delete(m.queued, i, i+1)
	}
	c.screen.waiting(len(m.queued))
}

// undelivered takes back the lines that nobody has read yet.
func (c *chat) undelivered() (texts []string) {
	m := &c.meanwhile
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.queued {
		if q.withdraw == nil || q.withdraw() {
			texts = append(texts, q.text)
		}
	}
	m.queued = nil
	c.screen.waiting(0)
	return texts
}

// watch follows the agents in the background. Those in the foreground are
// seen in their parent's turn.
func (c *chat) watch(run string, e agent.Event) {
	m := &c.meanwhile
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Kind == agent.KindAgent && e.Run != nil && e.Run.Status == agent.Running {
		if m.agents == nil {
			m.agents = map[string]helper{}
		}
		m.agents[run] = helper{first(e.Run.Name, e.Run.Agent, "agent"), e.Run.Background}
		return
	}
	h, known := m.agents[run]
	if e.Kind == agent.KindAgent {
		delete(m.agents, run)
	}
	if !known || !h.background {
		return
	}
	say := func(text string) { m.news = append(m.news, c.Style.Dim("["+term.Line(h.name)+"] ")+text) }
	switch {
	case e.Kind == agent.KindAgent && e.Run != nil:
		text := string(e.Run.Status)
		if e.Run.Error != "" {
			text += ": " + clip(term.Line(e.Run.Error), 200)
		}
		say(fmt.Sprintf("%s, after %d steps", text, e.Run.Usage.Steps))
		if !m.inTurn {
			say(c.Style.Dim("the agent hears of it in the next turn"))
			c.desk.nudge()
		}
	case m.inTurn && e.Kind == agent.KindStart:
		say(CallLine(e.Call.Name, json.RawMessage(e.Call.Args)))
	}
}

// helperName is what a sub-agent is called; from is its run, or a path of runs.
func (c *chat) helperName(from string) string {
	run := from[strings.LastIndexByte(from, '/')+1:]
	c.meanwhile.mu.Lock()
	defer c.meanwhile.mu.Unlock()
	return first(c.meanwhile.agents[run].name, "agent")
}

// tell prints the news.
func (c *chat) tell() {
	m := &c.meanwhile
	m.mu.Lock()
	news := m.news
	m.news = nil
	m.mu.Unlock()
	for _, n := range news {
		c.screen.printf("  %s\n", n)
	}
}

func (m *meanwhile) turn(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inTurn = on
}

func isCommand(text string) bool {
	return strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//")
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
