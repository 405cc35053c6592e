package search

import (
	"context"
	"fmt"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
)

// rgLines is how many lines rg shows at the most.
const rgLines = 2000

type rgArgs struct {
	Args []string `json:"args"`
	Cwd  string   `json:"cwd"`
}

// rg answers like ripgrep does when its output is a pipe.
func (r *room) rg(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[rgArgs](c)
	if err != nil {
		return abi.Result{}, err
	}
	cmd, err := parseRG(a.Args)
	if err != nil {
		return abi.Errorf("%s", sentence(err.Error())), nil
	}
	if cmd.typeList {
		return abi.Text(strings.TrimSpace(strings.ReplaceAll(typesText, ":", ": "))), nil
	}
	_, base, err := r.folder("", a.Cwd)
	if err != nil {
		return failure(ctx, a.Cwd, err)
	}
	paths := cmd.paths
	if len(paths) == 0 {
		paths = []string{"."}
	}
	var targets []string
	single := len(paths) == 1
	for _, p := range paths {
		name, err := r.tree.Virtual(base, p)
		if err != nil {
			return failure(ctx, p, err)
		}
		info, err := r.tree.Stat(ctx, c.Rights, name)
		if err != nil {
			return failure(ctx, p, err)
		}
		single = single && !info.IsDir()
		targets = append(targets, name)
	}
	cmd.keep = rgLines
	found, err := cmd.run(ctx, r, c.Rights, base, targets)
	if err != nil {
		return failure(ctx, strings.Join(paths, " "), err)
	}
	return cmd.answer(found, single, func(n string) string { return r.tree.Display(base, n) })
}

func (c *rgCommand) answer(found *answer, single bool, display func(string) string) (abi.Result, error) {
	if len(found.files) == 0 {
		return abi.Text("No matches." + found.remarks(&c.query)), nil
	}
	if c.quiet {
		return abi.Text("There are matches."), nil
	}
	l := c.layout
	l.limit, l.display, l.names = rgLines, display, !single
	if c.names != nil {
		l.names = *c.names
	}
	l.heading = c.heads != nil && *c.heads && l.names
	var text string
	var cut bool
	if c.mode == showLines {
		m, err := compile(c.pattern)
		if err != nil {
			return abi.Result{}, err
		}
		text, cut = found.render(l, m)
	} else {
		text, cut = found.list(l, c.mode)
	}
	text = strings.TrimSuffix(text, "\n")
	if cut {
		text += fmt.Sprintf("\n(Only the first %d lines are shown; %s in %s match.)", rgLines, plural(found.lines, "line"), plural(len(found.files), "file"))
	}
	return abi.Text(text + strings.TrimLeft(found.remarks(&c.query), " ")), nil
}
