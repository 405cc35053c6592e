package control

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
)

// What the tool's description says of commands: few words of not too many.
const (
	toldCommands = 40
	toldWords    = 100
)

// Tool is slash_command. Its description names the commands of the folders
// that bring their own rights, as they are now.
func (c *Commands) Tool() host.Tool {
	s := tool.Spec(texts, "slash_command", host.KindOther)
	s.Title = "Slash command"
	s.Description += c.told()
	return &tool.Func{S: s, Run: c.call}
}

func (c *Commands) told() string {
	list := c.List(context.Background(), policy.Rights{})
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\nCommands:")
	for i, cmd := range list {
		if i == toldCommands {
			fmt.Fprintf(&b, "\nand %d more", len(list)-i)
			break
		}
		b.WriteString("\n/" + cmd.Name)
		if cmd.Hint != "" {
			b.WriteString(" " + clip(cmd.Hint, 60))
		}
		if cmd.Description != "" {
			b.WriteString(": " + clip(cmd.Description, toldWords))
		}
	}
	return b.String()
}

type slashArgs struct {
	Command string `json:"command"`
	Args    string `json:"args"`
}

func (c *Commands) call(ctx context.Context, call host.Call) (abi.Result, error) {
	a, err := tool.Args[slashArgs](call)
	if err != nil {
		return abi.Result{}, err
	}
	name := strings.TrimSpace(a.Command)
	if first, rest, ok := strings.Cut(name, " "); ok { // "/review 42" in one
		name = first
		a.Args = strings.TrimSpace(rest + " " + a.Args)
	}
	x, err := c.Expand(ctx, call, name, a.Args)
	switch {
	case ctx.Err() != nil:
		return abi.Result{}, ctx.Err()
	case errors.Is(err, ErrNoCommand):
		return abi.Errorf("%s %s", sentence(err), c.known(ctx, call.Rights)), nil
	case err != nil:
		return abi.Errorf("The command /%s was not expanded: %v.", strings.TrimPrefix(name, "/"), err), nil
	}
	if allowed, narrowed := x.Command.Allowed(); narrowed && c.Narrow != nil {
		c.Narrow(ctx, allowed)
		x.Notes = append(x.Notes, "Until this run ends, only these tools may be used: "+or(strings.Join(x.Command.Tools, ", "), "none")+".")
	}
	if x.Command.Model != "" {
		x.Notes = append(x.Notes, "The command asks for the model "+clip(x.Command.Model, 100)+"; a run that has begun keeps its own.")
	}
	text := "The command /" + x.Command.Name + " (" + x.Command.Source + ") says:\n\n" + x.Text
	if len(x.Notes) > 0 {
		text += "\n\n[" + strings.Join(x.Notes, " ") + "]"
	}
	return abi.Text(text), nil
}

// known names what there is, for somebody who asked for something else.
func (c *Commands) known(ctx context.Context, r policy.Rights) string {
	var names []string
	for i, cmd := range c.List(ctx, r) {
		if i == toldCommands {
			names = append(names, "…")
			break
		}
		names = append(names, "/"+cmd.Name)
	}
	if len(names) == 0 {
		return "There are no commands here."
	}
	return "There are: " + strings.Join(names, ", ") + "."
}

// sentence makes an error one.
func sentence(err error) string {
	s := err.Error()
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
