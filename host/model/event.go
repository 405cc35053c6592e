package model

import "time"

// Event is one step of an answer. Kind decides which other fields count.
type Event struct {
	Kind  Kind
	Text  string     // KindText, KindThinking, KindRefusal, KindCallArgs: what is new; KindSearch: the query, where known
	Call  *Call      // KindCallStart, KindCallArgs: ID and Name of the call; the arguments come as Text, and whole in its block
	Block *Block     // KindBlock
	Usage *Usage     // KindUsage: of this answer so far, not a difference
	Stop  StopReason // KindStop
	Rate  *RateLimit // KindRate
	Retry *Again     // KindRetry
}

// Kind is the kind of an Event.
type Kind string

// The kinds of events. Deltas are for showing at once; what belongs into the
// transcript comes as KindBlock, in order, each block once and whole.
const (
	KindText      Kind = "text"
	KindThinking  Kind = "thinking"
	KindRefusal   Kind = "refusal"
	KindCallStart Kind = "call_start"
	KindCallArgs  Kind = "call_args"
	KindSearch    Kind = "search" // the provider searches by itself
	KindBlock     Kind = "block"
	KindUsage     Kind = "usage"
	KindRate      Kind = "rate"
	KindRetry     Kind = "retry" // all that came before in this stream is void
	KindStop      Kind = "stop"  // the last event of a whole answer
)

// StopReason says why a model stopped.
type StopReason string

// The reasons. A provider's unknown reason becomes StopOther.
const (
	StopEnd      StopReason = "end"      // it had said everything
	StopCalls    StopReason = "calls"    // it waits for results
	StopLength   StopReason = "length"   // MaxTokens ran out
	StopWindow   StopReason = "window"   // the context window is full
	StopRefusal  StopReason = "refusal"  // it, or a filter over it, declined
	StopPause    StopReason = "pause"    // it asks to be sent the same conversation again, to go on
	StopSequence StopReason = "sequence" // a stop sequence
	StopOther    StopReason = "other"
)

// Usage counts tokens. The four kinds of input and output do not overlap:
// their sum is what filled the window. Reasoning is a part of Output.
type Usage struct {
	Input      int64 `json:"input"`
	CacheRead  int64 `json:"cacheRead,omitempty"`
	CacheWrite int64 `json:"cacheWrite,omitempty"`
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning,omitempty"`
	Searches   int64 `json:"searches,omitempty"` // of the provider's own
}

// Total is all tokens, read or written.
func (u Usage) Total() int64 { return u.Input + u.CacheRead + u.CacheWrite + u.Output }

// Plus adds two counts.
func (u Usage) Plus(o Usage) Usage {
	return Usage{
		Input: u.Input + o.Input, CacheRead: u.CacheRead + o.CacheRead, CacheWrite: u.CacheWrite + o.CacheWrite,
		Output: u.Output + o.Output, Reasoning: u.Reasoning + o.Reasoning, Searches: u.Searches + o.Searches,
	}
}

// RateLimit is what a provider says is left. A field that it does not send is
// negative, or the zero time.
type RateLimit struct {
	Requests, Tokens           int64
	RequestsReset, TokensReset time.Time
	RequestsLimit, TokensLimit int64
}

// Again announces that a request is sent once more.
type Again struct {
	Attempt int           // 2 for the first repetition
	After   time.Duration // how long it waits first
	Err     error         // why
}
