package shell

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/reach"
)

// outcome is how a command ended, on its way to the model.
type outcome struct {
	exit      reach.Exit
	text      []byte
	head      int // where the cut is when truncated
	truncated bool
	total     int64
	timeout   time.Duration
	log       string
	notes     []string
}

func newOutcome(e reach.Exit, r request) outcome {
	return outcome{exit: e, text: e.Output, head: e.Head, truncated: e.Truncated, total: e.Total, timeout: r.timeout}
}

// structured is the answer for programs.
type structured struct {
	Output     string     `json:"output"`
	Truncated  bool       `json:"truncated"`
	ExitStatus exitStatus `json:"exitStatus"`
	TimedOut   bool       `json:"timedOut"`
}

type exitStatus struct {
	ExitCode *int    `json:"exitCode"` // null when a signal ended it
	Signal   *string `json:"signal"`
}

func (o *outcome) result() abi.Result {
	text := o.output()
	res := abi.Text(joinLines(text, append(o.remarks(), o.notes...)))
	res.IsError = o.exit.Code != 0 || o.exit.TimedOut
	s := structured{Output: text, Truncated: o.truncated, TimedOut: o.exit.TimedOut}
	if o.exit.Signal != "" {
		s.ExitStatus.Signal = &o.exit.Signal
	} else {
		s.ExitStatus.ExitCode = &o.exit.Code
	}
	if raw, err := json.Marshal(s); err == nil {
		res.Structured = raw
	}
	return res
}

// output is the text, with a line where the middle is missing.
func (o *outcome) output() string {
	clean := func(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }
	if !o.truncated {
		return clean(o.text)
	}
	head, tail := clean(o.text[:o.head]), clean(o.text[o.head:])
	if o.total == 0 { // nobody counted
		return fmt.Sprintf("… the beginning left out (truncated) …\n%s", tail)
	}
	return fmt.Sprintf("%s\n… %s left out (truncated) …\n%s", strings.TrimSuffix(head, "\n"), size(max(o.total-int64(len(o.text)), 1)), tail)
}

// signalled finds out whether a signal ended the shell. A shell reports in the same
// way that its last command was killed; but then it says so on its way out.
func signalled(e reach.Exit, said end) reach.Exit {
	if said.status == strconv.Itoa(e.Code) {
		return e
	}
	return e.Signalled()
}

// remarks say what a reader could not see from the output.
func (o *outcome) remarks() []string {
	var out []string
	if o.truncated && o.log != "" {
		out = append(out, fmt.Sprintf("The whole output, %s, is in %s: read a part of it with Read.", size(o.total), o.log))
	}
	e := o.exit
	switch {
	case e.TimedOut:
		out = append(out, fmt.Sprintf("The command was killed: it took longer than %v. Give it more time, or run it in the background.", o.timeout))
	case e.LogFull:
		out = append(out, "The command was stopped: it wrote more than the log may hold.")
	case e.TooMany:
		out = append(out, "The command was stopped: it started too many processes.")
	case e.Signal != "":
		out = append(out, fmt.Sprintf("The command was ended by %s.", e.Signal))
	case e.Code != 0:
		out = append(out, fmt.Sprintf("Exit code %d.", e.Code))
	case len(bytes.TrimSpace(o.text)) == 0:
		out = append(out, "The command succeeded without output.")
	}
	return out
}

// keepLog names the log where it holds more than the answer, and removes it
// where it does not.
func (o *outcome) keepLog(name string) {
	if o.truncated {
		o.log = name
		return
	}
	removeLog(name)
}

func removeLog(name string) {
	if name != "" {
		_ = os.Remove(name)
	}
}

// logFile names the log of a call.
func (s *Shell) logFile(id string) string {
	if s.Logs == "" {
		return ""
	}
	s.mu.Lock()
	s.next++
	n := s.next
	s.mu.Unlock()
	return filepath.Join(s.Logs, fmt.Sprintf("shell-%d-%d-%s.log", os.Getpid(), n, safe(id)))
}

// safe keeps what may stand in a file's name.
func safe(id string) string {
	id = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return -1
	}, id)
	return id[:min(len(id), 40)]
}

func joinLines(text string, notes []string) string {
	if len(notes) == 0 {
		return strings.TrimSuffix(text, "\n")
	}
	if text = strings.TrimSuffix(text, "\n"); text != "" {
		text += "\n\n"
	}
	return text + strings.Join(notes, "\n")
}

func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
}
