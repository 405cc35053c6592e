package agent

import (
	"context"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

// Journal is where a session is kept. Append returns when the record is
// durable, and the loop acts on nothing before; an error ends the Run. A
// record comes while calls run in parallel, so it must be safe for concurrent
// use, and a store refuses a writer that another one has replaced.
type Journal interface {
	Append(ctx context.Context, session string, r Record) error
}

// Drafter is a Journal that also keeps what a model is saying while it says
// it. Draft returns when the piece is durable, and only then is it shown; a
// piece without text makes void what came before, and the message's record
// replaces it. An error ends the Run.
type Drafter interface {
	Draft(ctx context.Context, session string, p Piece) error
}

// Piece is a part of an answer that is not finished.
type Piece struct {
	Kind Kind // KindText, KindThinking or KindRefusal
	Text string
}

// Record is one thing that happened. Replaying a session's records in order
// of Seq gives the session again: see Resume.
type Record struct {
	Seq      int64             `json:"seq"` // from 1, without gaps
	Time     time.Time         `json:"time"`
	Kind     RecordKind        `json:"kind"`
	Step     int               `json:"step,omitempty"`
	Message  *model.Message    `json:"message,omitempty"` // RecordMessage; the whole new start for RecordCompact
	Own      bool              `json:"own,omitempty"`     // Message is the loop's, not a person's
	Model    string            `json:"model,omitempty"`   // that wrote Message
	Stop     model.StopReason  `json:"stop,omitempty"`    // why it stopped; empty if it was cut off
	Usage    *Usage            `json:"usage,omitempty"`   // with an assistant's message: of the session so far
	Call     *model.Call       `json:"call,omitempty"`    // RecordStart
	Looks    bool              `json:"looks,omitempty"`   // RecordStart: the tool changes nothing
	Result   *model.CallResult `json:"result,omitempty"`  // RecordResult
	Outcome  Outcome           `json:"outcome,omitempty"` // RecordResult
	Receipts []abi.Receipt     `json:"receipts,omitempty"`
	Run      *RunState         `json:"run,omitempty"`  // RecordRun
	Keep     int               `json:"keep,omitempty"` // RecordCompact: how many messages at the end stay
}

// RecordKind is the kind of a Record.
type RecordKind string

// The kinds of records.
const (
	RecordMessage RecordKind = "message" // a person's or a model's message
	RecordStart   RecordKind = "start"   // a call is about to enter its tool
	RecordResult  RecordKind = "result"  // a call has its result
	RecordRun     RecordKind = "run"     // Run has begun, has ended, or was read
	RecordCompact RecordKind = "compact" // Message and the last Keep messages take the place of all before
)

// Outcome is how a call ended.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped" // it never entered its tool
	Unknown Outcome = "unknown" // it was interrupted inside its tool, and may have had effects
)
