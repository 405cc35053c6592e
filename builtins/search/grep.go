package search

import (
	"context"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
)

// resultLines is how many lines Grep and search show unless asked.
const resultLines = 250

// grepArgs are the parameters of Grep.
type grepArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Include    string `json:"include"`
	Mode       string `json:"mode"` // content, files, count
	IgnoreCase bool   `json:"ignore_case"`
	Fixed      bool   `json:"fixed_strings"`
	Word       bool   `json:"word"`
	Invert     bool   `json:"invert"`
	Multiline  bool   `json:"multiline"`
	Type       string `json:"type"`
	Context    int    `json:"context"`
	MaxResults int    `json:"max_results"`
	NoIgnore   bool   `json:"no_ignore"`
}

func (r *room) grep(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[grepArgs](c)
	if err != nil {
		return abi.Result{}, err
	}
	q := &query{
		pattern: pattern{exprs: []string{a.Pattern}, fixed: a.Fixed, ignoreCase: a.IgnoreCase, word: a.Word, multiline: a.Multiline, dotAll: a.Multiline},
		filter:  filter{globs: some(a.Include), types: some(a.Type), hidden: true, noIgnore: a.NoIgnore},
		invert:  a.Invert, before: a.Context, after: a.Context,
	}
	switch a.Mode {
	case "files":
		q.mode = showFiles
	case "count":
		q.mode = showCounts
	}
	return r.answer(ctx, c, q, a.Path, "", a.MaxResults)
}

// searchArgs are the parameters of search.
type searchArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	IgnoreCase bool   `json:"ignoreCase"`
	Fixed      bool   `json:"fixedStrings"`
	Type       string `json:"type"`
	Glob       string `json:"glob"`
	Context    int    `json:"context"`
	MaxResults int    `json:"maxResults"`
	ListFiles  bool   `json:"listFiles"`
	Invert     bool   `json:"invertMatch"`
	Word       bool   `json:"wordMatch"`
	Cwd        string `json:"cwd"`
}

func (r *room) search(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[searchArgs](c)
	if err != nil {
		return abi.Result{}, err
	}
	q := &query{
		pattern: pattern{exprs: []string{a.Pattern}, fixed: a.Fixed, ignoreCase: a.IgnoreCase, word: a.Word},
		filter:  filter{globs: some(a.Glob), types: some(a.Type), hidden: true},
		invert:  a.Invert, before: a.Context, after: a.Context,
	}
	if a.ListFiles {
		q.mode = showFiles
	}
	return r.answer(ctx, c, q, a.Path, a.Cwd, a.MaxResults)
}

func some(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// answer runs a query below one path and shows what it found.
func (r *room) answer(ctx context.Context, c host.Call, q *query, p, cwd string, limit int) (abi.Result, error) {
	name, base, err := r.folder(p, cwd)
	if err != nil {
		return failure(ctx, p, err)
	}
	if limit <= 0 {
		limit = resultLines
	}
	q.keep = limit
	found, err := q.run(ctx, r, c.Rights, name, []string{name})
	if err != nil {
		return failure(ctx, p, err)
	}
	l := layout{heading: true, names: true, numbers: true, limit: limit,
		display: func(n string) string { return r.tree.Display(base, n) }}
	return found.respond(q, l, nil), nil
}
