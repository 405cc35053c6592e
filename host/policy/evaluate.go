package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

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
