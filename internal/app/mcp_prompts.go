package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/control"
	"github.com/elfhost/elfhost/host/mcp"
)

// serverPrompts are the prompts of MCP servers as slash commands.
func (a *App) serverPrompts() (out []control.Command) {
	if a.MCP == nil { // it is opened after the commands
		return nil
	}
	for _, p := range a.MCP.Prompts() {
		cmd := control.Command{Name: p.Name, Description: p.Description, Source: "MCP server " + p.Server}
		var hint []string
		for _, arg := range p.Args {
			if arg.Required {
				hint = append(hint, arg.Name)
			} else {
				hint = append(hint, "["+arg.Name+"]")
			}
		}
		cmd.Hint = strings.Join(hint, " ")
		cmd.Fill = func(ctx context.Context, words []string) (string, error) {
			args, err := bindWords(p, words)
			if err != nil {
				return "", err
			}
			msgs, err := a.MCP.Prompt(ctx, p.Name, args)
			if err != nil {
				return "", err
			}
			return promptText(msgs), nil
		}
		out = append(out, cmd)
	}
	return out
}

// bindWords gives a prompt's arguments what a person typed, in their order;
// the last one gets the rest.
func bindWords(p mcp.ServerPrompt, words []string) (map[string]string, error) {
	args := map[string]string{}
	for i, arg := range p.Args {
		switch {
		case i >= len(words):
			if arg.Required {
				return nil, fmt.Errorf("it needs %s", arg.Name)
			}
		case i == len(p.Args)-1:
			args[arg.Name] = strings.Join(words[i:], " ")
		default:
			args[arg.Name] = words[i]
		}
	}
	if len(p.Args) == 0 && len(words) > 0 {
		return nil, errors.New("it takes no arguments")
	}
	return args, nil
}

// promptText is a prompt's messages as one text.
func promptText(msgs []mcp.Message) string {
	var parts []string
	for _, m := range msgs {
		for _, c := range m.Content {
			text := c.Text
			if c.Resource != nil {
				text = fmt.Sprintf("The resource %s:\n%s", c.Resource.URI, c.Resource.Text)
			} else if c.Type != abi.TypeText {
				text = fmt.Sprintf("(a block of type %s, which a command cannot hold)", c.Type)
			}
			if m.Role == "assistant" {
				text = "Assistant: " + text
			}
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n")
}
