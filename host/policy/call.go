package policy

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (w *walker) declare(c *syntax.DeclClause) {
	g := Segment{Argv: []string{c.Variant.Value}, dyn: []bool{false}, tilde: []bool{false}}
	refers := false // declare -n: the variable is another one
	for _, a := range c.Args {
		w.assign(&g, a)
		if a.Name != nil && refers {
			w.set(a.Name.Value, "", false)
		}
		if opt := w.source(a); a.Name == nil && strings.HasPrefix(opt, "-") {
			refers = refers || strings.Contains(opt, "n")
		}
		g.Argv, g.dyn, g.tilde = append(g.Argv, w.source(a)), append(g.dyn, true), append(g.tilde, false)
	}
	g.mark(-1, "it sets variables for what follows")
	w.add(g)
}

// quietVars may be set before a program without a question: they change how it
// looks or is built, not what it runs.
var quietVars = map[string]bool{
	"LANG": true, "LANGUAGE": true, "TZ": true, "NO_COLOR": true, "FORCE_COLOR": true, "CLICOLOR": true, "CLICOLOR_FORCE": true,
	"COLUMNS": true, "LINES": true, "CI": true, "GOOS": true, "GOARCH": true, "CGO_ENABLED": true, "RUST_BACKTRACE": true,
	"NODE_ENV": true, "DEBIAN_FRONTEND": true, "PYTHONUNBUFFERED": true, "PYTHONDONTWRITEBYTECODE": true,
}

func (w *walker) assign(g *Segment, a *syntax.Assign) {
	w.nested(a)
	if a.Name == nil {
		return
	}
	name := a.Name.Value
	g.Assign = append(g.Assign, name)
	if w.sup != nil {
		v, known := w.single(a.Value)
		if a.Append {
			v = w.sup.values[name] + v
		}
		w.set(name, v, known && a.Array == nil && a.Index == nil)
	}
	if !quietVars[name] && !strings.HasPrefix(name, "LC_") {
		g.mark(-1, "it sets the variable %s", name)
	}
}

func (w *walker) environment(list []*syntax.Assign) {
	if w.sup == nil {
		return
	}
	for _, a := range list {
		if a.Name == nil || a.Array != nil || a.Index != nil {
			continue
		}
		if _, known := w.sup.values[a.Name.Value]; !known {
			v, ok := w.single(a.Value)
			w.set(a.Name.Value, v, ok)
		}
	}
}

// restore gives back what variables had before assignments that hold for one
// command only.
func (w *walker) restore(list []*syntax.Assign) func() {
	if w.sup == nil || len(list) == 0 {
		return func() {}
	}
	before := maps.Clone(w.sup.values)
	return func() {
		for _, a := range list {
			if a.Name != nil {
				v, known := before[a.Name.Value]
				w.set(a.Name.Value, v, known)
			}
		}
	}
}

// add appends a segment; false ends the walk.
func (w *walker) add(g Segment) bool {
	if len(w.cmd.Segments) >= maxSegments {
		w.err = fmt.Errorf("it holds more than %d commands", maxSegments)
	}
	if w.err != nil {
		return false
	}
	g.Via = w.via
	g.dirs, g.lost = w.dirs, len(w.dirs) == 0
	w.cmd.Segments = append(w.cmd.Segments, g)
	return true
}

// call takes a simple command; g holds what its redirections gave.
func (w *walker) call(g Segment, c *syntax.CallExpr, redirs []*syntax.Redirect) {
	for _, x := range c.Args {
		w.nested(x)
	}
	var words []word
	if len(c.Args) > 0 {
		// Its words do not see the assignments. But a variable that nothing gave a
		// value before may be one of the environment that a tool was asked to set.
		defer w.restore(c.Assigns)()
		w.environment(c.Assigns)
		words = w.words(c.Args)
	}
	for _, a := range c.Assigns {
		w.assign(&g, a)
	}
	switch {
	case len(c.Args) > 0:
		w.argv(g, words, redirs)
	case len(c.Assigns) > 0 && len(g.marks) == 0:
		g.mark(-1, "it sets variables for what follows")
		fallthrough
	default:
		w.add(g)
	}
}

// argv judges a simple command by its words, then the command that it runs.
func (w *walker) argv(g Segment, words []word, redirs []*syntax.Redirect) {
	for _, x := range words {
		g.Argv = append(g.Argv, x.text)
		g.dyn = append(g.dyn, x.dynamic)
		g.tilde = append(g.tilde, x.tilde)
		g.Dynamic = g.Dynamic || x.dynamic
	}
	g.Dynamic = g.Dynamic || anyProgram(words[0])
	if g.Dynamic {
		g.mark(-1, "a word of %s is known only when it runs", quoteClip(g.String()))
	}
	w.judge(&g, words)
	if w.sup != nil {
		g.system = w.lists(words) || slices.ContainsFunc(words[1:], func(x word) bool { return wholeSystem(x, w.dirs) })
		w.lookOut(words)
	}
	at := len(w.cmd.Segments)
	if w.add(g) {
		w.moves(words)
		w.sets(words)
		w.runs(at, words, redirs)
	}
}

// moves follows cd, as far as it can be followed.
func (w *walker) moves(words []word) {
	switch words[0].text {
	case "cd", "pushd":
	case "popd":
		w.dirs = nil
		return
	default:
		return
	}
	args := words[1:]
	for len(args) > 0 && (args[0].text == "--" || args[0].text == "-P" || args[0].text == "-L") {
		args = args[1:]
	}
	if w.sup != nil && (len(args) == 0 || len(args) == 1 && args[0].tilde && args[0].text == "~") {
		w.dirs = []string{home}
		return
	}
	if len(args) != 1 || args[0].dynamic || args[0].glob || args[0].tilde || strings.HasPrefix(args[0].text, "-") || strings.HasPrefix(args[0].text, "+") {
		w.dirs = nil
		return
	}
	dirs := make([]string, 0, len(w.dirs))
	for _, d := range w.dirs {
		if to := args[0].text; path.IsAbs(to) {
			d = path.Clean(to)
		} else {
			d = path.Join(d, to)
		}
		if !slices.Contains(dirs, d) {
			dirs = append(dirs, d)
		}
	}
	w.dirs = dirs
}
