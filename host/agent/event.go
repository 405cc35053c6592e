package agent

import (
	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/model"
)

// Event is what a front end is told while a Run works. Kind decides which
// other fields count. Events of sub-agents carry their run in From.
type Event struct {
	Kind     Kind             `json:"kind"`
	Step     int              `json:"step,omitempty"` // from 1
	From     string           `json:"from,omitempty"`
	Text     string           `json:"text,omitempty"`
	Call     *model.Call      `json:"call,omitempty"`
	Result   *abi.Result      `json:"result,omitempty"`
	Receipts []abi.Receipt    `json:"receipts,omitempty"`
	Progress *abi.Progress    `json:"progress,omitempty"`
	Denied   *host.Denied     `json:"-"`
	Retry    *model.Again     `json:"-"`
	Rate     *model.RateLimit `json:"-"`
	Run      *RunState        `json:"run,omitempty"`
	Plan     []PlanEntry      `json:"plan,omitempty"`
	Usage    *Usage           `json:"usage,omitempty"`
	Stop     Stop             `json:"stop,omitempty"`
}

// Kind is the kind of an Event.
type Kind string

// The kinds of events.
const (
	KindStep     Kind = "step"     // a request goes out
	KindText     Kind = "text"     // the model says Text (a piece)
	KindThinking Kind = "thinking" // the model thinks Text (a piece)
	KindRefusal  Kind = "refusal"  // the model declines, in Text (a piece)
	KindSearch   Kind = "search"   // the provider searches the web for Text
	KindWriting  Kind = "writing"  // the model begins to write Call, its arguments to come
	KindRetry    Kind = "retry"    // the request failed and is sent again; pieces of this step are void
	KindStart    Kind = "start"    // Call enters its tool
	KindProgress Kind = "progress" // of Call
	KindDenied   Kind = "denied"   // Call, or something inside it, was refused: Denied says what would allow it
	KindFinish   Kind = "finish"   // Call has its Result, with Receipts
	KindSteer    Kind = "steer"    // a queued message of the person is now in the conversation; Text is its words
	KindUsage    Kind = "usage"    // Usage of the session so far
	KindRate     Kind = "rate"     // what the provider says is left
	KindCompact  Kind = "compact"  // the conversation was shortened, Text says how
	KindAgent    Kind = "agent"    // the sub-agent From has begun, or ended: Run
	KindPlan     Kind = "plan"     // the plan is now Plan, as a whole
	KindNote     Kind = "note"     // Text is for the person
	KindDone     Kind = "done"     // the last one: Stop says why
)

// PlanEntry is one task of a plan, in the words of the Plan tool.
type PlanEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"` // high, medium, low
	Status   string `json:"status"`   // pending, in_progress, completed
}

// Stop says why a Run ended.
type Stop string

// The reasons.
const (
	StopEnd       Stop = "end"       // the model is done
	StopYield     Stop = "yield"     // a tool ended it, see End; Text is its message
	StopSteps     Stop = "steps"     // Limits.Steps
	StopTokens    Stop = "tokens"    // Limits.Tokens
	StopCost      Stop = "cost"      // Limits.Cost
	StopRepeat    Stop = "repeat"    // the model went in circles
	StopLength    Stop = "length"    // the answer was longer than Limits.Answer
	StopRefusal   Stop = "refusal"   // the model declined
	StopCancelled Stop = "cancelled" // the context ended
	StopError     Stop = "error"     // the model, or the journal, failed for good
)

// Words says in a clause why a Run ended before it was done, for people.
func (s Stop) Words() string {
	switch s {
	case StopSteps:
		return "the agent used all its steps before it was done"
	case StopTokens, StopCost:
		return "the agent used its budget before it was done"
	case StopRepeat:
		return "the model went in circles: it made the same calls again and again, and was stopped"
	case StopLength:
		return "the model's answer was longer than it may be, and is cut off"
	case StopRefusal:
		return "the model declined to answer"
	case StopCancelled:
		return "interrupted"
	}
	return "the agent stopped without an answer: " + string(s)
}

// Usage is what a session has used.
type Usage struct {
	model.Usage
	Context int64   `json:"context"` // tokens of the last request and its answer: what fills the window
	Steps   int     `json:"steps"`
	Cost    float64 `json:"cost,omitempty"` // US dollars, as far as prices are known
}

// since is what was used after before. Context is of the moment and stays.
func (u Usage) since(before Usage) Usage {
	u.Input -= before.Input
	u.CacheRead -= before.CacheRead
	u.CacheWrite -= before.CacheWrite
	u.Output -= before.Output
	u.Reasoning -= before.Reasoning
	u.Searches -= before.Searches
	u.Steps -= before.Steps
	u.Cost -= before.Cost
	return u
}
