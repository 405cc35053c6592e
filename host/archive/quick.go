package archive

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
)

// quick reads the JSON of records as this program writes them, several times
// faster than encoding/json: resuming a long session is mostly this. Whatever
// is not written so (another order is fine; a key that is unknown, twice or
// null, a number that is no integer, text that is not UTF-8) makes it give up,
// and encoding/json has the word. FuzzQuick holds the two against each other.
type quick struct {
	s   string
	i   int
	buf []byte // for texts with escapes
}

// read reads one record; false: it gave up, and r is not to be used.
func (p *quick) read(body string, r *agent.Record) bool {
	p.s, p.i = body, 0
	return p.record(r) && p.i == len(p.s)
}

// shareable is how long a body may be whose parts keep it in memory.
const shareable = 1 << 10

// part is a piece of the body that outlives it.
func (p *quick) part(from, to int) string {
	if len(p.s) > shareable {
		return strings.Clone(p.s[from:to])
	}
	return p.s[from:to]
}

func (p *quick) record(r *agent.Record) bool {
	return p.object(func(key string) bool {
		switch key {
		case "seq":
			return p.int(&r.Seq)
		case "time":
			raw, ok := p.raw()
			return ok && r.Time.UnmarshalJSON([]byte(raw)) == nil
		case "kind":
			return text(p, &r.Kind)
		case "step":
			return number(p, &r.Step)
		case "message":
			r.Message = &model.Message{}
			return p.message(r.Message)
		case "own":
			return p.bool(&r.Own)
		case "model":
			return text(p, &r.Model)
		case "stop":
			return text(p, &r.Stop)
		case "usage":
			r.Usage = &agent.Usage{}
			return p.usage(r.Usage)
		case "call":
			r.Call = &model.Call{}
			return p.call(r.Call)
		case "looks":
			return p.bool(&r.Looks)
		case "result":
			r.Result = &model.CallResult{}
			return p.result(r.Result)
		case "outcome":
			return text(p, &r.Outcome)
		case "receipts":
			return p.other(&r.Receipts)
		case "run":
			return p.other(&r.Run)
		case "keep":
			return number(p, &r.Keep)
		}
		return false
	})
}

func (p *quick) message(m *model.Message) bool {
	return p.object(func(key string) bool {
		switch key {
		case "role":
			return text(p, &m.Role)
		case "blocks":
			m.Blocks = make([]model.Block, 0, 2)
			return p.array(func() bool {
				m.Blocks = append(m.Blocks, model.Block{})
				return p.block(&m.Blocks[len(m.Blocks)-1])
			})
		}
		return false
	})
}

func (p *quick) block(b *model.Block) bool {
	return p.object(func(key string) bool {
		switch key {
		case "content":
			b.Content = &abi.Content{}
			return p.content(b.Content)
		case "thinking":
			return p.other(&b.Thinking)
		case "call":
			b.Call = &model.Call{}
			return p.call(b.Call)
		case "result":
			b.Result = &model.CallResult{}
			return p.result(b.Result)
		case "native":
			return p.other(&b.Native)
		}
		return false
	})
}

func (p *quick) content(c *abi.Content) bool {
	start := p.i
	plain := p.object(func(key string) bool {
		switch key {
		case "type":
			return text(p, &c.Type)
		case "text":
			return text(p, &c.Text)
		}
		return false
	})
	if plain {
		return true
	}
	p.i, *c = start, abi.Content{}
	return p.other(c) // an image, a resource
}

func (p *quick) call(c *model.Call) bool {
	return p.object(func(key string) bool {
		switch key {
		case "id":
			return text(p, &c.ID)
		case "name":
			return text(p, &c.Name)
		case "args":
			return text(p, &c.Args)
		}
		return false
	})
}

func (p *quick) result(r *model.CallResult) bool {
	return p.object(func(key string) bool {
		switch key {
		case "id":
			return text(p, &r.ID)
		case "name":
			return text(p, &r.Name)
		case "content":
			r.Content = make([]abi.Content, 0, 1)
			return p.array(func() bool {
				r.Content = append(r.Content, abi.Content{})
				return p.content(&r.Content[len(r.Content)-1])
			})
		case "structuredContent":
			return p.other(&r.Structured)
		case "isError":
			return p.bool(&r.IsError)
		}
		return false
	})
}

func (p *quick) usage(u *agent.Usage) bool {
	return p.object(func(key string) bool {
		switch key {
		case "input":
			return p.int(&u.Input)
		case "cacheRead":
			return p.int(&u.CacheRead)
		case "cacheWrite":
			return p.int(&u.CacheWrite)
		case "output":
			return p.int(&u.Output)
		case "reasoning":
			return p.int(&u.Reasoning)
		case "searches":
			return p.int(&u.Searches)
		case "context":
			return p.int(&u.Context)
		case "steps":
			return number(p, &u.Steps)
		case "cost":
			return p.other(&u.Cost)
		}
		return false
	})
}

// take reads one byte if it is c.
func (p *quick) take(c byte) bool {
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

// object reads an object and gives each key once to field, which reads the value.
func (p *quick) object(field func(key string) bool) bool {
	if !p.take('{') {
		return false
	}
	if p.take('}') {
		return true
	}
	var seen [16]string
	for n := 0; ; n++ {
		key, ok := p.key()
		if !ok || n == len(seen) {
			return false
		}
		if slices.Contains(seen[:n], key) {
			return false
		}
		seen[n] = key
		if !field(key) {
			return false
		}
		if !p.take(',') {
			return p.take('}')
		}
	}
}

// key reads a key and its colon; ours have no escapes.
func (p *quick) key() (string, bool) {
	if !p.take('"') {
		return "", false
	}
	start := p.i
	for ; p.i < len(p.s) && p.s[p.i] >= ' ' && p.s[p.i] != '\\'; p.i++ {
		if p.s[p.i] == '"' {
			key := p.s[start:p.i]
			p.i++
			return key, p.take(':')
		}
	}
	return "", false
}

func (p *quick) array(element func() bool) bool {
	if !p.take('[') {
		return false
	}
	if p.take(']') {
		return true
	}
	for {
		if !element() {
			return false
		}
		if !p.take(',') {
			return p.take(']')
		}
	}
}

func (p *quick) int(n *int64) bool {
	start := p.i
	for p.i < len(p.s) && (p.s[p.i] >= '0' && p.s[p.i] <= '9' || p.s[p.i] == '-' && p.i == start) {
		p.i++
	}
	digits := p.s[start:p.i]
	if len(digits) > 1 && (digits[0] == '0' || digits[0] == '-' && digits[1] == '0') {
		return false // not JSON, or not as we write it
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	*n = v
	return err == nil
}

func number(p *quick, n *int) bool {
	var v int64
	ok := p.int(&v)
	*n = int(v)
	return ok && int64(*n) == v
}

func (p *quick) bool(v *bool) bool {
	for _, word := range []string{"true", "false"} {
		if len(p.s)-p.i >= len(word) && p.s[p.i:p.i+len(word)] == word {
			p.i += len(word)
			*v = word == "true"
			return true
		}
	}
	return false
}

// text reads a string.
func text[T ~string](p *quick, s *T) bool {
	if !p.take('"') {
		return false
	}
	start := p.i
	for ; p.i < len(p.s); p.i++ {
		switch c := p.s[p.i]; {
		case c == '"':
			raw := p.part(start, p.i)
			p.i++
			*s = T(raw)
			return utf8.ValidString(raw)
		case c == '\\':
			out, ok := p.escaped(start)
			*s = T(out)
			return ok && utf8.ValidString(out)
		case c < ' ':
			return false
		}
	}
	return false
}

// plainEscapes are the escapes of one letter.
var plainEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escaped reads the rest of a string that began at start and has an escape at p.i.
func (p *quick) escaped(start int) (string, bool) {
	out := append(p.buf[:0], p.s[start:p.i]...)
	defer func() { p.buf = out }()
	for p.i < len(p.s) {
		switch c := p.s[p.i]; {
		case c == '"':
			p.i++
			return string(out), true
		case c < ' ':
			return "", false
		case c != '\\':
			from := p.i
			for p.i < len(p.s) && p.s[p.i] >= ' ' && p.s[p.i] != '"' && p.s[p.i] != '\\' {
				p.i++
			}
			out = append(out, p.s[from:p.i]...)
		case p.i+1 < len(p.s) && plainEscapes[p.s[p.i+1]] != 0:
			out = append(out, plainEscapes[p.s[p.i+1]])
			p.i += 2
		case p.i+6 <= len(p.s) && p.s[p.i+1] == 'u':
			r, err := strconv.ParseUint(p.s[p.i+2:p.i+6], 16, 32)
			if err != nil || r >= 0xd800 && r < 0xe000 { // halves of a pair
				return "", false
			}
			out = utf8.AppendRune(out, rune(r))
			p.i += 6
		default:
			return "", false
		}
	}
	return "", false
}

// raw finds the end of any value.
func (p *quick) raw() (string, bool) {
	start, depth := p.i, 0
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case '"':
			for p.i++; p.i < len(p.s) && p.s[p.i] != '"'; p.i++ {
				if p.s[p.i] == '\\' {
					p.i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return p.s[start:p.i], p.i > start
			}
		case ',':
			if depth == 0 {
				return p.s[start:p.i], p.i > start
			}
		}
		p.i++
	}
	return "", false
}

// other reads a value that is rare, the usual way.
func (p *quick) other(v any) bool {
	raw, ok := p.raw()
	return ok && raw != "null" && json.Unmarshal([]byte(raw), v) == nil
}
