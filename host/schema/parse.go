package schema

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Our own reader, because encoding/json takes the last of two equal keys,
// does not say where text broke off, and builds a tree 10,000 deep. Numbers
// stay text (json.Number), with bounds that keep exact arithmetic on them cheap.

const (
	maxDigits   = 1_000 // of a number's text
	maxExponent = 1_000
)

// Syntax is text that is not JSON, or not JSON that is accepted here.
type Syntax struct {
	Offset int // byte
	What   string
	near   string
}

func (e *Syntax) Error() string {
	if e.near == "" {
		return fmt.Sprintf("%s at byte %d", e.What, e.Offset)
	}
	return fmt.Sprintf("%s at byte %d, after %q", e.What, e.Offset, e.near)
}

type parser struct {
	s       []byte
	i       int
	depth   int
	max     int
	mangled bool // some string was not valid UTF-8: the text is not what was read
	nodes   int
}

// parse reads one JSON value that fills raw.
func parse(raw []byte, maxDepth int) (any, error) {
	p := parser{s: raw, max: maxDepth}
	return p.document()
}

func (p *parser) document() (any, error) {
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	p.space()
	if p.i < len(p.s) {
		return nil, p.fail("something follows the JSON value")
	}
	return v, nil
}

func (p *parser) fail(format string, args ...any) error {
	at := min(p.i, len(p.s))
	from := max(0, at-20)
	for from < at && !utf8.RuneStart(p.s[from]) {
		from++
	}
	return &Syntax{Offset: at, What: fmt.Sprintf(format, args...), near: string(p.s[from:at])}
}

func (p *parser) unexpected(want string) error {
	if p.i >= len(p.s) {
		return p.fail("the text ends where %s is expected", want)
	}
	r, _ := utf8.DecodeRune(p.s[p.i:])
	return p.fail("%q stands where %s is expected", r, want)
}

func (p *parser) space() {
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return
		}
	}
}

// peek skips space and returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	p.space()
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

func (p *parser) value() (any, error) {
	p.nodes++
	switch c := p.peek(); {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		return p.string()
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	rest := p.s[p.i:]
	for _, w := range [...]struct {
		word  string
		value any
	}{{"true", true}, {"false", false}, {"null", nil}} {
		if len(rest) >= len(w.word) && string(rest[:len(w.word)]) == w.word {
			p.i += len(w.word)
			return w.value, nil
		}
	}
	return nil, p.unexpected("a JSON value")
}

func (p *parser) enter() error {
	p.i++
	if p.depth++; p.depth > p.max {
		return p.fail("the nesting is deeper than %d", p.max)
	}
	return nil
}

func (p *parser) object() (any, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	m := map[string]any{}
	for first := true; ; first = false {
		switch c := p.peek(); {
		case c == '}' && first:
			p.i++
			p.depth--
			return m, nil
		case c != '"':
			return nil, p.unexpected("a key in double quotes")
		}
		key, err := p.string()
		if err != nil {
			return nil, err
		}
		if _, twice := m[key]; twice {
			return nil, p.fail("the key %q appears twice in one object", key)
		}
		if p.peek() != ':' {
			return nil, p.unexpected("':'")
		}
		p.i++
		if m[key], err = p.value(); err != nil {
			return nil, err
		}
		switch p.peek() {
		case ',':
			p.i++
		case '}':
			p.i++
			p.depth--
			return m, nil
		default:
			return nil, p.unexpected("',' or '}'")
		}
	}
}

func (p *parser) array() (any, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	a := []any{}
	if p.peek() == ']' {
		p.i++
		p.depth--
		return a, nil
	}
	for {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		a = append(a, v)
		switch p.peek() {
		case ',':
			p.i++
		case ']':
			p.i++
			p.depth--
			return a, nil
		default:
			return nil, p.unexpected("',' or ']'")
		}
	}
}

// string reads a string at its opening quote. What is not UTF-8 becomes
// U+FFFD, as encoding/json has it.
func (p *parser) string() (string, error) {
	start := p.i
	plain := true
	for p.i++; p.i < len(p.s); p.i++ {
		switch c := p.s[p.i]; {
		case c == '"':
			p.i++
			return p.unquote(p.s[start:p.i], plain)
		case c == '\\':
			plain = false
			p.i++
		case c < ' ':
			return "", p.fail("a control character stands unescaped in a string")
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	return "", p.fail("the text ends inside a string")
}

func (p *parser) unquote(quoted []byte, plain bool) (string, error) {
	if plain {
		return string(quoted[1 : len(quoted)-1]), nil
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return "", p.fail("a string has an escape that JSON does not know")
	}
	if !p.mangled && (strings.ContainsRune(s, utf8.RuneError) || !utf8.Valid(quoted)) {
		p.mangled = true
	}
	return s, nil
}

func (p *parser) number() (any, error) {
	start := p.i
	digits := func() int {
		from := p.i
		for p.i < len(p.s) && '0' <= p.s[p.i] && p.s[p.i] <= '9' {
			p.i++
		}
		return p.i - from
	}
	next := func(set string) bool {
		if p.i < len(p.s) && strings.IndexByte(set, p.s[p.i]) >= 0 {
			p.i++
			return true
		}
		return false
	}
	next("-")
	if whole := p.i; digits() == 0 {
		return nil, p.unexpected("a digit")
	} else if p.s[whole] == '0' && p.i > whole+1 {
		return nil, p.fail("a number begins with 0")
	}
	if next(".") && digits() == 0 {
		return nil, p.unexpected("a digit")
	}
	if next("eE") {
		next("+-")
		from := p.i
		if digits() == 0 {
			return nil, p.unexpected("a digit")
		}
		if n, err := strconv.Atoi(string(p.s[from:p.i])); err != nil || n > maxExponent {
			return nil, p.fail("a number's exponent is over %d", maxExponent)
		}
	}
	if p.i-start > maxDigits {
		return nil, p.fail("a number has more than %d digits", maxDigits)
	}
	return json.Number(p.s[start:p.i]), nil
}
