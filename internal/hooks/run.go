package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/elfhost/elfhost/host/reach"
)

// denial is a hook's no, or a guard's failure.
type denial struct{ reason string }

func (d *denial) Error() string { return d.reason }

// run runs one hook. The error is a *denial where the hook has said no.
func (h *Hooks) run(ctx context.Context, k hook, e Event) (Reply, error) {
	e.V, e.Dir = 1, h.Dir
	if e.Session == "" {
		e.Session = h.Session
	}
	if h.Gate != nil {
		e.Mode = h.Gate.Current()
	}
	input, err := h.encode(e)
	if err != nil {
		return Reply{}, fmt.Errorf("the hook %q was not run: %w", k.Command[0], err)
	}
	var out bounded
	exit, err := (&reach.Runner{Keeper: h.Keeper}).Run(ctx, h.rights, reach.Program{
		Argv: command(k.Command), Dir: h.Dir, Stdin: bytes.NewReader(input), Stdout: &out,
		Env:     append(reach.CleanEnv(), "ELFHOST_EVENT="+k.Event, "ELFHOST_SESSION="+e.Session, "ELFHOST_DIR="+h.Dir),
		Timeout: k.Timeout.Duration, Output: 16 << 10,
	})
	said := line(string(exit.Output))
	switch {
	case err != nil:
		return Reply{}, fmt.Errorf("the hook %q could not be run: %w", k.Command[0], err)
	case exit.TimedOut:
		return Reply{}, fmt.Errorf("the hook %q took longer than %s", k.Command[0], k.Timeout.Duration)
	case exit.Code == 2:
		if _, err := reply(k.Command[0], out.kept); said == "" && !out.over {
			if no, ok := errors.AsType[*denial](err); ok {
				return Reply{}, no
			}
		}
		return Reply{}, &denial{or(said, fmt.Sprintf("the hook %q says no", k.Command[0]))}
	case exit.Code != 0:
		return Reply{}, fmt.Errorf("the hook %q failed with status %d: %s", k.Command[0], exit.Code, or(said, "it said nothing"))
	case out.over:
		return Reply{}, fmt.Errorf("the hook %q answered more than %d KiB", k.Command[0], maxReply>>10)
	}
	return reply(k.Command[0], out.kept)
}

// encode writes an event. A result that is very long is cut; arguments and
// prompts never are: a guard sees all that it lets through.
func (h *Hooks) encode(e Event) ([]byte, error) {
	if e.Result != nil && len(e.Result.Text) > maxEvent/2 {
		e.Result = &Result{strings.ToValidUTF8(e.Result.Text[:maxEvent/2], ""), e.Result.IsError}
	}
	b, err := json.Marshal(e)
	if err == nil && h.Scrub != nil {
		b = h.Scrub(b)
	}
	return b, err
}

// reply reads what a hook has answered. Text that is no JSON object, or holds
// keys of somebody else's, is no answer that a guard may be trusted to have
// meant: another agent's way to say no must not be read as a yes.
func reply(name string, b []byte) (Reply, error) {
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return Reply{}, nil
	}
	var r Reply
	if b[0] != '{' || !json.Valid(b) {
		return Reply{}, fmt.Errorf("the hook %q answered with what is no JSON object", name)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Reply{}, fmt.Errorf("the hook %q answered with what is not {decision, reason, context}: %w", name, err)
	}
	r.Reason, r.Context = line(r.Reason), strings.TrimSpace(strings.ToValidUTF8(r.Context, ""))
	switch r.Decision {
	case "", "allow", "approve", "continue":
		return r, nil
	case "deny", "block":
		return Reply{}, &denial{or(r.Reason, fmt.Sprintf("the hook %q says no", name))}
	}
	return Reply{}, fmt.Errorf("the hook %q answered with the decision %.40q, which is neither allow nor deny", name, r.Decision)
}

// command expands a home folder, as there is no shell to do it.
func command(argv []string) []string {
	rest, ok := strings.CutPrefix(argv[0], "~/")
	if !ok {
		return argv
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return argv
	}
	return append([]string{filepath.Join(home, filepath.FromSlash(rest))}, argv[1:]...)
}

// bounded keeps the first maxReply bytes, and takes the others, too.
type bounded struct {
	kept []byte
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := maxReply - len(b.kept)
	b.over = b.over || len(p) > room
	b.kept = append(b.kept, p[:min(len(p), room)]...)
	return len(p), nil
}

// line brings a reason onto one line, within bounds.
func line(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	if utf8.RuneCountInString(s) > maxReason {
		s = string([]rune(s)[:maxReason]) + "…"
	}
	return s
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
