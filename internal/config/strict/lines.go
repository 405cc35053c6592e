package strict

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// maxNesting bounds arrays and inline tables.
const maxNesting = 64

// spot is a line and a column in bytes, both from 1; zero is nowhere.
type spot struct{ line, col int }

// Lines says where every key and array element stands: "limits.time",
// "need[0].scope[1]".
type Lines map[string]spot

// Has reports whether the file has a key.
func (l Lines) Has(key string) bool { return l[key].line > 0 }

// Where is "file:line" of a key, or the file where it has no such key.
func (l Lines) Where(file, key string) string {
	if n := l[key].line; n > 0 {
		return file + ":" + strconv.Itoa(n)
	}
	return file
}

// Fail makes an *Error at a key.
func (l Lines) Fail(file, key, format string, args ...any) error {
	return &Error{File: file, Line: l[key].line, Column: l[key].col, Err: fmt.Errorf(format, args...)}
}

// Numbers are the lines alone.
func (l Lines) Numbers() map[string]int {
	out := make(map[string]int, len(l))
	for k, s := range l {
		out[k] = s.line
	}
	return out
}

// positions walks the syntax tree for the line of every key, and refuses what
// nests too deeply before anything recursive sees it.
func positions(b []byte, file string) (Lines, error) {
	if line := tooDeep(b); line > 0 {
		return nil, &Error{File: file, Line: line, Err: errors.New("it nests too deeply")}
	}
	w := &tomlWalk{out: Lines{}, counts: map[string]int{}, b: b}
	var p unstable.Parser
	p.Reset(b)
	prefix := ""
	for p.NextExpression() && w.long.line == 0 {
		switch e := p.Expression(); e.Kind {
		case unstable.Table:
			var at spot
			prefix, at = w.key(e, "", true)
			w.set(prefix, at)
		case unstable.ArrayTable:
			key, at := w.key(e, "", true)
			w.set(key, at)
			prefix = key + "[" + strconv.Itoa(w.counts[key]) + "]"
			w.counts[key]++
			w.set(prefix, at)
		case unstable.KeyValue:
			w.keyValue(e, prefix)
		}
	}
	if w.long.line > 0 {
		return nil, &Error{File: file, Line: w.long.line, Err: errors.New("a key is too long")}
	}
	if p.Error() != nil {
		var v map[string]any // the decoder says the same with its position
		if err := toml.Unmarshal(b, &v); err != nil {
			return nil, located(file, err)
		}
		return nil, located(file, p.Error())
	}
	return w.out, nil
}

// expressions are the lines on which keys and tables begin, in order.
func expressions(b []byte) []int {
	w := &tomlWalk{out: Lines{}, counts: map[string]int{}, b: b}
	var p unstable.Parser
	p.Reset(b)
	var out []int
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.Table && e.Kind != unstable.ArrayTable && e.Kind != unstable.KeyValue {
			continue
		}
		if _, at := w.key(e, "", false); at.line > 0 {
			out = append(out, at.line)
		}
	}
	return out
}

// Without empties the expressions in which problems lie; nil when that is not
// possible without changing what the rest means.
func Without(b []byte, problems []*Error) []byte {
	begins := expressions(b)
	rows := bytes.SplitAfter(b, []byte("\n"))
	for _, e := range problems {
		i, exact := slices.BinarySearch(begins, e.Line)
		if !exact {
			i--
		}
		if e.Line == 0 || i < 0 {
			return nil
		}
		end := len(rows)
		if i+1 < len(begins) {
			end = begins[i+1] - 1
		}
		for n := begins[i] - 1; n < end; n++ {
			if n == begins[i]-1 && strings.HasPrefix(strings.TrimSpace(string(rows[n])), "[") {
				return nil // a table's name: the keys below would go to another
			}
			rows[n] = []byte("\n")
		}
	}
	return bytes.Join(rows, nil)
}

// maxKey bounds a dotted key with its table's name, in bytes.
const maxKey = 256

type tomlWalk struct {
	out     Lines
	counts  map[string]int // elements so far of each array of tables
	long    spot           // of a key over maxKey
	b       []byte
	off, ln int // where line has counted to
}

// set records a key and the tables above it, each by its first place.
func (w *tomlWalk) set(key string, at spot) {
	for key != "" {
		if _, taken := w.out[key]; taken {
			return
		}
		w.out[key] = at
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
}

// at is the place of an offset; offsets mostly grow.
func (w *tomlWalk) at(off int) spot {
	off = min(off, len(w.b))
	if off < w.off {
		w.off, w.ln = 0, 0
	}
	w.ln += bytes.Count(w.b[w.off:off], []byte("\n"))
	w.off = off
	return spot{w.ln + 1, off - bytes.LastIndexByte(w.b[:off], '\n')}
}

// key joins a node's key to its prefix. In a header, a part that names an
// array of tables stands for its last element.
func (w *tomlWalk) key(n *unstable.Node, prefix string, header bool) (string, spot) {
	key, at := prefix, spot{}
	for it := n.Key(); it.Next(); {
		k := it.Node()
		if at.line == 0 {
			at = w.at(int(k.Raw.Offset))
		} else if c := w.counts[key]; header && c > 0 {
			key += "[" + strconv.Itoa(c-1) + "]"
		}
		if key != "" {
			key += "."
		}
		if key += string(k.Data); len(key) > maxKey {
			w.long = at
			return "", at
		}
	}
	return key, at
}

func (w *tomlWalk) keyValue(n *unstable.Node, prefix string) {
	key, at := w.key(n, prefix, false)
	w.set(key, at)
	w.value(n.Value(), key, at)
}

func (w *tomlWalk) value(v *unstable.Node, key string, at spot) {
	switch v.Kind {
	case unstable.Array:
		i := 0
		for it := v.Children(); it.Next(); i++ {
			c, own := it.Node(), at
			if c.Raw.Length > 0 {
				own = w.at(int(c.Raw.Offset))
			}
			k := key + "[" + strconv.Itoa(i) + "]"
			w.set(k, own)
			w.value(c, k, own)
		}
	case unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			w.keyValue(it.Node(), key)
		}
	}
}

// tooDeep returns the line where open brackets exceed maxNesting; 0 if nowhere.
// It is rough: it also counts brackets inside strings, where nobody needs as
// many unclosed ones.
func tooDeep(b []byte) int {
	depth, line := 0, 1
	for _, c := range b {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		case '\n':
			line++
		}
		if depth > maxNesting {
			return line
		}
	}
	return 0
}
