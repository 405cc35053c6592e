package archive

import (
	"bytes"
	"encoding/json"
	"strconv"
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
	b []byte
	i int
}

// quickRecord reads one record; false: it gave up, and r is not to be used.
func quickRecord(body []byte, r *agent.Record) bool {
	p := &quick{b: body}
	return p.record(r) && p.i == len(p.b)
}

func (p *quick) record(r *agent.Record) bool {
	return p.object(func(key []byte) bool {
		switch string(key) {
		case "seq":
			return p.int(&r.Seq)
		case "time":
			raw, ok := p.raw()
			return ok && r.Time.UnmarshalJSON(raw) == nil
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
	return p.object(func(key []byte) bool {
		switch string(key) {
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
	return p.object(func(key []byte) bool {
		switch string(key) {
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
	plain := p.object(func(key []byte) bool {
		switch string(key) {
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
	return p.object(func(key []byte) bool {
		switch string(key) {
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
	return p.object(func(key []byte) bool {
		switch string(key) {
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
	return p.object(func(key []byte) bool {
		switch string(key) {
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
	if p.i < len(p.b) && p.b[p.i] == c {
		p.i++
		return true
	}
	return false
}

// object reads an object and gives each key once to field, which reads the value.
func (p *quick) object(field func(key []byte) bool) bool {
	if !p.take('{') {
		return false
	}
	if p.take('}') {
		return true
	}
	var seen [16][]byte
	for n := 0; ; n++ {
		key, ok := p.key()
		if !ok || n == len(seen) {
			return false
		}
		for _, k := range seen[:n] {
			if bytes.Equal(k, key) {
				return false
			}
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
func (p *quick) key() ([]byte, bool) {
	if !p.take('"') {
		return nil, false
	}
	start := p.i
	for ; p.i < len(p.b) && p.b[p.i] >= ' ' && p.b[p.i] != '\\'; p.i++ {
		if p.b[p.i] == '"' {
			key := p.b[start:p.i]
			p.i++
			return key, p.take(':')
		}
	}
	return nil, false
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
	for p.i < len(p.b) && (p.b[p.i] >= '0' && p.b[p.i] <= '9' || p.b[p.i] == '-' && p.i == start) {
		p.i++
	}
	digits := p.b[start:p.i]
	if len(digits) > 1 && (digits[0] == '0' || digits[0] == '-' && digits[1] == '0') {
		return false // not JSON, or not as we write it
	}
	v, err := strconv.ParseInt(string(digits), 10, 64)
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
		if len(p.b)-p.i >= len(word) && string(p.b[p.i:p.i+len(word)]) == word {
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
	for ; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; {
		case c == '"':
			raw := p.b[start:p.i]
			p.i++
			*s = T(raw)
			return utf8.Valid(raw)
		case c == '\\':
			out, ok := p.escaped(start)
			*s = T(out)
			return ok && utf8.Valid(out)
		case c < ' ':
			return false
		}
	}
	return false
}

// plainEscapes are the escapes of one letter.
var plainEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escaped reads the rest of a string that began at start and has an escape at p.i.
func (p *quick) escaped(start int) ([]byte, bool) {
	out := append(make([]byte, 0, p.i-start+64), p.b[start:p.i]...)
	for p.i < len(p.b) {
		switch c := p.b[p.i]; {
		case c == '"':
			p.i++
			return out, true
		case c < ' ':
			return nil, false
		case c != '\\':
			out = append(out, c)
			p.i++
		case p.i+1 < len(p.b) && plainEscapes[p.b[p.i+1]] != 0:
			out = append(out, plainEscapes[p.b[p.i+1]])
			p.i += 2
		case p.i+6 <= len(p.b) && p.b[p.i+1] == 'u':
			r, err := strconv.ParseUint(string(p.b[p.i+2:p.i+6]), 16, 32)
			if err != nil || r >= 0xd800 && r < 0xe000 { // halves of a pair
				return nil, false
			}
			out = utf8.AppendRune(out, rune(r))
			p.i += 6
		default:
			return nil, false
		}
	}
	return nil, false
}

// raw finds the end of any value.
func (p *quick) raw() ([]byte, bool) {
	start, depth := p.i, 0
	for p.i < len(p.b) {
		switch p.b[p.i] {
		case '"':
			for p.i++; p.i < len(p.b) && p.b[p.i] != '"'; p.i++ {
				if p.b[p.i] == '\\' {
					p.i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return p.b[start:p.i], p.i > start
			}
		case ',':
			if depth == 0 {
				return p.b[start:p.i], p.i > start
			}
		}
		p.i++
	}
	return nil, false
}

// other reads a value that is rare, the usual way.
func (p *quick) other(v any) bool {
	raw, ok := p.raw()
	return ok && string(raw) != "null" && json.Unmarshal(raw, v) == nil
}
