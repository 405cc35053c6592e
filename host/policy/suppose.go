package policy

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// supposed is what a second reading of a line takes for certain: the values that
// the line itself gives its variables, and what one command hands to the next.
// That reading says only why a line is refused or cannot be judged; rules go by
// the first, for which a variable is never known.
type supposed struct {
	values map[string]string
	input  handed // what the command that is being read finds on its standard input
}

// handed is what is known of the output of a command.
type handed struct {
	text   string
	known  bool
	system bool // not known, but names from a system folder are among it
}

// maxValue bounds a variable's value, for values are made of values.
const maxValue = 256

// home stands for the home folder, whoever's it is.
const home = "/home/~"

func suppose() *supposed {
	return &supposed{values: map[string]string{
		"HOME": home, "IFS": " \t\n", "TMPDIR": "/tmp",
		"?": "0", "#": "0", "$": "1", "!": "1", "PPID": "1", "UID": "0", "EUID": "0", "RANDOM": "1", "SECONDS": "1",
	}}
}

// suppose reads the line for the second time.
func (c *Command) suppose() {
	w := &walker{cmd: &Command{Source: c.Source}, sup: suppose()}
	if err := w.parse(c.Source); err != nil {
		w.cmd.Unclear = append(w.cmd.Unclear, errLong.Error())
	}
	if c.Critical == "" {
		c.Critical = w.cmd.Critical
	}
	c.Unclear = slices.Compact(w.cmd.Unclear)
}

var errLong = errors.New("the command does too much to be judged")

// unclear notes why the critical list cannot be applied.
func (w *walker) unclear(why string) {
	if w.sup != nil && len(w.cmd.Unclear) < maxSegments {
		w.cmd.Unclear = append(w.cmd.Unclear, why)
	}
}

// keep walks something after which no value holds that it gave.
func (w *walker) keep(walk func()) {
	if w.sup == nil {
		walk()
		return
	}
	before := supposed{maps.Clone(w.sup.values), w.sup.input}
	walk()
	*w.sup = before
}

// afresh walks code that runs later, when variables may have other values.
func (w *walker) afresh(walk func()) {
	w.keep(func() {
		if w.sup != nil {
			w.sup = &supposed{values: suppose().values}
		}
		walk()
	})
}

func (w *walker) set(name, value string, known bool) {
	switch {
	case w.sup == nil:
	case known && len(value) <= maxValue:
		w.sup.values[name] = value
	default:
		delete(w.sup.values, name)
	}
}

// positional sets $1, $2 and so on, and all of them.
func (w *walker) positional(words []word) {
	if w.sup == nil {
		return
	}
	known := !slices.ContainsFunc(words, func(x word) bool { return x.dynamic })
	for i := range 9 {
		if i < len(words) {
			w.set(string(rune('1'+i)), words[i].text, !words[i].dynamic)
		} else {
			w.set(string(rune('1'+i)), "", true)
		}
	}
	w.set("@", joinWords(words), known)
	w.set("*", joinWords(words), known)
}

func joinWords(words []word) string {
	texts := make([]string, len(words))
	for i, x := range words {
		texts[i] = x.text
	}
	return strings.Join(texts, " ")
}

// value is what a part of a word becomes.
func (w *walker) value(p syntax.WordPart) (string, bool) {
	switch p := p.(type) {
	case *syntax.ParamExp:
		return w.param(p)
	case *syntax.CmdSubst:
		if len(p.Stmts) == 1 {
			return w.said(p.Stmts[0])
		}
	}
	return "", false
}

func (w *walker) param(p *syntax.ParamExp) (string, bool) {
	if p.Param == nil || p.Excl || p.Length || p.Width || p.IsSet || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Names != 0 {
		return "", false
	}
	v, known := w.sup.values[p.Param.Value]
	if p.Param.Value == "PWD" && len(w.dirs) == 1 {
		v, known = path.Join(".", w.dirs[0]), true
		if path.IsAbs(w.dirs[0]) {
			v = w.dirs[0]
		}
	}
	if p.Exp == nil {
		return v, known
	}
	switch p.Exp.Op {
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return v, known
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if known && v != "" {
			return v, true
		}
		return w.single(p.Exp.Word)
	}
	return "", false
}

// single is a word that is not split, as in an assignment.
func (w *walker) single(x *syntax.Word) (string, bool) {
	if x == nil {
		return "", true
	}
	fields := w.fields(&syntax.Word{Parts: []syntax.WordPart{&syntax.DblQuoted{Parts: x.Parts}}}, x)
	v := fields[0].text
	if lit, ok := x.Parts[0].(*syntax.Lit); ok && (lit.Value == "~" || strings.HasPrefix(lit.Value, "~/")) {
		v = home + v[1:]
	}
	return v, !fields[0].dynamic
}

// said is what a simple command prints.
func (w *walker) said(s *syntax.Stmt) (string, bool) {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(s.Redirs) > 0 || len(c.Args) == 0 {
		return "", false
	}
	words := w.words(c.Args)
	if slices.ContainsFunc(words, func(x word) bool { return x.dynamic }) {
		return "", false
	}
	args := words[1:]
	switch name := program(words[0].text); {
	case name == "echo":
		for len(args) > 0 && len(args[0].text) > 1 && args[0].text[0] == '-' && strings.Trim(args[0].text[1:], "neE") == "" {
			args = args[1:]
		}
		text := joinWords(args)
		return text, !strings.Contains(text, `\`) // which some shells read without -e
	case name == "printf":
		return printed(args)
	case name == "pwd":
		return w.param(&syntax.ParamExp{Param: &syntax.Lit{Value: "PWD"}})
	case name == "mktemp":
		return "/tmp/made", true
	case (name == "which" || name == "command") && len(args) > 0:
		return args[len(args)-1].text, true
	}
	return w.found(words)
}

// printed is what printf prints, if the format is a plain one.
func printed(args []word) (string, bool) {
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return "", false
	}
	format, sep := args[0].text, ""
	if f, ok := strings.CutSuffix(format, `\n`); ok {
		format, sep = f, "\n"
	} else if f, ok := strings.CutSuffix(format, `\0`); ok {
		format, sep = f, "\n"
	}
	text := format
	if format == "%s" || format == "%b" {
		texts := make([]string, len(args)-1)
		for i, x := range args[1:] {
			texts[i] = x.text
		}
		text = strings.Join(texts, sep)
		return text, format == "%s" || !strings.Contains(text, `\`)
	}
	return text + sep, !strings.ContainsAny(text, `%\`)
}

// found is what a command that lists files prints: a name below the folder
// where it looks stands for all of them.
func (w *walker) found(words []word) (string, bool) {
	name := program(words[0].text)
	has := func(flags ...string) bool {
		return slices.ContainsFunc(words, func(x word) bool { return slices.Contains(flags, x.text) })
	}
	switch {
	case w.lists(words):
		return "/", true
	case len(w.dirs) == 0, has("-printf", "-fprintf", "-exec", "-execdir", "-ok", "-okdir"):
		return "", false
	case name == "find", name == "fd", name == "ls":
		return startPoints(words[1:], name == "find")[0].text + "/found", true
	case (name == "grep" || name == "rg") && has("-l", "-rl", "-lr", "-ril", "-rli", "--files", "--files-with-matches"), name == "git" && has("ls-files"):
		return "./found", true
	}
	return "", false
}

// lists reports a command that prints names from a system folder.
func (w *walker) lists(words []word) bool {
	name := program(words[0].text)
	if name != "ls" && name != "find" && name != "fd" && name != "du" {
		return false
	}
	starts := startPoints(words[1:], name == "find")
	return slices.ContainsFunc(starts, func(x word) bool { return wholeSystem(x, w.dirs) })
}

// startPoints are the folders that a listing begins with; without one it is
// the current folder.
func startPoints(args []word, find bool) (out []word) {
	for _, a := range args {
		first := a.text == "" || !strings.ContainsAny(a.text[:1], "-(!")
		switch {
		case first:
			out = append(out, a)
		case find && len(out) > 0:
			return out
		}
	}
	if len(out) == 0 || find && len(args) > 0 && strings.HasPrefix(args[0].text, "-") && !strings.Contains("-H-L-P-O0-O1-O2-O3", args[0].text) {
		return []word{{text: "."}}
	}
	return out
}

// fields evaluates a word into the words that the shell makes of it. written
// is the word in the source, where it is another.
func (w *walker) fields(x, written *syntax.Word) []word {
	f := &splitter{ifs: " \t\n"}
	if v, known := w.sup.values["IFS"]; known {
		f.ifs = v
	}
	f.begin()
	for i, p := range x.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			f.at().tilde = f.at().tilde || i == 0 && strings.HasPrefix(p.Value, "~")
			var b strings.Builder
			f.at().glob = unquote(&b, p.Value) || f.at().glob
			f.text(b.String())
		case *syntax.SglQuoted:
			v, ok := p.Value, true
			if p.Dollar {
				v, ok = ansiC(p.Value)
			}
			f.text(v)
			f.at().dynamic = f.at().dynamic || !ok
		case *syntax.DblQuoted:
			w.quotedFields(f, p)
		default:
			v, ok := w.value(p)
			f.split(v)
			f.at().dynamic = f.at().dynamic || !ok
		}
	}
	for i := range f.out {
		if f.out[i].dynamic {
			if f.out[i].text = w.source(written); f.out[i].text == "" {
				f.out[i].text = "$…"
			}
		}
	}
	return f.out
}

func (w *walker) quotedFields(f *splitter, q *syntax.DblQuoted) {
	for _, p := range q.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			var b strings.Builder
			quotedLit(&b, p.Value)
			f.text(b.String())
		case *syntax.SglQuoted: // of an assignment's word, which is not split
			v, ok := p.Value, true
			if p.Dollar {
				v, ok = ansiC(p.Value)
			}
			f.text(v)
			f.at().dynamic = f.at().dynamic || !ok
		case *syntax.DblQuoted:
			w.quotedFields(f, p)
		default:
			v, ok := w.value(p)
			if x, is := p.(*syntax.ParamExp); is && ok && x.Param != nil && x.Param.Value == "@" {
				f.split(v)
				continue
			}
			f.text(v)
			f.at().dynamic = f.at().dynamic || !ok
		}
	}
}

// splitter puts together the words that one word becomes.
type splitter struct {
	ifs string // what separates words
	out []word
}

func (f *splitter) begin()        { f.out = append(f.out, word{}) }
func (f *splitter) at() *word     { return &f.out[len(f.out)-1] }
func (f *splitter) text(s string) { f.at().text += s }

func (f *splitter) split(v string) {
	parts := strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune(f.ifs, r) })
	if v != "" && strings.TrimLeft(v, f.ifs) != v && f.at().text != "" {
		f.begin()
	}
	for i, s := range parts {
		if i > 0 {
			f.begin()
		}
		f.at().glob = f.at().glob || strings.ContainsAny(s, "*?[")
		f.text(s)
	}
	if len(parts) > 0 && strings.TrimRight(v, f.ifs) != v {
		f.begin()
	}
}
