package control

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// part is a piece of a command's body. Parts are found before anything is
// filled in, so that nothing in an argument is ever taken for a directive.
type part struct {
	kind partKind
	text string // literal text; the template of a path or of a shell command
	n    int    // of an argument
}

type partKind int

const (
	literal   partKind = iota
	all                // $ARGUMENTS
	argument           // $n
	mention            // @path: text is the path, with placeholders
	shellLine          // !`command`: text is the command as it stands in the file
)

// parse splits a body. In fenced blocks and in code spans nothing is run and
// no file is read; placeholders are filled in there too, so that a command can
// show them in a listing.
func parse(body string) []part {
	p := &parser{}
	var fence string
	for line := range strings.Lines(body) {
		mark := fenceOf(line)
		switch {
		case fence == "" && mark != "":
			fence = mark
			p.placeholders(line)
		case fence != "":
			if closes(line, fence) {
				fence = ""
			}
			p.placeholders(line)
		default:
			p.line(line)
		}
	}
	return p.parts
}

// fenceOf is the run of marks that opens a fenced block (CommonMark 4.5), or "".
func fenceOf(line string) string {
	s := strings.TrimLeft(line, " ")
	if len(line)-len(s) > 3 || s == "" || s[0] != '`' && s[0] != '~' {
		return ""
	}
	n := len(s) - len(strings.TrimLeft(s, s[:1]))
	if n < 3 || s[0] == '`' && strings.Contains(s[n:], "`") {
		return ""
	}
	return s[:n]
}

func closes(line, fence string) bool {
	s := strings.TrimSpace(line)
	return len(s) >= len(fence) && strings.Trim(s, fence[:1]) == "" && len(line)-len(strings.TrimLeft(line, " ")) <= 3
}

type parser struct{ parts []part }

func (p *parser) add(k partKind, text string, n int) {
	if k == literal && text == "" {
		return
	}
	if last := len(p.parts) - 1; k == literal && last >= 0 && p.parts[last].kind == literal {
		p.parts[last].text += text
		return
	}
	p.parts = append(p.parts, part{k, text, n})
}

// line takes a line outside of fenced blocks.
func (p *parser) line(s string) {
	from, free := 0, true // free: a directive may begin here
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case free && c == '!' && strings.HasPrefix(s[i+1:], "`"):
			end := strings.IndexByte(s[i+2:], '`')
			if end <= 0 {
				i++
				continue
			}
			p.placeholders(s[from:i])
			p.add(shellLine, s[i+2:i+2+end], 0)
			i += 2 + end + 1
			from, free = i, false
			continue
		case c == '`':
			i += span(s[i:])
			free = false
			continue
		case free && c == '@':
			if path := pathAt(s[i+1:]); path != "" {
				p.placeholders(s[from:i])
				p.add(mention, path, 0)
				i += 1 + len(path)
				from, free = i, false
				continue
			}
		}
		free = strings.IndexByte(" \t\n([{<\"'", s[i]) >= 0
		_, n := utf8.DecodeRuneInString(s[i:])
		i += n
	}
	p.placeholders(s[from:])
}

// span is the length of the code span that s begins with, or of its opening
// marks where it is none.
func span(s string) int {
	n := len(s) - len(strings.TrimLeft(s, "`"))
	marks := s[:n]
	for at := n; ; {
		i := strings.Index(s[at:], marks)
		if i < 0 {
			return n
		}
		at += i
		run := len(s[at:]) - len(strings.TrimLeft(s[at:], "`"))
		if run == n {
			return at + n
		}
		at += run
	}
}

// maxNamed bounds what is looked for in one text.
const maxNamed = 100

// quotedPath is a mention of a name with spaces: @"my notes.txt".
var quotedPath = regexp.MustCompile(`(?:^|[\s([{<])@"([^"\n]{1,1000})"`)

// Mentions are the files that a person's words name with @, as in a command's
// body: each once, those outside of code only, where an @ means something else.
func Mentions(text string) (out []string) {
	add := func(name string) {
		if !slices.Contains(out, name) && len(out) < maxNamed {
			out = append(out, name)
		}
	}
	for _, p := range parse(text) {
		if p.kind == mention {
			add(p.text)
		}
	}
	for _, m := range quotedPath.FindAllStringSubmatch(text, maxNamed) {
		add(m[1])
	}
	return out
}

// pathAt is the path of a mention: up to white space, without what ends a
// sentence or closes a bracket. "@@" and a lone "@" are none.
func pathAt(s string) string {
	end := strings.IndexAny(s, " \t\n\"'`<>|,;()[]{}")
	if end < 0 {
		end = len(s)
	}
	path := strings.TrimRight(s[:end], ".,:!?")
	if strings.HasPrefix(path, "@") {
		return ""
	}
	return path
}

// placeholders adds a text with its $ARGUMENTS and $n.
func (p *parser) placeholders(s string) {
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 {
			p.add(literal, s, 0)
			return
		}
		kind, n, size := placeholder(s[i:])
		if size == 0 {
			p.add(literal, s[:i+1], 0)
			s = s[i+1:]
			continue
		}
		p.add(literal, s[:i], 0)
		p.add(kind, "", n)
		s = s[i+size:]
	}
}

const argumentsWord = "$ARGUMENTS"

// placeholder reads one at the start of s; size 0: there is none, and the
// dollar stands for itself. $1 to $99 are arguments.
func placeholder(s string) (k partKind, n, size int) {
	if rest, ok := strings.CutPrefix(s, argumentsWord); ok {
		if rest != "" && word(rest[0]) {
			return literal, 0, 0
		}
		return all, 0, len(argumentsWord)
	}
	for size = 1; size < len(s) && size < 3 && s[size] >= '0' && s[size] <= '9'; size++ {
		n = n*10 + int(s[size]-'0')
	}
	if n == 0 || s[1] == '0' {
		return literal, 0, 0
	}
	return argument, n, size
}

func word(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// uses reports whether a text has placeholders.
func uses(text string) bool {
	for i := range len(text) {
		if text[i] == '$' {
			if _, _, size := placeholder(text[i:]); size > 0 {
				return true
			}
		}
	}
	return false
}

// fill writes a text with its arguments.
func fill(text, args string, words []string) string {
	p := &parser{}
	p.placeholders(text)
	var b strings.Builder
	for _, x := range p.parts {
		b.WriteString(x.fill(args, words))
	}
	return b.String()
}

// fill is a literal, or the argument it stands for; one that is missing is empty.
func (x part) fill(args string, words []string) string {
	switch {
	case x.kind == all:
		return args
	case x.kind != argument:
		return x.text
	case x.n <= len(words):
		return words[x.n-1]
	}
	return ""
}

// split parts what a person typed after a command into arguments: at white
// space, but not between quotes that open and close a word. A quote inside a
// word, or one that is never closed, stands for itself: "don't" is a word.
func split(args string) (out []string) {
	for {
		args = strings.TrimLeft(args, " \t\r\n")
		if args == "" {
			return out
		}
		if q := args[0]; q == '"' || q == '\'' {
			if end := strings.IndexByte(args[1:], q); end >= 0 {
				after := args[end+2:]
				if after == "" || strings.IndexByte(" \t\r\n", after[0]) >= 0 {
					out, args = append(out, args[1:end+1]), after
					continue
				}
			}
		}
		end := strings.IndexAny(args, " \t\r\n")
		if end < 0 {
			end = len(args)
		}
		out, args = append(out, args[:end]), args[end:]
	}
}
