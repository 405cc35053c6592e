package shell

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

// newMarker makes the word by which what the shell says on its way out is
// found at the end of its output: the status it ends with and its folder.
func newMarker() string { return "elfhost-end-" + rand.Text() }

// preamble is one line that keeps git's own commands from running the diff
// programs that a repository's configuration names. There is no variable that
// turns them off, as there is for its other programs.
//
//go:embed preamble.sh
var preamble string

// script is what the shell is given. With a marker, the shell says on its way
// out where it is. A command could say so falsely: all it wins is to choose a
// folder of the workspace, which cd does as well.
func (s *Shell) script(r request, marker string) string {
	first := ""
	if s.program == "bash" && strings.Contains(r.command, "git") {
		first = strings.TrimSpace(preamble) + "; "
	}
	if marker != "" {
		first += `trap 'printf "\n%s%s " ` + marker + ` "$?"; pwd -P' EXIT` // no fork
	}
	if first == "" {
		return r.command
	}
	return first + "\n" + r.command
}

// end is what the shell said on its way out. It is empty when the shell was
// killed, replaced itself, or has a trap of its own.
type end struct{ status, dir string }

// cutMarker takes the marker, and what follows it on its line, out of an output.
func cutMarker(out []byte, marker string) (rest []byte, e end) {
	i := bytes.LastIndex(out, []byte("\n"+marker))
	if i < 0 {
		return out, e
	}
	line, after, ok := bytes.Cut(out[i+1:], []byte{'\n'})
	if !ok {
		return out[:i], e
	}
	e.status, e.dir, _ = strings.Cut(string(line[len(marker):]), " ")
	return append(out[:i:i], after...), e
}

// cut takes what the shell said on its way out off the output and the log.
func (o *outcome) cut(marker, log string) (e end) {
	before := len(o.text)
	o.text, e = cutMarker(o.text, marker)
	if o.head > len(o.text) {
		o.head = len(o.text)
	}
	if e.dir != "" {
		o.total = max(o.total-int64(before-len(o.text)), 0)
	}
	if o.truncated && o.total > 0 && o.total <= int64(len(o.text)) { // 0: nobody counted
		o.truncated = false
	}
	trimLog(log, marker)
	return e
}

// shrink gives up the room that was there for the marker: half of the limit
// from the front, half from the back, in whole runes.
func (o *outcome) shrink(limit int) {
	if len(o.text) <= limit {
		return
	}
	if !o.truncated {
		o.truncated, o.head = true, len(o.text)
	}
	head, tail := min(o.head, limit/2), max(o.head, len(o.text)-limit/2)
	for head > 0 && !utf8.RuneStart(o.text[head]) {
		head--
	}
	for tail < len(o.text) && !utf8.RuneStart(o.text[tail]) {
		tail++
	}
	o.text, o.head = append(o.text[:head:head], o.text[tail:]...), head
}

// follow keeps the folder in which a command ended, for the next one. A
// folder outside the workspace is not kept.
func (s *Shell) follow(o *outcome, dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if dir == "" {
		return
	}
	name, err := s.Tree.Virtual("", dir)
	if err == nil && (name == policy.Workspace || strings.HasPrefix(name, policy.Workspace+"/")) {
		if name != s.cwd {
			s.cwd = name
			o.notes = append(o.notes, fmt.Sprintf("Working directory: %s", s.Tree.Display("", name)))
		}
		return
	}
	at := s.Tree.Display("", s.cwd)
	if at == "." {
		at = "the workspace's own folder"
	}
	o.notes = append(o.notes, fmt.Sprintf("The command ended in %.200q, outside the workspace. The working directory is kept inside the workspace: the next command starts in %s.", dir, at))
}

// trimLog cuts the marker off the end of a log. The last few kilobytes are
// looked at: a job's output may follow the marker.
func trimLog(name, marker string) {
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return
	}
	const tail = 16 << 10
	from := max(info.Size()-tail, 0)
	buf := make([]byte, info.Size()-from)
	if _, err := f.ReadAt(buf, from); err != nil {
		return
	}
	rest, e := cutMarker(buf, marker)
	if e.dir == "" {
		return
	}
	if _, err := f.WriteAt(rest, from); err == nil {
		_ = f.Truncate(from + int64(len(rest)))
	}
}

// environment is the runner's clean one, with git kept from running what a
// repository's own configuration names: a rule that allows git status is not
// meant to allow that.
func environment() []string {
	env := reach.CleanEnv()
	for i, kv := range []string{"core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat"} {
		k, v, _ := strings.Cut(kv, "=")
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, k), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, v))
	}
	return append(env, "GIT_CONFIG_COUNT=3", "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true")
}

// variable is a name that the Gate can judge: it sees env as the command's own
// assignments, so that what could change which program runs is asked about.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
