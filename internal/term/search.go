package term

import "strings"

const (
	ctrlG = 7
	ctrlR = 18
)

// search looks through the history backwards, as Ctrl-R of a shell does.
type search struct {
	words  []rune
	at     int // of what is shown; len(History): nothing yet
	failed bool

	text []rune // that stood there before
	pos  int
}

func (s *search) miss() string {
	if s.failed {
		return " (not found)"
	}
	return ""
}

// seek takes a key while the history is searched; false: the search is over
// and the key means what it always does.
func (l *line) seek(key rune) bool {
	s := l.search
	switch {
	case key == ctrlR:
		l.find(s.at - 1)
	case key == ctrlG:
		l.text, l.pos, l.search = s.text, s.pos, nil
	case key == 8 || key == 127:
		s.words = s.words[:max(0, len(s.words)-1)]
		l.find(len(l.e.History) - 1)
	case key >= 0x20 && key <= 0x10ffff && key != 127:
		s.words = append(s.words, key)
		l.find(min(s.at, len(l.e.History)-1))
	default:
		l.found()
		return key == keyNone // Escape only ends the search
	}
	return true
}

// find shows the newest entry that holds the words, from the given one back.
func (l *line) find(from int) {
	s := l.search
	s.failed = false
	if len(s.words) == 0 {
		s.at, l.text, l.pos = len(l.e.History), s.text, s.pos
		return
	}
	words := strings.ToLower(string(s.words))
	for i := from; i >= 0; i-- {
		text := strings.ToValidUTF8(l.e.History[i], "\uFFFD")
		at := strings.Index(strings.ToLower(text), words)
		if at < 0 {
			continue
		}
		s.at, l.text = i, []rune(text)
		l.pos = min(len([]rune(strings.ToLower(text)[:at])), len(l.text))
		return
	}
	s.failed = true
}

// found goes on with what the search has shown.
func (l *line) found() {
	if l.search != nil && l.search.at < len(l.e.History) {
		l.at, l.own = l.search.at, l.search.text
		l.pos = len(l.text)
	}
	l.search = nil
}
