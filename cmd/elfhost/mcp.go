package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/host/mcp"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

func mcpVerb(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "mcp", Short: "Use MCP servers, and be one",
		Long: "Use the tools of MCP servers, and show this program's tools to MCP clients.",
		Args: noArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(mcpAddVerb(s), mcpListVerb(s), mcpRemoveVerb(s), mcpTestVerb(s), mcpAgreeVerb(s), mcpLoginVerb(s), mcpLogoutVerb(s), mcpServeVerb(s), mcpConfigVerb(s))
	return c
}

func userConfig() (config.Paths, error) {
	p, err := config.FindPaths(os.Getenv)
	return p, fault.Wrap("E1002", "", err)
}

func mcpAddVerb(s streams) *cobra.Command {
	var m config.MCPServer
	var env, headers, headersEnv []string
	var timeout time.Duration
	var sse, test bool
	c := &cobra.Command{
		Use: "add NAME {URL | -- COMMAND [ARG...]}", Short: "Add a server to the user's configuration",
		Example: `  elfhost mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  elfhost mcp add github https://api.githubcopilot.com/mcp/ --header-env Authorization=GITHUB_AUTH`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) >= 2 && (c.ArgsLenAtDash() == 1 || c.ArgsLenAtDash() < 0 && len(args) == 2) {
				return nil
			}
			return fault.New("E1001", "write -- before a command: elfhost mcp add files -- npx -y SERVER", "mcp add takes a name, and a URL or a command after --")
		},
		RunE: func(c *cobra.Command, args []string) error {
			p, err := userConfig()
			if err != nil {
				return err
			}
			if c.ArgsLenAtDash() == 1 {
				m.Command, m.Args = args[1], args[2:]
			} else if m.URL = args[1]; sse {
				m.Transport = "sse"
			}
			if m.Env, err = pairs("--env", env, "="); err != nil {
				return err
			}
			if m.Headers, err = pairs("--header", headers, ":"); err != nil {
				return err
			}
			if m.HeadersEnv, err = pairs("--header-env", headersEnv, "="); err != nil {
				return err
			}
			m.Timeout.Duration = timeout
			if err := config.AddServer(p.UserConfig(), args[0], m); err != nil {
				hint := "a name holds letters, digits, - and single _"
				if errors.Is(err, fs.ErrExist) {
					hint = "`elfhost mcp remove " + args[0] + "` takes it out first"
				}
				return fault.Wrap("E1001", hint, err)
			}
			if test {
				fmt.Fprintf(s.err, "elfhost: added %s to %s\n", term.Line(args[0]), p.UserConfig())
				return testNew(c.Context(), s, args[0])
			}
			fmt.Fprintf(s.err, "elfhost: added %s to %s; `elfhost mcp test %s` starts it, lists its tools and says what is odd about them\n", term.Line(args[0]), p.UserConfig(), term.Line(args[0]))
			return nil
		},
	}
	fl := c.Flags()
	fl.StringArrayVar(&env, "env", nil, "NAME=VALUE, a variable it is given; it stands in the file")
	fl.StringArrayVar(&m.EnvFrom, "env-from", nil, "a variable that it is given from the environment")
	fl.StringArrayVar(&headers, "header", nil, "'Name: value', sent with every request; it stands in the file")
	fl.StringArrayVar(&headersEnv, "header-env", nil, "Name=VARIABLE, a header whose value is in the environment")
	fl.StringSliceVar(&m.Tools, "only", nil, "offer these of its tools only, by its own names")
	fl.StringVar(&m.Cwd, "cwd", "", "the folder it is started in; the workspace when empty")
	fl.DurationVar(&timeout, "timeout", 0, "of one call (60s)")
	fl.BoolVar(&sse, "sse", false, "the URL speaks the older HTTP+SSE")
	fl.BoolVar(&test, "test", false, "start it then, list its tools and say what is odd about them")
	return c
}

// testNew is mcp test for a server that has just been added.
func testNew(ctx context.Context, s streams, name string) error {
	a, err := (&sessionFlags{noInput: true}).session(ctx, s, app.Options{Heard: hearing(s, false)})
	if err != nil {
		return err
	}
	defer a.Close(context.WithoutCancel(ctx))
	return testServers(ctx, s, a, []string{name}, false)
}

func pairs(flag string, list []string, sep string) (map[string]string, error) {
	var out map[string]string
	for _, l := range list {
		k, v, ok := strings.Cut(l, sep)
		if !ok || strings.TrimSpace(k) == "" {
			return nil, fault.New("E1001", "", "%s takes NAME%sVALUE", flag, sep)
		}
		if out == nil {
			out = map[string]string{}
		}
		out[strings.TrimSpace(k)] = strings.TrimSpace(v)
	}
	return out, nil
}

func mcpRemoveVerb(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Take a server out of the user's configuration", Args: exactly(1, "a server's name"),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := userConfig()
			if err != nil {
				return err
			}
			if err := config.RemoveServer(p.UserConfig(), args[0]); err != nil {
				return fault.Wrap("E1001", "`elfhost mcp list` names the servers", err)
			}
			secrets, err := openSecrets()
			if err != nil {
				return err
			}
			if _, err := mcp.Logout(secrets.Store, args[0]); err != nil {
				return fault.Wrap("E1501", "`elfhost mcp logout "+args[0]+"` tries again", err)
			}
			fmt.Fprintf(s.err, "elfhost: removed %s from %s\n", term.Line(args[0]), p.UserConfig())
			return nil
		},
	}
}

func mcpListVerb(s streams) *cobra.Command {
	var f sessionFlags
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the servers and what is known of their tools", Long: "List the servers and what is known of their tools. Nothing is started.", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f.noInput = true
			a, err := f.session(c.Context(), s, app.Options{})
			if err != nil {
				return err
			}
			defer a.Close(context.WithoutCancel(c.Context()))
			all := a.MCP.Status()
			if asJSON {
				return json.NewEncoder(s.out).Encode(all)
			}
			for _, st := range all {
				fmt.Fprintf(s.out, "%-20s %-26s %s\n", term.Line(st.Name), summary(st), short(term.Line(st.Where), 120))
				for _, l := range troubles(st) {
					fmt.Fprintf(s.out, "  %s\n", l)
				}
			}
			return nil
		},
	}
	f.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// summary is what is known of a server that this program has not started.
func summary(st mcp.Status) string {
	state := "not started"
	switch {
	case st.Last != nil && st.Last.Error != "":
		state = "failed"
	case st.Last != nil && len(st.Last.Held) > 0:
		state = "not started, some held"
	}
	switch n := len(st.Tools); {
	case n == 0 && state == "not started":
		return "not started yet"
	case n == 0:
		return state
	case n == 1:
		return "1 tool, " + state
	default:
		return fmt.Sprintf("%d tools, %s", n, state)
	}
}

// troubles say what a person has to do something about, one line each.
func troubles(st mcp.Status) (out []string) {
	if st.Last == nil {
		return nil
	}
	if st.Last.Error != "" {
		out = append(out, fmt.Sprintf("failed %s: %s", st.Last.At.Local().Format(time.DateTime), short(term.Line(strings.Join(strings.Fields(st.Last.Error), " ")), 300)))
	}
	if n := len(st.Last.Held); n > 0 {
		out = append(out, fmt.Sprintf("held until you agree (`elfhost mcp agree %s` shows and accepts): %s", term.Line(st.Name), short(term.Line(strings.Join(st.Last.Held, ", ")), 200)))
	}
	return out
}

func mcpTestVerb(s streams) *cobra.Command {
	var f sessionFlags
	var asJSON, verbose bool
	c := &cobra.Command{
		Use: "test [NAME...]", Short: "Start servers and list their tools",
		RunE: func(c *cobra.Command, args []string) error {
			f.noInput = true
			a, err := f.session(c.Context(), s, app.Options{Heard: hearing(s, verbose)})
			if err != nil {
				return err
			}
			defer a.Close(context.WithoutCancel(c.Context()))
			if len(args) == 0 {
				for _, st := range a.MCP.Status() {
					args = append(args, st.Name)
				}
			}
			return testServers(c.Context(), s, a, args, asJSON)
		},
	}
	f.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&verbose, "verbose", false, "print what the servers log, and their standard error")
	return c
}

// maxHeard is how many lines of one server are printed.
const maxHeard = 200

// hearing prints what servers say: warnings and worse, or with verbose all.
func hearing(s streams, verbose bool) func(server, level, text string) {
	var mu sync.Mutex
	lines := map[string]int{}
	return func(server, level, text string) {
		if !verbose && slices.Contains([]string{"debug", "info", "notice", "stderr", "error"}, level) && (level != "error" || strings.HasPrefix(text, "starting ")) {
			return // an error of a start is the verb's own
		}
		mu.Lock()
		defer mu.Unlock()
		switch lines[server]++; {
		case lines[server] < maxHeard:
			fmt.Fprintf(s.err, "elfhost: %s, %s: %s\n", term.Line(server), term.Line(level), short(term.Line(text), 2000))
		case lines[server] == maxHeard:
			fmt.Fprintf(s.err, "elfhost: %s says more\n", term.Line(server))
		}
	}
}

func testServers(ctx context.Context, s streams, a *app.App, names []string, asJSON bool) error {
	errs := make(chan error, len(names))
	for _, n := range names {
		go func() { errs <- a.MCP.Connect(ctx, n) }()
	}
	var all []error
	for range names {
		all = append(all, <-errs)
	}
	failed := errors.Join(all...)
	status := slices.DeleteFunc(a.MCP.Status(), func(st mcp.Status) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, st.Name) })
	})
	if asJSON {
		if err := json.NewEncoder(s.out).Encode(status); err != nil {
			return err
		}
	} else {
		for _, st := range status {
			showServer(s, a, st)
		}
	}
	return fault.Wrap("E1310", "", failed)
}

func showServer(s streams, a *app.App, st mcp.Status) {
	fmt.Fprintf(s.out, "%s: %s", term.Line(st.Name), st.State)
	if st.Server != "" {
		fmt.Fprintf(s.out, ", %s, protocol %s", term.Line(st.Server), term.Line(st.Version))
	}
	fmt.Fprintln(s.out)
	for _, n := range st.Tools {
		sp, _ := a.Registry.Spec(n)
		fmt.Fprintf(s.out, "  %-40s %s\n", term.Line(n), short(term.Line(firstLine(sp.Description)), 80))
	}
	for _, n := range st.Held {
		fmt.Fprintf(s.out, "  %-40s held: `elfhost mcp agree %s` shows and accepts it\n", term.Line(n), term.Line(st.Name))
	}
	for _, fl := range st.Flagged {
		fmt.Fprintf(s.out, "  ! %s\n", term.Line(fl))
	}
	for _, r := range st.Refused {
		fmt.Fprintf(s.out, "  refused: %s\n", term.Line(r))
	}
}

// describeServer shows everything that would be started, and with what.
func describeServer(p config.ProjectServer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, named in %s\n", term.Line(p.Name), term.Line(p.File))
	if p.Command != "" {
		fmt.Fprintf(&b, "  starts  %s\n", term.Line(p.Command))
		for _, a := range p.Args {
			fmt.Fprintf(&b, "          %s\n", term.Line(a))
		}
		if p.Cwd != "" {
			fmt.Fprintf(&b, "  in      %s\n", term.Line(p.Cwd))
		}
	} else {
		fmt.Fprintf(&b, "  reaches %s\n", term.Line(p.URL))
	}
	for label, m := range map[string]map[string]string{"env": p.Env, "header": p.Headers, "header from": p.HeadersEnv} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(&b, "  %s %s = %s\n", label, term.Line(k), term.Line(m[k]))
		}
	}
	for _, k := range p.EnvFrom {
		fmt.Fprintf(&b, "  env from %s\n", term.Line(k))
	}
	if p.Command != "" {
		b.WriteString("  It runs as you, outside the sandbox, and can do what you can.\n")
	} else {
		b.WriteString("  It gets what its tools are called with, and the headers above.\n")
	}
	return b.String()
}
