package policy

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
)

// Workspace is the virtual path of the workspace; relative path rules begin there.
const Workspace = "/ws"

// Pattern names calls of tools:
//
//	mcp__github__*           any call of these tools
//	Bash(git status:*)       a command that begins with these words ("git status *" is the same)
//	Bash(make test)          this very command
//	Write(docs/**)           a path, relative to the workspace or virtual
//	WebFetch(https://x/**)   a URL, as in a net.http scope without methods
//
// In a command pattern "\*" is a star.
type Pattern struct {
	text string
	tool string // may hold '*'
	arg  string
	has  bool // has an argument

	words []execWord // of a command
	open  bool       // more arguments may follow
	path  *pathScope
	url   *netScope
}

// isShell names the tools whose argument is a command line.
func isShell(tool string) bool { return tool == "Bash" || tool == "Shell" }

// ParsePattern reads a tool rule.
func ParsePattern(text string) (Pattern, error) {
	text = strings.TrimSpace(text)
	p := Pattern{text: text, tool: text}
	if len(text) > maxScope || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		return Pattern{}, errors.New("a tool rule has at most 4 KiB and no control characters")
	}
	if i := strings.IndexByte(text, '('); i >= 0 {
		if !strings.HasSuffix(text, ")") {
			return Pattern{}, fmt.Errorf("tool rule %q lacks its closing parenthesis", text)
		}
		p.tool, p.arg, p.has = text[:i], text[i+1:len(text)-1], true
	}
	if p.tool == "" || !isToolName(strings.ReplaceAll(p.tool, "*", "")) && p.tool != "*" {
		return Pattern{}, fmt.Errorf("tool rule %q does not begin with a tool's name", text)
	}
	if !p.has {
		return p, nil
	}
	if p.arg == "" {
		return Pattern{}, fmt.Errorf("tool rule %q has an empty argument; leave the parentheses out", text)
	}
	if err := p.parseArg(); err != nil {
		return Pattern{}, fmt.Errorf("tool rule %q: %w", text, err)
	}
	return p, nil
}

func (p *Pattern) parseArg() (err error) {
	switch {
	case isShell(p.tool):
		arg, open := strings.CutSuffix(p.arg, ":*")
		if p.words, err = splitWords(arg); err != nil {
			// Not words, but it may still be one very command.
			p.words = nil
			return nil
		}
		if n := len(p.words); !open && n > 0 && p.words[n-1].any {
			p.words, open = p.words[:n-1], true
		}
		p.open = open
	case strings.HasPrefix(p.arg, "http://"), strings.HasPrefix(p.arg, "https://"), strings.HasPrefix(p.arg, "domain:"):
		s, err := parseNetScope(strings.TrimPrefix(p.arg, "domain:"), true)
		if err != nil {
			return err
		}
		n, ok := s.(*netScope)
		if !ok || n.public || n.methods != nil {
			return errors.New("a URL rule names a URL")
		}
		p.url = n
	default:
		arg := p.arg
		if !strings.HasPrefix(arg, "/") {
			arg = Workspace + "/" + strings.TrimPrefix(arg, "./")
		}
		s, err := parsePathScope(arg)
		if err != nil {
			return err
		}
		p.path = s.(*pathScope)
	}
	return nil
}

// String is the text that ParsePattern read.
func (p Pattern) String() string { return p.text }

// Names reports whether the pattern is about calls of a tool, some or all.
func (p Pattern) Names(tool string) bool { return p.matchTool(tool) }

func (p Pattern) matchTool(tool string) bool {
	if !strings.Contains(p.tool, "*") {
		return p.tool == tool
	}
	ok, _ := path.Match(p.tool, tool)
	return ok
}

// matchArg judges a subject that is no command. deny widens where in doubt.
func (p Pattern) matchArg(subject string, deny bool) bool {
	switch {
	case !p.has:
		return true
	case p.url != nil:
		u, err := parseUse(Use{Cap: "net.http", Verb: "GET", Target: subject})
		if err != nil {
			return deny
		}
		if p.url.touches(u) {
			// A URL rule without a port means the scheme's own, unless it denies.
			return deny || (p.url.port != "" || u.req.port == defaultPort(u.req.scheme)) && (p.url.path == nil || !u.req.odd)
		}
		return false
	case p.path != nil:
		if strings.ContainsRune(subject, 0) {
			return deny
		}
		if !strings.HasPrefix(subject, "/") {
			subject = Workspace + "/" + subject
		}
		segs := splitPath(path.Clean(subject))
		return p.path.match(segs) || deny && slices.ContainsFunc(p.path.alts, func(a []string) bool { return matchSegs(foldAll(a), foldAll(segs), false) })
	}
	return false
}

// matchWords judges one simple command. Allowing needs every word to be known.
func (p Pattern) matchWords(argv []string) bool {
	if len(p.words) == 0 || len(argv) < len(p.words) || len(argv) > len(p.words) && !p.open {
		return false
	}
	for i, w := range p.words {
		if w.any {
			continue
		}
		if !w.match(argv[i]) {
			return false
		}
	}
	return true
}

// matchDenied is matchWords for a rule that denies or asks: the program's
// folder does not count, nor what follows.
func (p Pattern) matchDenied(argv []string) bool {
	if len(p.words) == 0 || len(argv) < len(p.words) {
		return false
	}
	for i, w := range p.words {
		if !(w.any || w.match(argv[i]) || i == 0 && w.match(program(argv[0]))) {
			return false
		}
	}
	return p.open || len(argv) == len(p.words)
}
