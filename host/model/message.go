package model

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/elfhost/elfhost/abi"
)

// Role says who speaks.
type Role string

// The roles. A message of RoleTool holds results only: one for each call of
// the message before it, in the order of the calls.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one turn of a conversation. Its JSON is what sessions are stored as.
type Message struct {
	Role   Role    `json:"role"`
	Blocks []Block `json:"blocks"`
}

// Block is one part of a message: exactly one of Content, Thinking, Call and
// Result is set, or Native alone.
type Block struct {
	Content  *abi.Content `json:"content,omitempty"`
	Thinking *Thinking    `json:"thinking,omitempty"`
	Call     *Call        `json:"call,omitempty"`
	Result   *CallResult  `json:"result,omitempty"`
	// Native is the block in the provider's own words. It goes back to the
	// same provider unchanged, and to no other: signatures of thinking,
	// encrypted reasoning, searches the provider made by itself.
	Native *Native `json:"native,omitempty"`
}

// Native is data of one provider's that only it can read.
type Native struct {
	Provider string          `json:"provider"`
	Data     json.RawMessage `json:"data"`
}

// Thinking is what the model thought aloud.
type Thinking struct {
	Text string `json:"text"`
}

// Call is a tool call as the model wrote it. Args is meant to be a JSON
// object, and may be anything: empty, cut off, or no JSON at all.
type Call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// CallResult answers the call with the same ID.
type CallResult struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	abi.Result
}

// Text joins the text blocks of the message, without thinking.
func (m Message) Text() string {
	var b strings.Builder
	for _, k := range m.Blocks {
		if k.Content != nil && k.Content.Type == abi.TypeText {
			b.WriteString(k.Content.Text)
		}
	}
	return b.String()
}

// Calls lists the calls of the message, in order.
func (m Message) Calls() []Call {
	var calls []Call
	for _, k := range m.Blocks {
		if k.Call != nil {
			calls = append(calls, *k.Call)
		}
	}
	return calls
}

// Check tells whether every provider accepts the messages: each call has an
// ID of its own and exactly one result, in the message right after it, and no
// result stands alone.
func Check(messages []Message) error {
	var open []Call
	seen := make(map[string]bool, len(messages)/2)
	for i, m := range messages {
		if len(m.Blocks) == 0 {
			return fmt.Errorf("message %d is empty", i)
		}
		if len(open) > 0 && m.Role != RoleTool {
			return fmt.Errorf("message %d: call %q has no result", i, open[0].ID)
		}
		for _, k := range m.Blocks {
			switch {
			case k.Result == nil && m.Role == RoleTool:
				return fmt.Errorf("message %d: a tool message holds something else than results", i)
			case k.Result == nil:
			case m.Role != RoleTool || len(open) == 0 || open[0].ID != k.Result.ID:
				return fmt.Errorf("message %d: result %q does not answer the call that is due", i, k.Result.ID)
			default:
				open = open[1:]
			}
		}
		if len(open) > 0 {
			return fmt.Errorf("message %d: call %q has no result", i, open[0].ID)
		}
		open = open[:0]
		for _, k := range m.Blocks {
			if k.Call == nil {
				continue
			}
			if c := k.Call; m.Role != RoleAssistant || c.ID == "" || seen[c.ID] {
				return fmt.Errorf("message %d: call %q is misplaced, nameless or twice there", i, c.ID)
			}
			seen[k.Call.ID] = true
			open = append(open, *k.Call)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("call %q has no result", open[0].ID)
	}
	return nil
}
