// Package skills finds and reads skills, folders with a SKILL.md (the Agent
// Skills format), and has the tools list_skills and read_skill.
//
// Skills are read leniently: every one is either usable or has a reason of one
// line why not, and whatever had to be guessed is a warning. A skill is text.
// Nothing in it gives a right, and its allowed-tools can only take some away.
//
// A model is told in three steps, so that its context is not filled with what
// it does not need: names and descriptions, then one skill's instructions,
// then the files that these name.
package skills

import (
	"context"
	"embed"

	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

//go:embed tools/*.md tools/*.json
var texts embed.FS

// Source says whose skills a folder holds.
type Source string

// The sources, the first of which wins where names are equal: a project cannot
// put itself in the place of a person's own skill.
const (
	User      Source = "user"
	Installed Source = "installed" // from a hub
	Project   Source = "project"
)

// Folder is one place where skills lie. It need not exist.
type Folder struct {
	Dir    string // virtual path
	Source Source
	// Name, where it is not empty, says that Dir itself is one skill, and what
	// it is called.
	Name string
	// Digest is that of its SKILL.md, "sha256:…"; another text is not read. ""
	// takes any.
	Digest string
}

// Options say where skills are looked for.
type Options struct {
	Tree    *reach.Tree
	Folders []Folder // of one Source in the order in which they win
	// Packages are further folders, asked for at each look: those of installed
	// packages. It must be safe for concurrent use. Nil: none.
	Packages func() []Folder
	// Reader is the tool that reads files, for hints. "": Read.
	Reader string
	// Shell is the tool that runs scripts, for hints. "": Bash.
	Shell string
	// Narrow leaves the run that ctx belongs to no more than the patterns. It is
	// called when a model has read a skill with allowed-tools. Nil: these are
	// only told.
	Narrow func(ctx context.Context, patterns []policy.Pattern)
}

// Shelf is where skills are found. It keeps nothing: each method looks at the
// folders anew. It is safe for concurrent use.
type Shelf struct{ o Options }

// New makes a Shelf.
func New(o Options) *Shelf {
	if o.Reader == "" {
		o.Reader = "Read"
	}
	if o.Shell == "" {
		o.Shell = "Bash"
	}
	return &Shelf{o}
}

// Tools makes list_skills and read_skill.
func (s *Shelf) Tools() []host.Tool {
	list, read := tool.Spec(texts, "list_skills", host.KindRead), tool.Spec(texts, "read_skill", host.KindRead)
	list.Parallel, read.Parallel = true, true
	list.MaxOutput, read.MaxOutput = -1, -1 // both have budgets of their own
	return []host.Tool{&tool.Func{S: list, Run: s.list}, &tool.Func{S: read, Run: s.read}}
}

// Skill is one skill, usable unless Problem says why not.
type Skill struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Source      Source   `json:"source"`
	Dir         string   `json:"dir"`  // virtual path of its folder
	File        string   `json:"file"` // of its SKILL.md
	License     string   `json:"license,omitempty"`
	Needs       string   `json:"compatibility,omitempty"` // what it says about where it works
	Tools       []string `json:"allowedTools,omitempty"`
	Narrows     bool     `json:"narrows,omitempty"` // it says which tools it works with, be it none
	Manual      bool     `json:"manual,omitempty"`  // a person starts it, the model is not told of it
	Problem     string   `json:"problem,omitempty"`
	Shadowed    bool     `json:"shadowed,omitempty"` // another of the same name is used
	Warnings    []string `json:"warnings,omitempty"` // what was odd and how it was read
	Flags       []string `json:"flags,omitempty"`    // what a person should look at before the skill is used

	body string
	line int // of body in the file, from 1
}

// Usable reports whether a model may be told of the skill.
func (s Skill) Usable() bool { return s.Problem == "" && !s.Shadowed && !s.Manual }
