package config

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// maxNesting bounds arrays and inline tables.
const maxNesting = 64

// lines says on which line every key and array element stands: "limits.time",
// "need[0].scope[1]".
type lines map[string]int

func (l lines) where(file, key string) string {
	if n := l[key]; n > 0 {
		return file + ":" + strconv.Itoa(n)
	}
	return file
}

func (l lines) fail(file, key, format string, args ...any) error {
	return &Error{file, l[key], fmt.Errorf(format, args...)}
}

// positions walks the syntax tree for the line of every key, and refuses what
// nests too deeply before anything recursive sees it.
func positions(b []byte, file string) (lines, error) {
	if line := tooDeep(b); line > 0 {
		return nil, &Error{file, line, errors.New("it nests too deeply")}
	}
	w := &tomlWalk{out: lines{}, counts: map[string]int{}, b: b}
	var p unstable.Parser
	p.Reset(b)
	prefix := ""
	for p.NextExpression() && w.long == 0 {
		switch e := p.Expression(); e.Kind {
		case unstable.Table:
			var line int
			prefix, line = w.key(e, "", true)
			w.set(prefix, line)
		case unstable.ArrayTable:
			key, line := w.key(e, "", true)
			w.set(key, line)
			prefix = key + "[" + strconv.Itoa(w.counts[key]) + "]"
			w.counts[key]++
			w.set(prefix, line)
		case unstable.KeyValue:
			w.keyValue(e, prefix)
		}
	}
	if w.long > 0 {
		return nil, &Error{file, w.long, errors.New("a key is too long")}
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

// maxKey bounds a dotted key with its table's name, in bytes.
const maxKey = 256

type tomlWalk struct {
	out     lines
	counts  map[string]int // elements so far of each array of tables
	long    int            // line of a key over maxKey
	b       []byte
	off, ln int // where line has counted to
}

// set records a key and the tables above it, each by its first line.
func (w *tomlWalk) set(key string, line int) {
	for key != "" {
		if _, taken := w.out[key]; taken {
			return
		}
		w.out[key] = line
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
}

// line is that of an offset; offsets mostly grow.
func (w *tomlWalk) line(off int) int {
	off = min(off, len(w.b))
	if off < w.off {
		w.off, w.ln = 0, 0
	}
	w.ln += bytes.Count(w.b[w.off:off], []byte("\n"))
	w.off = off
	return w.ln + 1
}

// key joins a node's key to its prefix. In a header, a part that names an
// array of tables stands for its last element.
func (w *tomlWalk) key(n *unstable.Node, prefix string, header bool) (string, int) {
	key, line := prefix, 0
	for it := n.Key(); it.Next(); {
		k := it.Node()
		if line == 0 {
			line = w.line(int(k.Raw.Offset))
		} else if c := w.counts[key]; header && c > 0 {
			key += "[" + strconv.Itoa(c-1) + "]"
		}
		if key != "" {
			key += "."
		}
		if key += string(k.Data); len(key) > maxKey {
			w.long = line
			return "", line
		}
	}
	return key, line
}

func (w *tomlWalk) keyValue(n *unstable.Node, prefix string) {
	key, line := w.key(n, prefix, false)
	w.set(key, line)
	w.value(n.Value(), key, line)
}

func (w *tomlWalk) value(v *unstable.Node, key string, line int) {
	switch v.Kind {
	case unstable.Array:
		i := 0
		for it := v.Children(); it.Next(); i++ {
			c, l := it.Node(), line
			if c.Raw.Length > 0 {
				l = w.line(int(c.Raw.Offset))
			}
			k := key + "[" + strconv.Itoa(i) + "]"
			w.set(k, l)
			w.value(c, k, l)
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
