package abi

import "time"

// Receipt says what one sandboxed call did and what it cost.
type Receipt struct {
	Call      string         `json:"call"`
	Tool      string         `json:"tool"`
	Plugin    string         `json:"plugin"`
	Digest    string         `json:"digest"` // sha256 of the wasm
	Fuel      int64          `json:"fuel"`   // units of metered work: repeatable, not instructions
	Wall      time.Duration  `json:"wall"`   // nanoseconds, waiting for a person excluded
	Waited    time.Duration  `json:"waited,omitempty"`
	CPU       time.Duration  `json:"cpu,omitempty"`       // of the thread that ran the call, host functions included; an estimate where there is no such clock
	Memory    int64          `json:"memory"`              // bytes of linear memory at the most
	Pages     int64          `json:"pages,omitempty"`     // of 4 KiB that differed from the snapshot in the end; 0 where that is not known
	HostCalls map[string]int `json:"hostCalls,omitempty"` // "elf:net.http": 2
	Files     []string       `json:"files,omitempty"`     // "read /ws/a.txt"
	Hosts     []string       `json:"hosts,omitempty"`     // "GET https://example.org:443"
	BytesIn   int64          `json:"bytesIn,omitempty"`
	BytesOut  int64          `json:"bytesOut,omitempty"`
	Tokens    int64          `json:"tokens,omitempty"`
	Limits    []string       `json:"limits,omitempty"` // limits hit
	Denied    []string       `json:"denied,omitempty"`
	Error     string         `json:"error,omitempty"`
}

// Progress is one step of long work. Total is zero when it is not known.
type Progress struct {
	Message string  `json:"message,omitempty"`
	Done    float64 `json:"done"`
	Total   float64 `json:"total,omitempty"`
}
