package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/files"
	"github.com/elfhost/elfhost/builtins/search"
	"github.com/elfhost/elfhost/builtins/shell"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/internal/queries"
)

// Tools measures the native tools against the programs that people would use
// instead: ripgrep, sed, cp, ctags and a bare shell. With names it measures
// these parts alone: read, edit, outline, shell, search. The last takes some
// minutes.
func Tools(ctx context.Context, w io.Writer, only ...string) error {
	for _, part := range []struct {
		name string
		run  func(context.Context, io.Writer) error
	}{{"read", reading}, {"edit", editing}, {"outline", outlines}, {"shell", commands}, {"search", searches}} {
		if len(only) > 0 && !slices.Contains(only, part.name) {
			continue
		}
		if err := part.run(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// desk is a folder with some native tools over it.
type desk struct {
	dir   string
	tree  *reach.Tree
	tools map[string]host.Tool
	err   error // the first one
}

func newDesk(dir string) (*desk, error) {
	tree, err := reach.NewTree(reach.Mount{Name: policy.Workspace, Dir: dir})
	if err != nil {
		return nil, err
	}
	d := &desk{dir: dir, tree: tree, tools: make(map[string]host.Tool)}
	d.add(files.Tools(files.Options{Tree: tree}))
	d.add(search.Tools(search.Options{Tree: tree}))
	return d, nil
}

func (d *desk) add(tools []host.Tool) {
	for _, t := range tools {
		d.tools[t.Spec().Name] = t
	}
}

// call runs a tool with every right to the folder.
func (d *desk) call(ctx context.Context, name string, args any) {
	raw, err := json.Marshal(args)
	if err != nil {
		d.fail(err)
		return
	}
	g, err := policy.New("bench", shell.Grant(), policy.Grant{Cap: abi.FSRead, Scope: []string{"/ws/**"}},
		policy.Grant{Cap: abi.FSWrite, Scope: []string{"/ws/**"}})
	d.fail(err)
	res, err := d.tools[name].Call(ctx, host.Call{ID: "bench", Tool: name, Args: raw, Rights: policy.Rights{Grants: g}})
	d.fail(err)
	if res.IsError {
		d.fail(fmt.Errorf("%s: %s", name, res.Text()))
	}
}

// run runs a program of the system in the folder. Exit code 1 is ripgrep's "nothing found".
func (d *desk) run(ctx context.Context, name string, args ...string) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = d.dir
	cmd.Stdout = new(bytes.Buffer)
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil
	}
	d.fail(err)
}

func (d *desk) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// searches compares the searches of internal/queries in both trees.
func searches(ctx context.Context, w io.Writer) error {
	if _, err := exec.LookPath("rg"); err != nil {
		for _, name := range []string{"grep", "glob"} {
			Skipped(w, name+".rg.median", "<=1.5", "ripgrep is not installed")
			Skipped(w, name+".rg.worst", "<=4", "ripgrep is not installed")
		}
		return nil
	}
	var greps, globs []trial
	told := func(t trial, what string) trial {
		fmt.Fprintf(w, "%8.2f  %s %s\n", t.ratio, what, t.what)
		return t
	}
	for _, v := range []string{"GOROOT", "GOMODCACHE"} {
		out, err := exec.CommandContext(ctx, "go", "env", v).Output()
		if err != nil {
			return err
		}
		d, err := newDesk(strings.TrimSpace(string(out)))
		if err != nil {
			return err
		}
		base := []string{"--no-config", "--no-require-git", "--no-messages"}
		for _, p := range queries.Patterns() {
			greps = append(greps, told(trial{d.settle(4,
				func() { d.call(ctx, "rg", map[string]any{"args": p}) },
				func() { d.run(ctx, "rg", append(append(slices.Clone(base), p...), ".")...) }), v + " " + strings.Join(p, " ")}, "grep"))
		}
		for _, g := range queries.Globs() {
			globs = append(globs, told(trial{d.settle(4,
				func() { d.call(ctx, "Glob", map[string]any{"pattern": g}) },
				func() { d.run(ctx, "rg", append(slices.Clone(base), "--hidden", "--files", "-g", g)...) }), v + " " + g}, "glob"))
		}
		d.tree.Close()
		if d.err != nil {
			return d.err
		}
	}
	ranking(w, "grep", greps)
	ranking(w, "glob", globs)
	return nil
}

// ranking prints what the trials come to.
func ranking(w io.Writer, name string, trials []trial) {
	slices.SortFunc(trials, func(a, b trial) int { return cmp.Compare(a.ratio, b.ratio) })
	Figure(w, name+".rg.median", trials[len(trials)/2].ratio, 1.5)
	Figure(w, name+".rg.worst", trials[len(trials)-1].ratio, 4)
}

// trial is one search, ours against theirs.
type trial struct {
	ratio float64
	what  string
}

func (d *desk) ratio(ours, theirs func()) float64 {
	ours() // both find the tree in the page cache
	t := Times(3, 1, ours, theirs)
	return float64(t[0]) / float64(t[1])
}

// settle measures once, and where that is over the goal as often as ratio does:
// a search of one second needs no median, one that was disturbed does.
func (d *desk) settle(goal float64, ours, theirs func()) float64 {
	ours()
	t := Times(1, 1, ours, theirs)
	if once := float64(t[0]) / float64(t[1]); once <= goal/2 {
		return once
	}
	return d.ratio(ours, theirs)
}

// reading reads line 4,000,000 of a file of 1 GB.
func reading(ctx context.Context, w io.Writer) error {
	d, done, err := scratch()
	if err != nil {
		return err
	}
	defer done()
	line := strings.Repeat("x", 244) + "\n"
	if err := fill(filepath.Join(d.dir, "large"), strings.Repeat(line, 4096), 1<<30); err != nil {
		return err
	}
	Figure(w, "read.sed", d.ratio(
		func() { d.call(ctx, "Read", map[string]any{"path": "large", "offset": 4_000_000, "limit": 1}) },
		func() { d.run(ctx, "sed", "-n", "4000000{p;q}", "large") }), 0.4)
	return d.err
}

// editing changes one line in the middle of a file of 50 MB.
func editing(ctx context.Context, w io.Writer) error {
	d, done, err := scratch()
	if err != nil {
		return err
	}
	defer done()
	var text strings.Builder
	for i := 0; text.Len() < 50<<20; i++ {
		fmt.Fprintf(&text, "line %d: some text that is as long as a line of code\n", i)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "f"), []byte(text.String()), 0o644); err != nil {
		return err
	}
	d.call(ctx, "Read", map[string]any{"path": "f", "offset": 1, "limit": 1})
	words := [2]string{"line 400000: some", "line 400000: other"}
	Figure(w, "edit.cp", d.ratio(
		func() {
			d.call(ctx, "Edit", map[string]any{"path": "f", "old_string": words[0], "new_string": words[1]})
			words[0], words[1] = words[1], words[0]
		},
		func() { d.run(ctx, "cp", "f", "copy") }), 3)
	return d.err
}

// commands runs nothing, in the sandbox and bare.
func commands(ctx context.Context, w io.Writer) error {
	d, done, err := scratch()
	if err != nil {
		return err
	}
	defer done()
	box := reach.ProbeSandbox(ctx)
	fmt.Fprintf(w, "kernel sandbox: %s\n", box.Kind)
	sh, err := shell.New(shell.Options{Tree: d.tree, Runner: &reach.Runner{Sandbox: box}, Logs: d.dir})
	if err != nil {
		return err
	}
	defer sh.Close()
	d.add(sh.Tools())
	t := Times(5, 10,
		func() { d.call(ctx, "Bash", map[string]any{"command": "true"}) },
		func() { d.run(ctx, "sh", "-c", "true") })
	Figure(w, "bash.sh", float64(t[0])/float64(t[1]), 10)
	return d.err
}

// scratch makes a desk over a folder that done removes.
func scratch() (d *desk, done func(), err error) {
	dir, err := os.MkdirTemp("", "elfhost-bench-")
	if err != nil {
		return nil, nil, err
	}
	if d, err = newDesk(dir); err != nil {
		os.RemoveAll(dir)
		return nil, nil, err
	}
	return d, func() { d.tree.Close(); os.RemoveAll(dir) }, nil
}

func fill(name, piece string, size int) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	for n := 0; n < size; n += len(piece) {
		if _, err := io.WriteString(f, piece); err != nil {
			f.Close()
			return err
		}
	}
	return f.Close()
}
