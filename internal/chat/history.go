package chat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/elfhost/elfhost/internal/config/strict"
)

// keptHistory is how many inputs are kept.
const keptHistory = 1000

// history is what was written before, a JSON string a line. Losing it loses
// nothing that matters, so that its errors are told to nobody.
type history struct {
	path string // "": in memory only
	all  []string
}

func openHistory(path string) *history {
	h := &history{path: path}
	b, err := os.ReadFile(path)
	if path == "" || err != nil {
		return h
	}
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var s string
		if json.Unmarshal(sc.Bytes(), &s) == nil && s != "" {
			h.all = append(h.all, s)
		}
	}
	h.all = h.all[max(0, len(h.all)-keptHistory):]
	return h
}

// add keeps an input, unless it is the last one again or begins with a space.
func (h *history) add(s string) {
	if strings.TrimSpace(s) == "" || s[0] == ' ' || len(s) > 64<<10 || len(h.all) > 0 && h.all[len(h.all)-1] == s {
		return
	}
	h.all = append(h.all, s)
	if h.path == "" || os.MkdirAll(filepath.Dir(h.path), 0o700) != nil {
		return
	}
	b, err := json.Marshal(s)
	if err != nil {
		return
	}
	if len(h.all) > keptHistory+200 { // shorten it now and then
		h.all = h.all[len(h.all)-keptHistory:]
		h.rewrite()
		return
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.Write(append(b, '\n'))
}

func (h *history) rewrite() {
	var out bytes.Buffer
	for _, s := range h.all {
		b, _ := json.Marshal(s)
		out.Write(append(b, '\n'))
	}
	_ = strict.WriteFile(h.path, out.Bytes()) // another conversation may do the same
}
