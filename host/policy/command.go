package policy

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of what is parsed; a command over one of them is asked about unread.
const (
	maxCommand  = 32 << 10
	maxNesting  = 100
	maxSegments = 50
	maxDepth    = 12 // of commands inside the arguments of commands
)

// Command is a command line, taken apart. It is advice for questions and
// rules; what holds a program is the kernel's sandbox.
type Command struct {
	Source   string
	Segments []Segment // every simple command in it, nested ones after the one that holds them
	Critical string    // why it is refused whatever the rules say; usually ""
	Risks    []string  // what a person should know: "runs as another user"
	Ask      []string  // why rules for single commands cannot cover the whole
	// Unclear says why the critical list may have missed something: a program, or
	// what is to be deleted, is known only when the line runs.
	Unclear []string
}

// Segment is one simple command.
type Segment struct {
	Argv    []string // after quote removal; a word that is not known is shown as written
	Dynamic bool     // some word of Argv is known only when it runs
	Assign  []string // names set before the program
	Writes  []string // targets of redirections
	Via     string   // the program that runs it, if it is an argument of another: "xargs"

	dirs    []string // where it may run, relative to the start; "" is the start
	lost    bool     // a cd before it could not be followed
	system  bool     // it names a system folder; known on the second reading
	wraps   bool     // its arguments hold another command
	marks   []mark
	dyn     []bool // by word of Argv
	tilde   []bool
	allRead []string
}

// mark is why a rule that does not spell the marked word out cannot cover the
// segment. word is an index into Argv, or -1.
type mark struct {
	why  string
	word int
}

// String is the segment as one line.
func (g *Segment) String() string {
	out := make([]string, len(g.Argv))
	for i, a := range g.Argv {
		out[i] = a
		if i < len(g.dyn) && !g.dyn[i] && (a == "" || strings.ContainsAny(a, " \t\n'\"\\$`;|&<>()*?[]{}~#")) {
			out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

func (g *Segment) mark(word int, format string, args ...any) {
	g.marks = append(g.marks, mark{fmt.Sprintf(format, args...), word})
}

// ParseCommand takes a command line apart. An error means that nothing can be
// said about it, so that it has to be asked about; it is one clause.
func ParseCommand(src string) (*Command, error) {
	if err := preflight(src); err != nil {
		return nil, err
	}
	w := &walker{cmd: &Command{Source: src}}
	if err := w.parse(src); err != nil {
		return nil, err
	}
	c := w.cmd
	c.suppose()
	slices.Sort(c.Risks)
	c.Risks = slices.Compact(c.Risks)
	return c, nil
}

// preflight bounds what a recursive parser is given.
func preflight(src string) error {
	switch {
	case len(src) > maxCommand:
		return fmt.Errorf("the command is longer than %d KiB", maxCommand>>10)
	case strings.TrimSpace(src) == "":
		return errors.New("the command is empty")
	case !utf8.ValidString(src):
		return errors.New("the command is not valid UTF-8")
	case strings.ContainsRune(src, 0):
		return errors.New("the command contains a NUL byte")
	}
	depth, deepest, ticks := 0, 0, 0
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '(', '{', '[':
			depth++
			deepest = max(deepest, depth)
		case ')', '}', ']':
			depth = max(0, depth-1)
		case '`':
			ticks++
		}
	}
	words := 0
	for f := range strings.FieldsSeq(src) {
		switch strings.Trim(f, ";") {
		case "if", "while", "until", "for", "case", "select", "function", "do", "then", "else", "elif", "!", "time", "coproc", "-", "+", "~":
			words++
		}
	}
	if deepest > maxNesting || ticks > maxNesting || words > 4*maxNesting || evaluates(src) && operatorRun(src) > maxNesting {
		return errors.New("the command is nested too deeply to be judged")
	}
	return nil
}

// evaluates reports whether there may be arithmetic or a test in it.
func evaluates(src string) bool {
	return strings.Contains(src, "((") || strings.Contains(src, "$[") || strings.Contains(src, "[[") || strings.Contains(src, "let")
}

// operatorRun is the longest run of prefix operators, which parse by recursion.
func operatorRun(src string) int {
	best, run := 0, 0
	for i := 0; i < len(src); i++ {
		if strings.IndexByte("!-+~$ \t", src[i]) >= 0 {
			if src[i] != ' ' && src[i] != '\t' {
				run++
			}
			best = max(best, run)
		} else {
			run = 0
		}
	}
	return best
}

// stays reports a change of folder that needs no rule: Outside judges where it leads.
func (g *Segment) stays() bool {
	return len(g.Argv) == 2 && g.Argv[0] == "cd" && !g.Dynamic && len(g.marks) == 0 && g.Argv[1] != "-" && !strings.HasPrefix(g.Argv[1], "~")
}

// suggest proposes what could be remembered: the very command, then its first
// words, but never a whole interpreter or wrapper.
func (c *Command) suggest(tool string) []string {
	var out []string
	if exact := tool + "(" + strings.ReplaceAll(c.Source, "*", `\*`) + ")"; len(c.Source) < 500 {
		if p, err := ParsePattern(exact); err == nil && p.exactly(c) && !slices.ContainsFunc(p.words, func(w execWord) bool { return w.lit == "" && w.pat != "" }) {
			out = append(out, exact)
		}
	}
	var only *Segment
	for i := range c.Segments {
		if g := &c.Segments[i]; !g.stays() {
			if only != nil {
				return out
			}
			only = g
		}
	}
	if only == nil || only.Dynamic || len(only.marks) > 0 || len(c.Ask) > 0 || len(only.Argv) == 0 || wrappers[only.Argv[0]] != nil || interpreters[only.Argv[0]] {
		return out
	}
	words := only.Argv[:1]
	if len(only.Argv) > 1 && subcommands[only.Argv[0]] {
		if strings.HasPrefix(only.Argv[1], "-") {
			return out
		}
		words = only.Argv[:2]
	}
	for i, w := range words {
		words = slices.Clone(words)
		words[i] = quoteWord(w)
	}
	return append(out, tool+"("+strings.Join(words, " ")+":*)")
}

func program(arg string) string {
	return strings.TrimSuffix(path.Base(strings.ReplaceAll(arg, `\`, "/")), ".exe")
}

// parseShell parses as bash does. The parser is somebody else's and the text
// hostile: a panic in it is an error.
func parseShell(src string) (f *syntax.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("the parser failed: %v", p)
		}
	}()
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(src), "")
}
