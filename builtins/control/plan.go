package control

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
)

// Entry is one task of a plan.
type Entry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"` // high, medium, low
	Status   string `json:"status"`   // pending, in_progress, completed
}

// Plans holds the plan of each session. The zero value is empty and ready; it
// is safe for concurrent use.
type Plans struct {
	mu  sync.Mutex
	all map[string][]Entry
}

// Of gives a session's plan. The slice is never changed: a plan is replaced.
func (p *Plans) Of(session string) []Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[session]
}

// Set replaces a session's plan. An empty one takes it away.
func (p *Plans) Set(session string, entries []Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(entries) == 0 {
		delete(p.all, session)
		return
	}
	if p.all == nil {
		p.all = map[string][]Entry{}
	}
	p.all[session] = entries
}

// Restore sets a session's plan from the arguments of a call of Plan, as its
// transcript has them. Arguments that are none change nothing.
func (p *Plans) Restore(session string, args []byte) {
	if entries, err := entriesOf(args); err == nil {
		p.Set(session, entries)
	}
}

// Text is the plan in words, one line an entry; "" without a plan.
func (p *Plans) Text(session string) string {
	var b strings.Builder
	for _, e := range p.Of(session) {
		fmt.Fprintf(&b, "- [%s] %s", marks[e.Status], e.Content)
		if e.Priority != "medium" {
			fmt.Fprintf(&b, " (%s)", e.Priority)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

var marks = map[string]string{"pending": " ", "in_progress": "~", "completed": "x"}

func entriesOf(args []byte) ([]Entry, error) {
	var a struct {
		Entries []Entry `json:"entries"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	for i := range a.Entries {
		e := &a.Entries[i]
		if e.Priority == "" {
			e.Priority = "medium"
		}
		if e.Status == "" {
			e.Status = "pending"
		}
		if marks[e.Status] == "" {
			return nil, fmt.Errorf("entry %d has the status %q", i+1, e.Status)
		}
	}
	return a.Entries, nil
}

func (r *room) plan(ctx context.Context, c host.Call) (abi.Result, error) {
	entries, err := entriesOf(c.Args)
	if err != nil {
		return abi.Result{}, err
	}
	for i, e := range entries {
		if strings.TrimSpace(e.Content) == "" {
			return abi.Errorf("Entry %d of the plan is blank. The plan was not changed.", i+1), nil
		}
	}
	r.Plans.Set(c.Caller.Session, entries)
	if r.Planned != nil {
		r.Planned(ctx, entries)
	}
	if len(entries) == 0 {
		return abi.Text("The plan is cleared."), nil
	}
	n := map[string]int{}
	for _, e := range entries {
		n[e.Status]++
	}
	return abi.Textf("The plan is noted: %d completed, %d in progress, %d pending.", n["completed"], n["in_progress"], n["pending"]), nil
}

func planSpec() host.Spec {
	s := tool.Spec(texts, "Plan", host.KindThink)
	s.Title = "Plan"
	return s
}
