package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/agents"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/mcp"
	"github.com/elfhost/elfhost/internal/fault"
)

// As makes the session that of an agent definition: its tools, mode and model
// bound it from now on. It is called before the first call of a tool.
func (a *App) As(ctx context.Context, name string) (agents.Definition, error) {
	all, err := a.Definitions().All(ctx, a.Rights())
	if err != nil {
		return agents.Definition{}, err
	}
	i := slices.IndexFunc(all, func(d agents.Definition) bool { return strings.EqualFold(d.Name, name) })
	if i < 0 {
		return agents.Definition{}, fault.New("E1001", "`elfhost agent list` shows them", "there is no agent definition %q", name)
	}
	d := all[i]
	if d.Problem != "" {
		return d, fault.New("E1002", "mend "+d.File, "the agent definition %s cannot be used: %s", d.Name, d.Problem)
	}
	s, err := d.Request(a.Gate.Current())
	if err != nil {
		return d, fault.Wrap("E1002", "mend "+d.File, err)
	}
	if len(d.Direct) > 0 {
		end, err := a.direct(ctx, d.Name, a.all)
		if err != nil {
			return d, err
		}
		if end != nil {
			a.closing(func() error { end(); return nil })
		}
	}
	view, err := s.View(a.Registry)
	if err != nil {
		return d, fault.Wrap("E1002", "mend "+d.File, err)
	}
	a.Registry = view
	if a.opt.Model == "" {
		a.opt.Model = d.Model
	}
	return d, nil
}

// Powerless reports a tool of a plugin that holds none of the rights that it
// asks for: a person took them back, or the policy gives none. One of --plugin is
// not meant: who named it is to see what it is refused.
func (a *App) Powerless(t host.Tool) bool {
	o := t.Spec().Origin
	named := func(p pack) bool { return p.folder != "" && p.manifest.Name == o.Name && p.digest == o.Digest }
	return a.Gate.Powerless(t) && !slices.ContainsFunc(a.packs(), named)
}

// skillURI is where an MCP client reads a skill.
const skillURI = "skill://"

// Prompts are what a client's person may pick: the slash commands, and the
// skills, of those tools that the session has.
func (a *App) Prompts(ctx context.Context) (out []mcp.Prompt) {
	if a.Registry.Has("slash_command") {
		for _, cmd := range a.Commands.List(ctx, a.Rights()) {
			p := mcp.Prompt{Name: cmd.Name, Description: cmd.Description, Render: a.renderCommand(cmd.Name)}
			if cmd.Hint != "" || cmd.TakesArguments() {
				p.Args = []mcp.PromptArg{{Name: "args", Description: cmd.Hint}}
			}
			out = append(out, p)
		}
	}
	for _, k := range a.servedSkills(ctx) {
		if slices.ContainsFunc(out, func(p mcp.Prompt) bool { return p.Name == k.Name }) {
			continue
		}
		out = append(out, mcp.Prompt{Name: k.Name, Description: k.Description, Render: func(ctx context.Context, _ map[string]string) ([]mcp.Message, error) {
			text, err := a.Skills().Text(ctx, a.Rights(), k.Name)
			if err != nil {
				return nil, err
			}
			return []mcp.Message{{Role: "user", Content: []abi.Content{abi.TextBlock(text)}}}, nil
		}})
	}
	return out
}

// renderCommand expands a command: its shell lines pass the gate as calls do.
func (a *App) renderCommand(name string) func(context.Context, map[string]string) ([]mcp.Message, error) {
	return func(ctx context.Context, args map[string]string) ([]mcp.Message, error) {
		x, err := a.Commands.Expand(ctx, host.Call{ID: "prompt", Tool: "slash_command", Caller: host.Caller{Session: a.Session}, Rights: a.Rights()}, name, args["args"])
		if err != nil {
			return nil, err
		}
		text := x.Text
		if len(x.Notes) > 0 {
			text += "\n\n[" + strings.Join(x.Notes, " ") + "]"
		}
		return []mcp.Message{{Role: "user", Content: []abi.Content{abi.TextBlock(text)}}}, nil
	}
}

// Resources are the skills, as files that a client may read.
func (a *App) Resources(ctx context.Context) (out []mcp.Resource) {
	for _, k := range a.servedSkills(ctx) {
		uri := skillURI + k.Name + "/SKILL.md"
		out = append(out, mcp.Resource{URI: uri, Name: k.Name, Description: k.Description, MIMEType: "text/markdown",
			Read: func(ctx context.Context) (abi.Resource, error) {
				text, err := a.Skills().Text(ctx, a.Rights(), k.Name)
				return abi.Resource{URI: uri, MIMEType: "text/markdown", Text: text}, err
			}})
	}
	return out
}

// servedSkill is one that clients are shown.
type servedSkill struct{ Name, Description string }

func (a *App) servedSkills(ctx context.Context) (out []servedSkill) {
	if !a.Registry.Has("read_skill") {
		return nil
	}
	all, err := a.Skills().All(ctx, a.Rights())
	if err != nil {
		a.note("the skills are not shown: %v", err)
		return nil
	}
	for _, k := range all {
		if k.Problem == "" && !k.Shadowed {
			out = append(out, servedSkill{k.Name, k.Description})
		}
	}
	return out
}

// Instructions are what an MCP client's model is told of the session.
func (a *App) Instructions(as agents.Definition) string {
	text := fmt.Sprintf("Tools of elfhost in the folder %s. Some ask the person before they act.", a.Dir)
	if as.Text != "" {
		text += "\n\n" + as.Text
	}
	return text
}
