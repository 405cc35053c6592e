package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/builtins/internal/frontmatter"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

// Commands are the slash commands of a session: Markdown files in folders. A
// file a/b.md is the command "a:b". It is safe for concurrent use; its fields
// do not change after the first use.
type Commands struct {
	// Folders are looked through in order; of two commands with one name the
	// earlier is meant. The person's own come first: no project can put its own
	// in their place.
	Folders []Folder
	// Tree is the workspace, for @file.
	Tree *reach.Tree
	// Registry runs the shell lines of a command, through the gate: the registry
	// of the run that ctx belongs to. Nil: commands with such lines fail.
	Registry func(ctx context.Context) *host.Registry
	// Narrow is told what a command that is about to be carried out may use,
	// until the run ends. Nil: allowed-tools has no effect.
	Narrow func(ctx context.Context, patterns []policy.Pattern)
	// Others are commands that lie in no file, such as the prompts of MCP
	// servers; those of files win. Nil: there are none.
	Others func() []Command
}

// Folder is a place where commands lie.
type Folder struct {
	Source string // "user", "project": for people
	Tree   *reach.Tree
	Dir    string // virtual
	// Rights to read it; nil: those of the call.
	Rights *policy.Rights
	// Trusted tells of a file, by its virtual path, whether it may take effect
	// with this very content. It is asked for each time a folder is used, and
	// answers nil where nothing may. Nil: everything may.
	Trusted func() func(file string, content []byte) bool
}

// Command is what a listing shows. Nothing of it is safe for a terminal.
type Command struct {
	Name        string // "review", "git:commit"
	Description string
	Hint        string // of its arguments
	Source      string // of its folder
	Path        string
	Model       string
	Tools       []string // allowed-tools; nil: not narrowed
	Warnings    []string

	// Fill makes the prompt of a command that lies in no file.
	Fill func(ctx context.Context, words []string) (string, error)

	narrowed bool
	body     string
}

// Limits of folders.
const (
	maxCommands = 500
	maxNesting  = 4
)

// ErrNoCommand is the error of a name that no command has.
var ErrNoCommand = errors.New("there is no such command")

// List names the commands, by name. Those in folders that nobody trusts are
// not among them. r are the rights to read the folders that bring none.
func (c *Commands) List(ctx context.Context, r policy.Rights) (out []Command) {
	for _, f := range c.Folders {
		trusted := f.trusted()
		if trusted == nil {
			continue
		}
		for _, name := range f.names(ctx, f.rights(r), f.Dir, 0) {
			if slices.ContainsFunc(out, func(have Command) bool { return have.Name == name }) || len(out) >= maxCommands {
				continue
			}
			if cmd, err := f.read(ctx, r, name, trusted); err == nil {
				out = append(out, cmd)
			}
		}
	}
	for _, cmd := range c.others() {
		if !slices.ContainsFunc(out, func(have Command) bool { return have.Name == cmd.Name }) && len(out) < maxCommands {
			out = append(out, cmd)
		}
	}
	slices.SortFunc(out, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (c *Commands) others() []Command {
	if c.Others == nil {
		return nil
	}
	return c.Others()
}

// find reads the command of a name.
func (c *Commands) find(ctx context.Context, r policy.Rights, name string) (Command, error) {
	if !validName(name) {
		return Command{}, fmt.Errorf("%w: %.100q is not a command's name", ErrNoCommand, name)
	}
	distrusted := false
	for _, f := range c.Folders {
		cmd, err := f.read(ctx, r, name, f.trusted())
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, errDistrusted):
			distrusted = true
		case err != nil:
			return Command{}, fmt.Errorf("reading the command %q: %w", name, err)
		default:
			return cmd, nil
		}
	}
	for _, cmd := range c.others() {
		if cmd.Name == name {
			return cmd, nil
		}
	}
	if distrusted {
		return Command{}, fmt.Errorf("%w: this folder has a command %q, but nobody trusts this folder; a person can look at it, and trust it, with `elfhost trust`", ErrNoCommand, name)
	}
	return Command{}, ErrNoCommand
}

// validName: parts of letters, digits, '-', '_' and '.', between colons. It
// can name no file outside of its folder.
func validName(name string) bool {
	if len(name) > 128 {
		return false
	}
	for part := range strings.SplitSeq(name, ":") {
		if part == "" || part[0] == '.' {
			return false
		}
		for i := range len(part) {
			if c := part[i]; !word(c) && c != '-' && c != '.' && c < 0x80 {
				return false
			}
		}
	}
	return strings.Count(name, ":") <= maxNesting
}

func (f Folder) file(name string) string {
	return path.Join(f.Dir, strings.ReplaceAll(name, ":", "/")+".md")
}

func (f Folder) rights(r policy.Rights) policy.Rights {
	if f.Rights != nil {
		return *f.Rights
	}
	return r
}

// names lists a folder; one that is not there has none.
func (f Folder) names(ctx context.Context, r policy.Rights, dir string, depth int) (out []string) {
	entries, err := f.Tree.ReadDir(ctx, r, dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		full := path.Join(dir, e.Name())
		base, isCommand := strings.CutSuffix(e.Name(), ".md")
		switch {
		case len(out) >= maxCommands:
			return out
		case e.IsDir() && depth < maxNesting:
			out = append(out, f.names(ctx, r, full, depth+1)...)
		case isCommand && !e.IsDir() && base != "":
			name := strings.ReplaceAll(strings.TrimPrefix(strings.TrimSuffix(full, ".md"), f.Dir+"/"), "/", ":")
			if validName(name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// errDistrusted is the error of a file that nobody trusts as it is.
var errDistrusted = errors.New("nobody trusts this folder")

// trusted is nil where nothing of the folder may take effect.
func (f Folder) trusted() func(file string, content []byte) bool {
	if f.Trusted == nil {
		return func(string, []byte) bool { return true }
	}
	return f.Trusted()
}

// read reads a command. It is the content that was read that has to be trusted:
// the file may be another one by now.
func (f Folder) read(ctx context.Context, r policy.Rights, name string, trusted func(string, []byte) bool) (Command, error) {
	file := f.file(name)
	b, err := f.Tree.ReadFile(ctx, f.rights(r), file, frontmatter.MaxFile)
	if trusted == nil && !errors.Is(err, fs.ErrNotExist) {
		return Command{}, errDistrusted
	}
	if err != nil {
		return Command{}, err
	}
	if !trusted(file, b) {
		return Command{}, errDistrusted
	}
	d, err := frontmatter.Parse(b)
	if err != nil {
		return Command{}, err
	}
	cmd := Command{Name: name, Source: f.Source, Path: f.Tree.Display("", file), body: d.Body, Warnings: d.Warnings}
	note := func(err error) {
		if err != nil {
			cmd.Warnings = append(cmd.Warnings, err.Error())
		}
	}
	cmd.Description, err = d.Fields.Text("description")
	note(err)
	cmd.Hint, err = d.Fields.Text("argument-hint")
	note(err)
	cmd.Model, err = d.Fields.Text("model")
	note(err)
	var warnings []string
	cmd.Tools, cmd.narrowed, warnings = d.Fields.Tools("allowed-tools")
	cmd.Warnings = append(cmd.Warnings, warnings...)
	if cmd.Description == "" {
		cmd.Description = opening(d.Body)
	}
	return cmd, nil
}

// opening is the first line of a body, for commands that describe themselves
// no further.
func opening(body string) string {
	for line := range strings.Lines(body) {
		if line = strings.TrimSpace(strings.TrimLeft(line, "#")); line != "" {
			return clip(line, 120)
		}
	}
	return ""
}

// clip cuts a line at a rune boundary.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-3], "") + "…"
}

// TakesArguments reports whether the command has a place for arguments.
func (cmd Command) TakesArguments() bool { return usesAny(parse(cmd.body)) }

// Allowed are the patterns of allowed-tools: nil and false when the command
// does not narrow.
func (cmd Command) Allowed() (out []policy.Pattern, narrowed bool) {
	return frontmatter.Patterns(cmd.Tools), cmd.narrowed
}

// covers reports whether allowed-tools leave the command a shell line of its
// own. Arguments stand for any word: what they hold is asked about with the call.
func (cmd Command) covers(shell, line string) bool {
	patterns, narrowed := cmd.Allowed()
	if !narrowed {
		return true
	}
	var rules []policy.Rule
	for _, p := range patterns {
		rules = append(rules, policy.Rule{Pattern: p, Effect: policy.Only, Layer: "allowed-tools"})
	}
	return len(rules) > 0 && policy.Judge(rules, shell, policy.Subject{Text: fill(line, "argument", []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"})}).Effect != policy.Deny
}
