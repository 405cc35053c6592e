package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/host"
)

// change describes what is held. It is called with the lock held.
func (l *link) change() Change {
	ch := Change{Server: l.s.Name}
	if len(l.held) == 0 {
		return ch
	}
	var key []string
	for tool, d := range l.held {
		key = append(key, d.Digest)
		if _, ok := l.agreed[tool]; ok {
			ch.Altered = append(ch.Altered, d.Spec)
		} else {
			ch.Added = append(ch.Added, d.Spec)
		}
		ch.Flagged = append(ch.Flagged, d.flagged()...)
	}
	byName := func(a, b host.Spec) int { return strings.Compare(a.Name, b.Name) }
	if l.torn {
		ch.Flagged = append(ch.Flagged, "what you agreed to before could not be read: nothing here can be compared with it")
	}
	slices.SortFunc(ch.Added, byName)
	slices.SortFunc(ch.Altered, byName)
	slices.Sort(ch.Flagged)
	slices.Sort(key)
	sum := sha256.Sum256([]byte(strings.Join(key, " ")))
	ch.Digest = "sha256:" + hex.EncodeToString(sum[:])
	return ch
}

// maxUnheard is how often in a row a person is asked about changes of one server
// without agreeing. One that changes all the time would else wear a no down.
const maxUnheard = 3

// asksAbout reports whether a person is to be asked about a change now, and notes
// that it is so. There is one question at a time, and one about each change. It is
// called with the lock held.
func (l *link) asksAbout(ch Change) bool {
	if l.c.opt.Consent == nil || ch.Digest == "" || ch.Digest == l.asking || l.asked || l.unheard >= maxUnheard {
		return false
	}
	l.asking, l.asked = ch.Digest, true
	return true
}

// consent asks about a change, and about what the server has made of it
// meanwhile.
func (l *link) consent(ch Change) {
	for again := true; again; {
		ok, err := l.c.opt.Consent(l.c.ctx, ch)
		if err == nil && ok {
			err = l.agree(ch)
		}
		l.mu.Lock()
		l.asked = false
		if err != nil && l.asking == ch.Digest {
			l.asking = "" // ask again at the next change
		}
		if l.unheard++; ok && err == nil {
			l.unheard = 0
		}
		over := l.unheard == maxUnheard
		now := l.change()
		if again = err == nil && now.Digest != ch.Digest && l.asksAbout(now); again {
			ch = now
		}
		l.mu.Unlock()
		if err != nil {
			l.c.log(l.s.Name, "error", err.Error())
		}
		if over {
			l.c.log(l.s.Name, "warning", "it changes its tools again and again; what it changes from now on is held, and nobody is asked, until a person agrees by `elfhost mcp agree "+l.s.Name+"`")
		}
	}
}

// agree accepts what is held, if it is still what was shown.
func (l *link) agree(ch Change) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.change(); now.Digest != ch.Digest {
		return ErrChanged
	}
	for tool, d := range l.held {
		l.agreed[tool] = d
	}
	l.held, l.asking, l.unheard = map[string]*definition{}, "", 0
	l.offer()
	l.keepLast(nil)
	if err := l.writePins(); err != nil {
		return fmt.Errorf("keeping the tools of the MCP server %q that were agreed to: %w", l.s.Name, err)
	}
	return nil
}
