package shell

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

// newMarker makes the word by which the folder that a command ends in is
// found at the end of its output.
func newMarker() string { return "elfhost-cwd-" + rand.Text() }

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
		first += `trap 'printf "\n%s" ` + marker + `; pwd -P' EXIT` // no fork
	}
	if first == "" {
		return r.command
	}
	return first + "\n" + r.command
}

// cutMarker takes the marker out of an output. dir is "" when it is not there:
// the shell was killed, replaced itself, or has a trap of its own.
func cutMarker(out []byte, marker string) (rest []byte, dir string) {
	i := bytes.LastIndex(out, []byte("\n"+marker))
	if i < 0 {
		return out, ""
	}
	line, after, ok := bytes.Cut(out[i+1:], []byte{'\n'})
	if !ok {
		return out[:i], ""
	}
	return append(out[:i:i], after...), string(line[len(marker):])
}

// follow keeps the folder in which a command ended, for the next one. A
// folder outside the workspace is not kept.
func (s *Shell) follow(ctx context.Context, c host.Call, o *outcome, marker, log string) {
	var dir string
	o.text, dir = cutMarker(o.text, marker)
	if o.head > len(o.text) {
		o.head = len(o.text)
	}
	if i := int64(len(marker) + len(dir) + 2); dir != "" {
		o.total = max(o.total-i, 0)
	}
	if o.truncated && o.total <= int64(len(o.text)) {
		o.truncated = false
	}
	trimLog(log, marker)
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
	o.notes = append(o.notes, fmt.Sprintf("The command left the workspace; the working directory stays %s.", s.Tree.Display("", s.cwd)))
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
	rest, dir := cutMarker(buf, marker)
	if dir == "" {
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
