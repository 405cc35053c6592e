package term

import (
	"context"
	"fmt"
	"strings"
)

// shownChoices is how many choices are shown at once.
const shownChoices = 8

// complete writes what all choices begin with, or shows them where that is no
// more than what stands there. Where there is nothing to complete, Tab indents.
func (l *line) complete(ctx context.Context) {
	before := string(l.text[:l.pos])
	if l.e.Complete == nil || strings.TrimSpace(before[strings.LastIndexByte(before, '\n')+1:]) == "" {
		l.insert(' ', ' ')
		return
	}
	from, choices := l.e.Complete(ctx, before)
	if len(choices) == 0 || from < 0 || from > len(before) {
		return
	}
	common := choices[0]
	for _, c := range choices[1:] {
		common = prefix(common, c)
	}
	if common = clean(common); len(common) > len(before)-from || len(choices) == 1 {
		keep := len([]rune(before[:from]))
		l.cut(keep, l.pos)
		l.insert([]rune(common)...)
		return
	}
	l.hint = choices
	if over := len(choices) - shownChoices; over > 0 {
		l.hint = append(choices[:shownChoices:shownChoices], fmt.Sprintf("and %d more", over))
	}
}

// prefix is what two texts begin with, whole characters only.
func prefix(a, b string) string {
	for i, r := range a {
		if !strings.HasPrefix(b[min(i, len(b)):], string(r)) {
			return a[:i]
		}
	}
	return a
}
