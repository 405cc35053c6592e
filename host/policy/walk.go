package policy

import (
	"errors"
	"fmt"
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
	piped bool      // standard input comes from another command
	sup   *supposed // on the second reading
	steps int
	err   error
}

// maxSteps bounds the statements that are looked at, those of loops more than once.
const maxSteps = 4000

// maxDirs bounds the folders that are followed at once.
const maxDirs = 8

func (w *walker) parse(src string) error {
	if w.depth >= maxDepth {
		return errors.New("the command is nested too deeply to be judged")
	}
	f, err := parseShell(src)
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
	w.keep(walk)
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
	if w.steps++; w.steps > maxSteps {
		w.err = errLong
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
	if w.sup != nil && t.dynamic {
		if v, known := w.single(r.Word); known {
			t = word{text: v}
		}
	}
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
			if w.sup != nil { // what the first round set is there in the next
				w.stmts(c.Do)
			}
		})
	case *syntax.ForClause:
		w.ask("it runs a loop over values that are known only when it runs")
		w.arithmetic(c.Loop)
		w.loop(func() { w.rounds(c) })
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
		from := len(w.cmd.Segments)
		w.apart(func() { w.stmt(c.X) })
		w.apart(func() {
			w.piped = true
			if w.sup != nil {
				w.sup.input = w.hands(c.X, w.cmd.Segments[from:])
			}
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
	w.apart(func() { w.afresh(func() { w.stmt(f.Body) }) })
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
