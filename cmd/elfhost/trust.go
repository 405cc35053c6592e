package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/builtins/agents"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
	"github.com/elfhost/elfhost/internal/trust"
)

type trustFlags struct {
	list, revoke, asJSON bool
	accept               string
}

func trustVerb(s streams) *cobra.Command {
	var f trustFlags
	c := &cobra.Command{
		Use: "trust [DIR]", Short: "See what a project's files would start or widen, and allow it",
		Long: `A project's files can start programs (MCP servers in .elfhost/config.toml or
.mcp.json, lines of slash commands, servers of agent definitions). Nothing of that
has any effect before you have seen it and trust the folder. Your yes holds for
exactly these files: when one of them changes, you are asked again.`,
		Example: `  elfhost trust                           show, and ask
  elfhost trust --accept sha256:…         for scripts: exactly what was shown
  elfhost trust --revoke DIR`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := userConfig()
			if err != nil {
				return err
			}
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			switch {
			case f.list:
				return f.listTrust(s, p)
			case f.revoke:
				return revokeTrust(s, p, dir)
			}
			return f.give(c.Context(), s, p, dir)
		},
	}
	fl := c.Flags()
	fl.BoolVar(&f.list, "list", false, "list the folders that you trust")
	fl.BoolVar(&f.revoke, "revoke", false, "take the trust back")
	fl.BoolVar(&f.asJSON, "json", false, "with --list: print JSON")
	fl.StringVar(&f.accept, "accept", "", "trust the files with this digest, without a question")
	c.MarkFlagsMutuallyExclusive("list", "revoke", "accept")
	return c
}

// give shows what there is, and asks.
func (f *trustFlags) give(ctx context.Context, s streams, p config.Paths, dir string) error {
	root, err := app.Workspace(dir)
	if err != nil {
		return err
	}
	st, found, err := trust.Check(p, root)
	switch {
	case err != nil:
		return fault.Wrap("E1207", "", err)
	case st == trust.Nothing:
		_, err := fmt.Fprintln(s.out, "There is nothing to trust: no file of this folder starts or widens anything.")
		return err
	case st == trust.Trusted:
		_, err := fmt.Fprintln(s.out, "This folder is trusted as it is.")
		return err
	}
	fmt.Fprint(s.err, describeTrust(p, found, st))
	switch {
	case f.accept == found.Digest:
	case f.accept != "":
		return fault.New("E1207", "look at it again: the digest is "+found.Digest, "--accept names other files than these")
	case !term.IsTerminal(s.in):
		return fault.New("E1201", "a script accepts exactly this with --accept "+found.Digest, "the folder is not trusted")
	default:
		if err := askFolder(ctx, s, found); err != nil {
			return err
		}
	}
	if err := trust.Give(p, found); err != nil {
		return fault.Wrap("E1501", "`elfhost doctor` checks the folders", err)
	}
	fmt.Fprintf(s.out, "Trusted: %s\nTake it back with: elfhost trust --revoke %s\n", term.Line(found.Dir), term.Line(found.Dir))
	if servers, err := config.ProjectServers(found.Dir, found.File); err == nil && len(servers) > 0 {
		fmt.Fprintln(s.out, "Its MCP servers' first lists of tools count as agreed to; elfhost mcp test shows them, and what is odd about them.")
	}
	return nil
}

func askFolder(ctx context.Context, s streams, found trust.Survey) error {
	args, err := json.Marshal(map[string]string{"dir": found.Dir, "digest": found.Digest})
	if err != nil {
		return err
	}
	ask := term.Prompt{In: s.in, Out: s.err, Style: term.StyleOf(s.err, os.Getenv)}
	answer, err := ask.Approve(ctx, host.Ask{
		Call: host.Call{Tool: "trust", Args: args}, Spec: host.Spec{Name: "trust", Origin: host.Origin{Source: host.Builtin}},
		Why: "you asked for it", Risks: []string{"what the files above start runs outside the sandbox, as you"}, Final: true,
	})
	if err == nil && !answer.Allow {
		err = fault.New("E1202", "", "the folder is not trusted")
	}
	return err
}

// describeTrust shows the files, what changed, and what they would start.
func describeTrust(p config.Paths, found trust.Survey, st trust.Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", term.Line(found.Dir))
	if st == trust.Changed {
		if r, err := trust.Load(p, found.Dir); err == nil {
			fmt.Fprintf(&b, "It was trusted on %s. Since then (+ new, - gone, ~ changed):\n", r.Given.Format("2006-01-02"))
			for _, d := range r.Difference(found) {
				fmt.Fprintf(&b, "  %s\n", term.Line(d))
			}
		}
	}
	// All that is shown is of the survey: the files may be others by now.
	servers, err := config.ProjectServers(found.Dir, found.File)
	if err != nil {
		fmt.Fprintf(&b, "The MCP servers cannot be read: %s\n", term.Line(err.Error()))
	}
	for _, x := range servers {
		b.WriteString(describeServer(x))
	}
	for _, i := range found.Items {
		fmt.Fprintf(&b, "%s  %s\n", short(strings.TrimPrefix(i.Digest, "sha256:"), 12), term.Line(i.Path))
		content, ok := found.File(i.Path)
		if !ok {
			continue
		}
		for _, line := range starts(content, i.Path) {
			fmt.Fprintf(&b, "    would run: %s\n", term.Line(line))
		}
		if i.Path != config.ProjectDir+"/config.toml" {
			continue
		}
		sets, err := config.ProjectWidens(content, i.Path)
		if err != nil {
			fmt.Fprintf(&b, "    cannot be read: %s\n", term.Line(err.Error()))
		}
		for _, line := range sets {
			fmt.Fprintf(&b, "    would set: %s\n", term.Line(line))
		}
	}
	fmt.Fprintf(&b, "digest of all  %s\n", found.Digest)
	return b.String()
}

// shellLine is what slash commands run before their text is sent.
var shellLine = regexp.MustCompile("!`([^`\n]+)`")

// starts are the command lines in one Markdown file of a project.
func starts(b []byte, name string) (out []string) {
	if path.Ext(name) != ".md" {
		return nil
	}
	if strings.HasPrefix(name, config.ProjectDir+"/agents/") {
		for _, x := range agents.ParseDefinition(b, path.Base(name), false).Direct {
			out = append(out, declares(x))
		}
		return out
	}
	for _, m := range shellLine.FindAllSubmatch(b, -1) {
		out = append(out, string(m[1]))
	}
	return out
}

// declares shows a server of an agent definition: everything that decides what
// is started, as words that end where they end.
func declares(x agents.Server) string {
	line := "mcp " + x.Name + ":"
	for _, k := range slices.Sorted(maps.Keys(x.Env)) {
		line += " " + k + "=" + strconv.Quote(x.Env[k])
	}
	for _, word := range append([]string{x.Command}, x.Args...) {
		if word == "" || strings.ContainsAny(word, " \t\"'\\") {
			word = strconv.Quote(word)
		}
		line += " " + word
	}
	if x.Cwd != "" {
		line += " in " + strconv.Quote(x.Cwd)
	}
	return line
}

func (f *trustFlags) listTrust(s streams, p config.Paths) error {
	all, err := trust.List(p)
	if f.asJSON {
		if all == nil {
			all = []trust.Record{}
		}
		return errors.Join(json.NewEncoder(s.out).Encode(all), err)
	}
	for _, r := range all {
		st, _, err := trust.Check(p, r.Dir)
		state := string(st)
		if err != nil {
			state = "cannot be read"
		} else if _, err := os.Stat(r.Dir); errors.Is(err, fs.ErrNotExist) {
			state = "gone"
		}
		if _, err := fmt.Fprintf(s.out, "%-15s %s  %s\n", state, r.Given.Format("2006-01-02"), term.Line(r.Dir)); err != nil {
			return err
		}
	}
	return fault.Wrap("E1002", "delete the record; the folder is then asked about again", err)
}

func revokeTrust(s streams, p config.Paths, dir string) error {
	was, err := trust.Revoke(p, dir)
	switch {
	case err != nil:
		return fault.Wrap("E1501", "`elfhost doctor` checks the folders", err)
	case !was:
		_, err = fmt.Fprintln(s.out, "It was not trusted.")
	default:
		_, err = fmt.Fprintln(s.out, "It is not trusted any more.")
	}
	return err
}
