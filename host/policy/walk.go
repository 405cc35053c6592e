package policy

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// walker finds the simple commands of a parsed line.
type walker struct {
	cmd   *Command
	src   string   // of what is being parsed: the line, or an argument of sh -c
	dirs  []string // where the next command may run; empty: not known
	via   string
	depth int
	piped bool // standard input comes from another command
	err   error
}

// maxDirs bounds the folders that are followed at once.
const maxDirs = 8

func (w *walker) parse(src string) error {
	if w.depth >= maxDepth {
		return errors.New("the command is nested too deeply to be judged")
	}
	f, err := newParser().Parse(strings.NewReader(src), "")
	if err != nil {
		return fmt.Errorf("the command could not be parsed: %w", err)
	}
	if w.depth == 0 {
		w.dirs = []string{""}
	}
	w.depth++
	outer := w.src
	w.src = src
	w.stmts(f.Stmts)
	w.src = outer
	w.depth--
	return w.err
}

func (w *walker) ask(why string) {
	if !slices.Contains(w.cmd.Ask, why) {
		w.cmd.Ask = append(w.cmd.Ask, why)
	}
}

func (w *walker) risk(what string) { w.cmd.Risks = append(w.cmd.Risks, what) }

func (w *walker) critical(why string) {
	if w.cmd.Critical == "" {
		w.cmd.Critical = why
	}
}

// branch walks something after which its folder may or may not hold.
func (w *walker) branch(walk func()) {
	before := w.dirs
	walk()
	w.dirs = unite(before, w.dirs)
}

// apart walks a subshell: its folder is forgotten.
func (w *walker) apart(walk func()) {
	before, piped := w.dirs, w.piped
	walk()
	w.dirs, w.piped = before, piped
}

func unite(a, b []string) []string {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	out := slices.Clone(a)
	for _, d := range b {
		if !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	if len(out) > maxDirs {
		return nil
	}
	return out
}

func (w *walker) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		if s.Background {
			w.apart(func() { w.stmt(s) })
			continue
		}
		w.branch(func() { w.stmt(s) })
	}
}

func (w *walker) stmt(s *syntax.Stmt) {
	if s == nil || w.err != nil {
		return
	}
	var g Segment
	for _, r := range s.Redirs {
		w.redirect(&g, r)
	}
	if call, ok := s.Cmd.(*syntax.CallExpr); ok {
		w.call(g, call, s.Redirs)
		return
	}
	if len(g.marks) > 0 {
		w.add(g)
	}
	w.command(s.Cmd)
}

func (w *walker) redirect(g *Segment, r *syntax.Redirect) {
	w.nested(r.Word)
	if r.Hdoc != nil {
		w.nested(r.Hdoc)
	}
	t := w.word(r.Word)
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return
	case syntax.RdrIn:
		if t.dynamic {
			g.mark(-1, "it reads a file that is known only when it runs")
		} else {
			g.allRead = append(g.allRead, t.text)
		}
		return
	case syntax.DplIn, syntax.DplOut:
		if !t.dynamic && (t.text == "-" || strings.Trim(t.text, "0123456789-") == "") {
			return
		}
	}
	if !t.dynamic && harmless(t.text) && t.text != "/dev/tty" {
		return
	}
	if !t.dynamic && isDevice(t.text) {
		w.critical("it writes to the device " + t.text)
	}
	g.Writes = append(g.Writes, t.text)
	g.mark(-1, "it writes to %s", quoteClip(t.text))
}

func (w *walker) command(c syntax.Command) {
	switch c := c.(type) {
	case nil:
	case *syntax.CallExpr:
		w.call(Segment{}, c, nil)
	case *syntax.BinaryCmd:
		w.binary(c)
	case *syntax.Block:
		w.stmts(c.Stmts)
	case *syntax.Subshell:
		w.apart(func() { w.stmts(c.Stmts) })
	case *syntax.IfClause:
		for x := c; x != nil; x = x.Else {
			w.branch(func() {
				w.stmts(x.Cond)
				w.stmts(x.Then)
			})
		}
	case *syntax.WhileClause:
		w.loop(func() {
			w.stmts(c.Cond)
			w.stmts(c.Do)
		})
	case *syntax.ForClause:
		w.ask("it runs a loop over values that are known only when it runs")
		w.arithmetic(c.Loop)
		w.loop(func() { w.stmts(c.Do) })
	case *syntax.CaseClause:
		w.nested(c.Word)
		for _, i := range c.Items {
			for _, p := range i.Patterns {
				w.nested(p)
			}
			w.branch(func() { w.stmts(i.Stmts) })
		}
	case *syntax.FuncDecl:
		w.function(c)
	case *syntax.TestClause:
		w.nested(c)
		w.test(c.X)
	case *syntax.ArithmCmd, *syntax.LetClause:
		w.arithmetic(c)
	case *syntax.DeclClause:
		w.declare(c)
	case *syntax.TimeClause:
		w.stmt(c.Stmt)
	case *syntax.CoprocClause:
		w.ask("it starts a coprocess")
		w.apart(func() { w.stmt(c.Stmt) })
	default:
		w.ask("it holds a construct that is not judged")
		w.nested(c)
	}
}

// loop is branch for a body that runs any number of times: a change of folder
// in it adds up.
func (w *walker) loop(body func()) {
	before := w.dirs
	body()
	if !slices.Equal(before, w.dirs) {
		w.dirs = nil
	}
}

func (w *walker) binary(c *syntax.BinaryCmd) {
	switch c.Op {
	case syntax.AndStmt:
		// That the left side may fail is seen to by stmts, which keeps the
		// folder before the whole list as well.
		w.stmt(c.X)
		w.branch(func() { w.stmt(c.Y) })
	case syntax.OrStmt:
		before := w.dirs
		w.stmt(c.X)
		after := w.dirs
		w.dirs = before
		w.stmt(c.Y)
		w.dirs = unite(after, w.dirs)
	default: // pipes: each side is a subshell
		w.apart(func() { w.stmt(c.X) })
		w.apart(func() {
			w.piped = true
			w.stmt(c.Y)
		})
	}
}

// function walks the body as if it ran, because it may.
func (w *walker) function(f *syntax.FuncDecl) {
	name := ""
	if f.Name != nil {
		name = f.Name.Value
	}
	w.ask(fmt.Sprintf("it defines the function %s, which may stand for any command", quoteClip(name)))
	if name != "" && callsItself(f.Body, name) {
		w.critical("it is a fork bomb: the function " + name + " starts itself in the background or in a pipe")
	}
	w.apart(func() { w.stmt(f.Body) })
}

func callsItself(body syntax.Node, name string) (bomb bool) {
	calls := func(n syntax.Node) (found bool) {
		syntax.Walk(n, func(n syntax.Node) bool {
			if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 && c.Args[0].Lit() == name {
				found = true
			}
			return !found
		})
		return found
	}
	syntax.Walk(body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			bomb = bomb || n.Background && calls(n)
		case *syntax.BinaryCmd:
			bomb = bomb || (n.Op == syntax.Pipe || n.Op == syntax.PipeAll) && calls(n.X) && calls(n.Y)
		}
		return !bomb
	})
	return bomb
}

// nested finds commands in substitutions below n, and what the shell would
// evaluate as code.
func (w *walker) nested(n syntax.Node) {
	switch x := n.(type) {
	case nil:
		return
	case *syntax.Word:
		if x == nil {
			return
		}
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			w.apart(func() {
				w.piped = false
				w.stmts(n.Stmts)
			})
			return false
		case *syntax.ProcSubst:
			w.apart(func() {
				w.piped = false
				w.stmts(n.Stmts)
			})
			return false
		case *syntax.ArithmExp:
			w.plainArithm(n)
		case *syntax.ParamExp:
			if n.Excl || n.Index != nil || n.Slice != nil || n.Exp != nil && n.Exp.Op == syntax.OtherParamOps {
				w.ask("an expansion may evaluate a variable as code")
			}
		}
		return true
	})
}

// arithmetic walks (( )), let and for (( )).
func (w *walker) arithmetic(n syntax.Node) {
	w.nested(n)
	w.plainArithm(n)
}

// plainArithm asks unless there are only numbers: the shell evaluates the text
// of variables and subscripts, commands in them included.
func (w *walker) plainArithm(n syntax.Node) {
	if _, ok := n.(*syntax.WordIter); ok {
		return
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		x, ok := n.(*syntax.Word)
		if !ok {
			return true
		}
		if lit := x.Lit(); lit == "" || strings.Trim(lit, "0123456789") != "" {
			w.ask("arithmetic may evaluate a variable as code")
		}
		return false
	})
}

func (w *walker) test(x syntax.TestExpr) {
	if x == nil {
		return
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.UnaryTest:
			if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
				w.ask("a test of a variable may evaluate its subscript as code")
			}
		case *syntax.BinaryTest:
			switch n.Op {
			case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
				w.plainArithm(n)
			}
		}
		return true
	})
}

func (w *walker) declare(c *syntax.DeclClause) {
	g := Segment{Argv: []string{c.Variant.Value}, dyn: []bool{false}, tilde: []bool{false}}
	for _, a := range c.Args {
		w.assign(&g, a)
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
	if !quietVars[name] && !strings.HasPrefix(name, "LC_") {
		g.mark(-1, "it sets the variable %s", name)
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
	for _, a := range c.Assigns {
		w.assign(&g, a)
	}
	for _, x := range c.Args {
		w.nested(x)
	}
	switch {
	case len(c.Args) > 0:
		w.argv(g, w.words(c.Args), redirs)
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
	g.Dynamic = g.Dynamic || words[0].glob
	if g.Dynamic {
		g.mark(-1, "a word of %s is known only when it runs", quoteClip(g.String()))
	}
	w.judge(&g, words)
	at := len(w.cmd.Segments)
	if w.add(g) {
		w.moves(words)
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
