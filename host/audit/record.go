// Package audit keeps the log of what the gate decided and what tools did:
// JSON lines that are only ever appended, each authenticated together with the
// one before it, with a head that tells where the log ends.
//
// Who can read the key can write a log anew; the key therefore lies outside of
// the log's folder. Whoever cannot, cannot change, move, drop or cut a record
// without Verify saying where. An old copy of log and head together is
// recognised only by a head that was noted elsewhere (Expect).
//
// Values that look like secrets are replaced before they are written.
package audit

import (
	"encoding/json"
	"time"

	"github.com/elfhost/elfhost/abi"
)

// The values of Record.Event that this program writes.
const (
	EventVerdict = "verdict" // the gate about a call
	EventUse     = "use"     // a capability was used, or refused
	EventReceipt = "receipt" // what a sandboxed call cost
	EventGrant   = "grant"   // a person gave or took a right
	EventNote    = "note"    // anything else worth keeping
)

// Outcomes of a decision.
const (
	Allowed = "allowed"
	Denied  = "denied"
)

// Record is one line. Seq, Time and Prev are set by Append; text fields are
// scrubbed and shortened there.
type Record struct {
	Seq     uint64       `json:"seq"`
	Time    time.Time    `json:"time"`
	Event   string       `json:"event"`
	Session string       `json:"session,omitempty"`
	Agent   string       `json:"agent,omitempty"`
	Call    string       `json:"call,omitempty"`
	Tool    string       `json:"tool,omitempty"`
	Source  string       `json:"source,omitempty"` // of the tool: builtin, bundled, plugin, mcp
	Plugin  string       `json:"plugin,omitempty"` // or MCP server
	Digest  string       `json:"digest,omitempty"` // of the plugin's wasm; not scrubbed
	Caller  string       `json:"caller,omitempty"` // the plugin that made the call, if one did
	Args    string       `json:"args,omitempty"`   // JSON
	Cap     string       `json:"cap,omitempty"`
	Verb    string       `json:"verb,omitempty"`
	Target  string       `json:"target,omitempty"`
	N       int64        `json:"n,omitempty"`
	Outcome string       `json:"outcome,omitempty"`
	By      string       `json:"by,omitempty"` // policy, safe, mode, rule, person, nobody, grants
	Rule    string       `json:"rule,omitempty"`
	Where   string       `json:"where,omitempty"` // file:line of the rule
	Reason  string       `json:"reason,omitempty"`
	Receipt *abi.Receipt `json:"receipt,omitempty"`
	Prev    string       `json:"prev"`
}

// Bounds of a record's text, in bytes.
const (
	maxText = 1 << 10
	maxArgs = 4 << 10
	maxLine = 1 << 20
)

// scrubbed is the record as it may be written.
func (r Record) scrubbed(s *scrubber) Record {
	for _, f := range [...]*string{&r.Agent, &r.Tool, &r.Plugin, &r.Caller, &r.Verb, &r.Target, &r.Rule, &r.Where, &r.Reason} {
		*f = shorten(s.text(*f), maxText)
	}
	r.Session, r.Call = shorten(r.Session, 128), shorten(r.Call, 128) // random by nature, and ours
	r.Args = shorten(s.json(r.Args), maxArgs)
	if r.Receipt != nil {
		c := *r.Receipt
		c.Error = shorten(s.text(c.Error), maxText)
		c.Files, c.Hosts, c.Denied = s.list(c.Files), s.list(c.Hosts), s.list(c.Denied)
		r.Receipt = &c
	}
	return r
}

// shorten cuts at a rune boundary; what is not UTF-8 json.Marshal replaces.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// Filter chooses records. The zero value chooses all; fields that are set must
// all match.
type Filter struct {
	Session, Call, Tool, Plugin, Event, Outcome, Cap string
	Since, Until                                     time.Time // until is exclusive
}

// Match reports whether the filter chooses r.
func (f Filter) Match(r Record) bool {
	for _, p := range [...][2]string{{f.Session, r.Session}, {f.Call, r.Call}, {f.Tool, r.Tool}, {f.Plugin, r.Plugin}, {f.Event, r.Event}, {f.Outcome, r.Outcome}, {f.Cap, r.Cap}} {
		if p[0] != "" && p[0] != p[1] {
			return false
		}
	}
	return (f.Since.IsZero() || !r.Time.Before(f.Since)) && (f.Until.IsZero() || r.Time.Before(f.Until))
}

func decode(line []byte) (Record, error) {
	var r Record
	err := json.Unmarshal(line, &r)
	return r, err
}
