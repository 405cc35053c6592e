package app

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/policy"
)

// instructions are the files that say how to work, the first that exists of a
// folder: of the person's configuration (the first name only), of the project,
// and, once an agent works there, of the folders in it. They are data for the
// model: nothing in them changes what is asked or allowed, so that they need no
// trust. Those above the workspace are nobody's who works in it, and not read.
var instructions = []string{"AGENTS.md", "CLAUDE.md"}

// maxInstruction bounds one such file, in bytes; maxNested one of a folder in
// the project, of which only a part may be told.
const (
	maxInstruction = 64 << 10
	maxNested      = 1 << 20
)

// maxNear bounds how many folders are looked into after the calls of one answer.
const maxNear = 100

// others are folders of what other projects have written.
var others = []string{"node_modules", "vendor", "site-packages", ".git"}

// readsInstructions are the rights with which instructions are read: what the
// workspace holds and the policy leaves.
func (a *App) readsInstructions() (policy.Rights, error) {
	read, err := policy.New("instructions", policy.Grant{Cap: abi.FSRead, Scope: []string{policy.Workspace + "/**"}})
	if err != nil {
		return policy.Rights{}, err
	}
	return policy.Rights{Grants: read.Meet(a.Policy.Ceiling())}, nil
}

// projectInstructions are those of the workspace's own folder.
func (a *App) projectInstructions(ctx context.Context, rights policy.Rights) []agent.Instruction {
	own := filepath.Join(a.Paths.Config, instructions[0])
	var out []agent.Instruction
	switch b, err := readSmall(own, maxInstruction); {
	case err == nil:
		out = append(out, agent.Instruction{Path: own, Text: string(b)})
	case !errors.Is(err, fs.ErrNotExist):
		a.note("your own instructions are left out: %v", err)
	}
	for _, name := range instructions {
		b, err := a.Tree.ReadFile(ctx, rights, policy.Workspace+"/"+name, maxInstruction)
		switch {
		case err == nil:
			return append(out, agent.Instruction{Path: name, Text: string(b)})
		case !errors.Is(err, fs.ErrNotExist):
			a.note("the project's instructions are left out: %v", err)
		}
	}
	return out
}

// learn gives the instructions of the folders in the project that calls of the
// builtin tools worked in. window is the model's, 0: not known.
func (a *App) learn(window int64) func(context.Context, *agent.Session, []model.Call) []abi.Content {
	return func(ctx context.Context, s *agent.Session, calls []model.Call) []abi.Content {
		return a.near(ctx, s, window, a.worked(calls))
	}
}

// worked are the files that calls were about, by their virtual paths.
func (a *App) worked(calls []model.Call) (files []string) {
	for _, c := range calls {
		spec, ok := a.all.Spec(c.Name)
		if !ok || spec.Origin.Source != host.Builtin {
			continue
		}
		switch spec.Kind {
		case host.KindRead, host.KindSearch, host.KindEdit:
		default:
			continue
		}
		var args struct{ Path, Cwd string }
		if json.Unmarshal([]byte(c.Args), &args) != nil || args.Path == "" {
			continue
		}
		cwd, err := a.Tree.Virtual("", args.Cwd)
		if err != nil {
			continue
		}
		if name, err := a.Tree.Virtual(cwd, args.Path); err == nil {
			files = append(files, name)
		}
	}
	return files
}

// near is what the model is to be told of the folders between the workspace
// and these files.
func (a *App) near(ctx context.Context, s *agent.Session, window int64, files []string) []abi.Content {
	folders := between(files)
	if len(folders) == 0 {
		return nil
	}
	rights, err := a.readsInstructions()
	if err != nil {
		return nil
	}
	known := s.Instructed()
	var found []agent.Instruction
	for _, dir := range folders {
		for _, name := range instructions {
			full := dir + "/" + name
			show := a.Tree.Display("", full)
			if known[show] || slices.Contains(files, full) {
				break
			}
			b, err := a.Tree.ReadFile(ctx, rights, full, maxNested)
			if err == nil && strings.TrimSpace(string(b)) != "" {
				found = append(found, agent.Instruction{Path: show, Text: string(b)})
			}
			if err == nil {
				break
			}
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, abi.ErrDenied) && ctx.Err() == nil {
				a.note("the instructions of a folder are left out: %v", err)
			}
		}
	}
	return s.Instruct(window, found)
}

// between are the folders below the workspace that hold the files, outermost
// first, without those of other projects.
func between(files []string) (folders []string) {
	for _, file := range files {
		rest, ok := strings.CutPrefix(path.Dir(file), policy.Workspace+"/")
		if !ok {
			continue
		}
		dir := policy.Workspace
		for part := range strings.SplitSeq(rest, "/") {
			if dir += "/" + part; slices.Contains(others, part) || len(folders) == maxNear {
				break
			}
			if !slices.Contains(folders, dir) {
				folders = append(folders, dir)
			}
		}
	}
	slices.SortStableFunc(folders, func(x, y string) int { return strings.Count(x, "/") - strings.Count(y, "/") })
	return folders
}
