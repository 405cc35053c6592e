package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/agents"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/mcp"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

type serveFlags struct {
	sessionFlags
	http, tokenEnv string
	agent          string
	hosts, origins []string
}

func mcpServeVerb(s streams) *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use: "serve", Short: "Show these tools to an MCP client",
		Long: `Serve the tools of this folder to an MCP client, over standard streams or, with
--http, to any number of clients on this machine. Every call passes the same
gate as an agent's: questions go to the client's person where the client can
ask (elicitation), else they are refused with the rule that would allow it. Slash
commands and skills are shown as prompts, skills as resources too.`,
		Example: `  elfhost mcp serve --tools Read,Grep,WebFetch
  elfhost mcp serve --agent reviewer
  elfhost mcp serve --http 127.0.0.1:7332`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context(), s) },
	}
	f.register(c)
	fl := c.Flags()
	fl.StringVar(&f.agent, "agent", "", "an agent definition: its tools, mode and model are the most that is shown, its text is told to the client's model")
	fl.StringVar(&f.http, "http", "", "serve streamable HTTP at this address, such as 127.0.0.1:7332")
	fl.StringVar(&f.tokenEnv, "token-env", "", "the variable that holds the bearer token; without it one is made and printed")
	fl.StringSliceVar(&f.hosts, "host", nil, "a name, beside the loopback's, under which clients speak to it")
	fl.StringSliceVar(&f.origins, "origin", nil, "a web page's origin that may speak to it")
	return c
}

func (f *serveFlags) run(ctx context.Context, s streams) error {
	asker := &mcp.Asker{Show: showQuestion}
	o := app.Options{Approver: asker, Origin: "mcp", Follow: true} // a client sees no session of the person's
	o.Told = func(text string) { fmt.Fprintf(s.err, "elfhost: %s\n", term.Lines(text)) }
	a, err := f.session(ctx, s, o)
	if err != nil {
		return err
	}
	defer a.Close(context.WithoutCancel(ctx))
	if err := f.reachable(a); err != nil {
		return err
	}
	a.MCP.Start()
	var as agents.Definition
	if f.agent != "" {
		if as, err = a.As(ctx, f.agent); err != nil {
			return err
		}
	}
	token := ""
	if f.http != "" {
		if token, err = f.token(s); err != nil {
			return err
		}
	}
	secret, err := a.Seal(token)
	if err != nil {
		return fault.Wrap("E1501", "`elfhost doctor` checks the folders", err)
	}
	b := mcp.NewBridge(mcp.ServeOptions{
		Registry: a.Registry, Version: buildInfo().Version, Session: a.Session, Secret: secret, Shared: a.Shared(),
		Instructions: a.Instructions(as),
		Offers:       func(ctx context.Context) ([]mcp.Prompt, []mcp.Resource) { return a.Prompts(ctx), a.Resources(ctx) },
		Changed:      a.OffersChanged,
		Powerless:    a.Powerless,
		Prepare:      func(c *host.Call) { c.Receipt = func(r abi.Receipt) { a.KeepReceipt(r) } },
	})
	defer b.Close()
	if f.http == "" {
		err := b.Serve(ctx, s.in, s.out)
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return err
	}
	return f.listen(ctx, s, b, token)
}

// reachable refuses an address that other machines reach, unless the system
// policy names it. Clients then speak to it under that name, too.
func (f *serveFlags) reachable(a *app.App) error {
	if f.http == "" || mcp.Loopback(f.http) {
		return nil
	}
	if f.http != a.Policy.Network().Listen {
		return fault.New("E1001", "use 127.0.0.1:PORT, and a tunnel or a proxy with TLS before it; or let the system policy say [network] listen = "+strconv.Quote(f.http),
			"%s can be reached from other machines: --http serves this machine alone", f.http)
	}
	if host, _, err := net.SplitHostPort(f.http); err == nil {
		f.hosts = append(f.hosts, host)
	}
	return nil
}

func (f *serveFlags) listen(ctx context.Context, s streams, b *mcp.Bridge, token string) error {
	l, err := net.Listen("tcp", f.http)
	if err != nil {
		return fault.New("E1001", "another program may listen there: choose another port", "listening on %s: %w", f.http, err)
	}
	fmt.Fprintf(s.err, "elfhost: serving http://%s/mcp\n", l.Addr())
	return b.Listen(ctx, l, mcp.HTTPOptions{Token: token, Hosts: f.hosts, Origins: f.origins})
}

// token is what clients have to bring. One that is made is shown once.
func (f *serveFlags) token(s streams) (string, error) {
	if f.tokenEnv != "" {
		t := os.Getenv(f.tokenEnv)
		if len(t) < 16 {
			return "", fault.New("E1001", "`openssl rand -hex 32` makes one", "the variable %s holds no token of at least 16 characters", f.tokenEnv)
		}
		return t, nil
	}
	t := strings.ToLower(rand.Text() + rand.Text())
	fmt.Fprintf(s.err, "elfhost: clients send the header  Authorization: Bearer %s\n", t)
	return t, nil
}

// showQuestion is the question of a terminal, for a client's form.
func showQuestion(a host.Ask) (mcp.Question, bool) {
	q, ok := term.Ask(a, true)
	if !ok {
		return mcp.Question{}, false
	}
	out := mcp.Question{Text: q.Body()}
	for _, c := range q.Choices {
		if c.Unfold || c.Reason {
			continue
		}
		if !c.Answer.Allow {
			out.Default = len(out.Choices)
		}
		out.Choices = append(out.Choices, c.Text)
		out.Answers = append(out.Answers, c.Answer)
	}
	return out, true
}
