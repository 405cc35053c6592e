package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
)

// Expansion is a command that is ready to be carried out.
type Expansion struct {
	Command Command
	Text    string   // the prompt
	Notes   []string // whole sentences: what could not be filled in
}

// Limits of an expansion.
const (
	maxShell     = 10 // shell lines of one command
	maxMentions  = 20
	maxMentioned = 100 << 10 // bytes of one file
)

// Expand fills in a command. call carries who asks, and the rights to read
// files; its ID names the calls of shell lines. What a shell line prints
// stands in its place, a file that is mentioned follows the text. A refused
// shell line fails the expansion.
//
// Arguments are data: they are filled in after directives were found, and a
// shell line gets them as its shell's variables, never as part of its text.
func (c *Commands) Expand(ctx context.Context, call host.Call, name, args string) (Expansion, error) {
	name = strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(name), "/"), "/", ":")
	cmd, err := c.find(ctx, call.Rights, name)
	if err != nil {
		return Expansion{}, err
	}
	x := &expander{commands: c, call: call, args: strings.TrimSpace(args)}
	x.words = split(x.args)
	x.out.Command = cmd
	if cmd.Fill != nil {
		if x.out.Text, err = cmd.Fill(ctx, x.words); err != nil {
			return Expansion{}, err
		}
		return x.out, nil
	}
	parts := parse(cmd.body)
	if x.args != "" && !usesAny(parts) {
		parts = append(parts, part{literal, "\n\nArguments: ", 0}, part{all, "", 0})
	}
	for _, p := range parts {
		if err := x.take(ctx, p); err != nil {
			return Expansion{}, err
		}
	}
	x.out.Text = strings.TrimSpace(x.text.String()) + x.files.String()
	return x.out, nil
}

// usesAny reports whether arguments have a place.
func usesAny(parts []part) bool {
	for _, p := range parts {
		if p.kind == all || p.kind == argument || (p.kind == mention || p.kind == shellLine) && uses(p.text) {
			return true
		}
	}
	return false
}

type expander struct {
	commands *Commands
	call     host.Call
	args     string
	words    []string

	text, files      strings.Builder
	shells, mentions int
	out              Expansion
}

func (x *expander) note(format string, args ...any) {
	x.out.Notes = append(x.out.Notes, fmt.Sprintf(format, args...))
}

func (x *expander) take(ctx context.Context, p part) error {
	switch p.kind {
	case shellLine:
		out, err := x.run(ctx, p.text)
		x.text.WriteString(out)
		return err
	case mention:
		name := fill(p.text, x.args, x.words)
		x.text.WriteString("@" + name)
		return x.mention(ctx, name)
	}
	x.text.WriteString(p.fill(x.args, x.words))
	return nil
}

// run carries out one shell line through the door, with its question.
func (x *expander) run(ctx context.Context, line string) (string, error) {
	if x.shells++; x.shells > maxShell {
		return "", fmt.Errorf("a command may have %d shell lines, and this one has more", maxShell)
	}
	if x.commands.Registry == nil {
		return "", errors.New("it has shell lines, and there is no shell here")
	}
	r := x.commands.Registry(ctx)
	shell := "Bash"
	if !r.Has(shell) {
		shell = "Shell"
	}
	if !r.Has(shell) {
		return "", errors.New("it has shell lines, and this session has no tool that runs commands")
	}
	if !x.out.Command.covers(shell, line) {
		return "", fmt.Errorf("its own allowed-tools (%s) do not cover its shell line %q", or(strings.Join(x.out.Command.Tools, ", "), "none"), clip(line, 200))
	}
	args, err := json.Marshal(map[string]string{"command": x.script(line)})
	if err != nil {
		return "", err
	}
	refused := ""
	res := r.Invoke(ctx, host.Call{
		ID: x.call.ID + "-sh" + strconv.Itoa(x.shells), Tool: shell, Args: args, Caller: x.call.Caller,
		Progress: x.call.Progress, Receipt: x.call.Receipt,
		Denied: func(d host.Denied) {
			if d.Use == nil {
				refused = d.Why
			}
			if x.call.Denied != nil {
				x.call.Denied(d)
			}
		},
	})
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case refused != "":
		return "", fmt.Errorf("its shell line %q was refused: %s", clip(line, 200), refused)
	case res.IsError:
		x.note("The shell line %q failed; what it said stands in its place.", clip(line, 200))
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(res.Text()), host.RetryHint)), nil // it has no place within a prompt
}

// script is a line with its arguments as the shell's own variables: whatever
// is in them, the shell takes it for a value.
func (x *expander) script(line string) string {
	if !uses(line) {
		return line
	}
	var b strings.Builder
	b.WriteString("ARGUMENTS=" + quote(x.args) + "; set --")
	for _, w := range x.words {
		b.WriteString(" " + quote(w))
	}
	return b.String() + "\n" + line
}

// quote writes a word for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// mention adds a file's text. What is not there stays as it is written: an @
// may mean something else.
func (x *expander) mention(ctx context.Context, name string) error {
	if x.commands.Tree == nil || name == "" {
		return nil
	}
	if x.mentions++; x.mentions > maxMentions {
		x.note("@%s was not read: a command may mention %d files.", clip(name, 200), maxMentions)
		return nil
	}
	virtual, err := x.commands.Tree.Virtual("", name)
	if err == nil {
		var b []byte
		b, err = x.commands.Tree.ReadFile(ctx, x.call.Rights, virtual, maxMentioned)
		if err == nil && strings.ContainsRune(string(b[:min(len(b), 8000)]), 0) {
			err = errors.New("it is not text")
		}
		if err == nil {
			fence := fenceFor(string(b))
			fmt.Fprintf(&x.files, "\n\nThe file %s:\n%s\n%s\n%s", name, fence, strings.TrimSuffix(strings.ToValidUTF8(string(b), "\uFFFD"), "\n"), fence)
			return nil
		}
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, "./"):
		return nil // @someone
	case errors.Is(err, fs.ErrNotExist):
		x.note("There is no file %s.", clip(name, 200))
	case errors.Is(err, abi.ErrTooLarge):
		x.note("@%s was not read: it is over %d KiB. Read a part of it.", clip(name, 200), maxMentioned>>10)
	case errors.Is(err, abi.ErrDenied):
		x.note("@%s was not read: it is outside of what may be read.", clip(name, 200))
	default:
		x.note("@%s was not read: %v.", clip(name, 200), err)
	}
	return nil
}

// fenceFor is a run of backticks that the text does not hold.
func fenceFor(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence
}
