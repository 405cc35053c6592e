package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// lookOut notes what the critical list cannot see in a command: a program that
// is not known, or a program that deletes and does not say what.
func (w *walker) lookOut(words []word) {
	if (words[0].dynamic || anyProgram(words[0])) && !plainProgram(words[0].text) {
		w.unclear(fmt.Sprintf("the program %s is known only when it runs", quoteClip(words[0].text)))
		return
	}
	name := program(words[0].text)
	args := words[1:]
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = a.text
	}
	dynamic := func(x word) bool { return x.dynamic }
	unknown := slices.ContainsFunc(args, dynamic)
	upward := slices.ContainsFunc(args, w.upward)
	switch name {
	case "rm":
		// Without quotes an unknown word may hold options, too.
		bare := slices.ContainsFunc(args, func(x word) bool { return x.dynamic && !strings.HasPrefix(x.text, `"`) })
		recursive := hasFlag(texts, "rR", "--recursive")
		if lost := len(w.dirs) == 0 && slices.ContainsFunc(args, sweeping); bare || recursive && (unknown || lost || upward) {
			w.unclear("what it deletes is known only when it runs")
		}
	case "find":
		if findDeletes(texts) && slices.ContainsFunc(startPoints(args, true), func(x word) bool { return x.dynamic || len(w.dirs) == 0 && sweeping(x) || w.upward(x) }) {
			w.unclear("what it deletes is known only when it runs")
		}
	case "chmod", "chown", "chgrp":
		whose := slices.DeleteFunc(slices.Clone(args), func(x word) bool { return strings.HasPrefix(x.text, "-") })
		if hasFlag(texts, "R", "--recursive") && (upward || len(whose) > 1 && slices.ContainsFunc(whose[1:], dynamic)) {
			w.unclear("whose permissions it changes is known only when it runs")
		}
	case "dd":
		if slices.ContainsFunc(args, func(x word) bool { return x.dynamic && strings.Contains(x.text, "of=") }) {
			w.unclear("what it writes to is known only when it runs")
		}
	}
}

// anyProgram reports a program whose name is a pattern of file names.
func anyProgram(w word) bool { return w.glob && w.text != "[" }

// plainProgram reports a program of which only the folder is not known, when
// it is neither one that the critical list knows nor one that runs others.
func plainProgram(written string) bool {
	inner, ok := strings.CutPrefix(written, `"$`)
	inner, closed := strings.CutSuffix(inner, `"`)
	at := strings.LastIndexByte(inner, '/')
	if !ok || !closed || at < 0 || strings.Trim(inner[at+1:], "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return false
	}
	name := inner[at+1:]
	return name != "" && wrappers[name] == nil && !shells[name] && critical([]word{{text: name}, {text: "-rR"}, {text: "/"}, {text: "/"}, {text: "-delete"}}, nil) == "" &&
		!slices.Contains([]string{"eval", "su", "script", "dd", "cmd"}, name)
}

// upward reports a word that means a folder above the one where the line
// starts, or all that is in one: which folder that is cannot be seen here.
func (w *walker) upward(x word) bool {
	if x.dynamic || x.tilde || strings.HasPrefix(x.text, "-") || path.IsAbs(x.text) {
		return false
	}
	return slices.ContainsFunc(w.dirs, func(d string) bool {
		p := path.Join(d, x.text)
		return strings.HasPrefix(p, "..") && strings.Trim(p, "./*?[]!") == ""
	})
}

// sweeping reports a word that means all of the current folder.
func sweeping(w word) bool {
	return !strings.HasPrefix(w.text, "-") && strings.Trim(w.text, "./*?[]!") == ""
}

// rounds walks the body of a for loop: once, and on the second reading once
// for each value that the line spells out.
func (w *walker) rounds(c *syntax.ForClause) {
	items, ok := c.Loop.(*syntax.WordIter)
	if w.sup == nil || !ok || items.Name == nil {
		w.stmts(c.Do)
		return
	}
	values := w.words(items.Items)
	for _, v := range values[:min(len(values), maxRounds)] {
		w.set(items.Name.Value, v.text, !v.dynamic)
		w.stmts(c.Do)
	}
	if len(values) == 0 || len(values) > maxRounds {
		w.set(items.Name.Value, "", false)
		w.stmts(c.Do)
	}
}

// maxRounds bounds the values of a loop that are followed.
const maxRounds = 8

// sets follows builtins that give variables values.
func (w *walker) sets(words []word) {
	if w.sup == nil {
		return
	}
	args := words[1:]
	switch words[0].text {
	case "read", "mapfile", "readarray", "getopts", "unset", "printf":
		if words[0].text == "printf" && (len(args) == 0 || args[0].text != "-v") {
			return
		}
		for _, a := range args {
			w.set(a.text, "/", words[0].text == "read" && w.sup.input.system)
		}
	case "set":
		if i := slices.IndexFunc(args, func(x word) bool { return x.text == "--" }); i >= 0 {
			w.positional(args[i+1:])
		}
	case "shift":
		for _, name := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "@", "*"} {
			w.set(name, "", false)
		}
	case "source", ".":
		w.sup.values = suppose().values
	}
}

// hands says what the left side of a pipe, which made the segments, prints.
func (w *walker) hands(x *syntax.Stmt, segments []Segment) handed {
	if slices.ContainsFunc(segments, func(g Segment) bool { return g.system }) {
		return handed{system: true}
	}
	if text, ok := w.said(x); ok && len(text) <= maxCommand {
		return handed{text: text, known: true}
	}
	if b, ok := x.Cmd.(*syntax.BinaryCmd); ok && b.Op == syntax.Pipe && w.filters(b.Y) {
		return w.hands(b.X, segments)
	}
	return handed{}
}

// finds is what find hands to the commands that it runs.
func (w *walker) finds(words []word) handed {
	starts := startPoints(words[1:], true)
	switch {
	case w.lists(words):
		return handed{system: true}
	case len(w.dirs) == 0, slices.ContainsFunc(starts, func(x word) bool { return x.dynamic }):
		return handed{}
	}
	return handed{text: starts[0].text + "/found", known: true}
}

// filters reports a command that lets lines through or not, unchanged.
func (w *walker) filters(s *syntax.Stmt) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	return ok && len(s.Redirs) == 0 && len(c.Args) > 0 && slices.Contains([]string{"grep", "egrep", "fgrep", "head", "tail", "sort", "uniq", "tac"}, c.Args[0].Lit())
}

// handedTo puts what xargs and find hand over into a command, as far as it is
// known; a system folder stands for what may be one.
func (w *walker) handedTo(words []word) []word {
	if w.sup == nil {
		return words
	}
	in := w.sup.input
	var more []word
	switch {
	case in.known:
		for _, s := range strings.Fields(in.text) {
			more = append(more, word{text: s})
		}
	case in.system:
		more = []word{{text: "/"}}
		if slices.ContainsFunc(words, func(x word) bool { return program(x.text) == "rm" }) {
			more = []word{{text: "-r"}, {text: "/"}}
		}
	default:
		more = []word{{text: "$…", dynamic: true}}
	}
	out := make([]word, 0, len(words)+len(more))
	for _, x := range words {
		if x.text == "{}" || x.text == "%" {
			out = append(out, more...)
			continue
		}
		out = append(out, x)
	}
	return append(out, more...)
}
