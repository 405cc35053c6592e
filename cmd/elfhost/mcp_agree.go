package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/mcp"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

func mcpAgreeVerb(s streams) *cobra.Command {
	var f sessionFlags
	var accept string
	c := &cobra.Command{
		Use: "agree NAME", Short: "See what a server changed about its tools, and accept it",
		Long: "A server's tools are offered as they were when it was added. Start it, look at\nthe definitions that are new or changed since, and accept them.",
		Example: `  elfhost mcp agree github                         show, and ask
  elfhost mcp agree github --accept sha256:…       for scripts: exactly what was shown`,
		Args: exactly(1, "a server's name"),
		RunE: func(c *cobra.Command, args []string) error {
			f.noInput = true
			a, err := f.session(c.Context(), s, app.Options{})
			if err != nil {
				return err
			}
			defer a.Close(context.WithoutCancel(c.Context()))
			if err := a.MCP.Connect(c.Context(), args[0]); err != nil {
				return fault.Wrap("E1310", "", err)
			}
			return agreeTo(c.Context(), s, a, args[0], accept)
		},
	}
	f.register(c)
	c.Flags().StringVar(&accept, "accept", "", "accept the definitions with this digest, without a question")
	return c
}

func agreeTo(ctx context.Context, s streams, a *app.App, name, accept string) error {
	ch, err := a.MCP.Held(name)
	if err != nil {
		return fault.Wrap("E1001", "`elfhost mcp list` names the servers", err)
	}
	if ch.Digest == "" {
		_, err := fmt.Fprintf(s.out, "%s holds nothing back: its tools are as you agreed to them.\n", term.Line(name))
		return err
	}
	showChange(s, ch)
	switch {
	case accept == ch.Digest:
	case accept != "":
		return fault.New("E1207", "look at it again: the digest is "+ch.Digest, "--accept names other definitions than these")
	case !term.IsTerminal(s.in):
		return fault.New("E1201", "a script accepts exactly this with --accept "+ch.Digest, "the changes of %s stay held", name)
	default:
		if err := askChange(ctx, s, ch); err != nil {
			return err
		}
	}
	if err := a.MCP.Agree(ch); err != nil {
		return fault.Wrap("E1310", "run `elfhost mcp agree` again", err)
	}
	_, err = fmt.Fprintf(s.out, "Accepted: %d new, %d changed.\n", len(ch.Added), len(ch.Altered))
	return err
}

// showChange shows all that a model would be told.
func showChange(s streams, ch mcp.Change) {
	for _, part := range []struct {
		what  string
		specs []host.Spec
	}{{"new", ch.Added}, {"changed", ch.Altered}} {
		for _, sp := range part.specs {
			fmt.Fprintf(s.err, "%s  %s  %s\n%s\n  takes  %s\n", part.what, term.Line(sp.Name), term.Line(sp.Title), term.Lines(sp.Description), term.Line(string(sp.Input)))
			if len(sp.Output) > 0 {
				fmt.Fprintf(s.err, "  gives  %s\n", term.Line(string(sp.Output)))
			}
			fmt.Fprintln(s.err)
		}
	}
	for _, f := range ch.Flagged {
		fmt.Fprintf(s.err, "! %s\n", term.Line(f))
	}
	fmt.Fprintf(s.err, "digest of all  %s\n", ch.Digest)
}

func askChange(ctx context.Context, s streams, ch mcp.Change) error {
	args, err := json.Marshal(map[string]any{"server": ch.Server, "new": len(ch.Added), "changed": len(ch.Altered), "digest": ch.Digest})
	if err != nil {
		return err
	}
	ask := term.Prompt{In: s.in, Out: s.err, Style: term.StyleOf(s.err, os.Getenv)}
	answer, err := ask.Approve(ctx, host.Ask{
		Call: host.Call{Tool: "mcp agree", Args: args}, Spec: host.Spec{Name: "mcp agree", Origin: host.Origin{Source: host.Builtin}},
		Why: "you asked for it", Risks: append([]string{"a model is told the texts above and may follow what they say"}, ch.Flagged...), Final: true,
	})
	if err == nil && !answer.Allow {
		err = fault.New("E1202", "", "the changes of %s stay held", ch.Server)
	}
	return err
}
