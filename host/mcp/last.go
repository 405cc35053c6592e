package mcp

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"
)

// maxLast bounds the file of a Last.
const maxLast = 64 << 10

func (l *link) lastFile() string { return strings.TrimSuffix(l.pinFile(), ".json") + ".last" }

// readLast gives how the server did last; nil when that is not known. Nothing is
// lost with it.
func (l *link) readLast() *Last {
	if l.c.opt.Pins == "" {
		return nil
	}
	if st, err := os.Lstat(l.lastFile()); err != nil || !st.Mode().IsRegular() || st.Size() > maxLast {
		return nil
	}
	b, err := os.ReadFile(l.lastFile())
	if err != nil {
		return nil
	}
	var out Last
	if json.Unmarshal(b, &out) != nil || out.At.IsZero() {
		return nil
	}
	return &out
}

// keepLast writes how the server does now, for those who ask without starting
// it. It is called with the lock held.
func (l *link) keepLast(failure error) {
	if l.c.opt.Pins == "" {
		return
	}
	now := Last{At: time.Now()}
	if failure != nil {
		now.Error, _ = told("", failure.Error(), 1<<10)
		if l.c.opt.Scrub != nil {
			now.Error = l.c.opt.Scrub(now.Error)
		}
	}
	for _, d := range l.held {
		now.Held = append(now.Held, d.Spec.Name)
	}
	slices.Sort(now.Held)
	now.Held = now.Held[:min(len(now.Held), 100)]
	if b, err := json.Marshal(now); err == nil {
		_ = keepFile(l.lastFile(), b) // the next start tries again
	}
}
