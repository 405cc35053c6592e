// Package config reads and writes the project's TOML: manifests (elf.toml),
// policies, grants and configuration, and knows where they lie.
//
// Reading is strict: a key that is unknown, given twice or of the wrong type
// is an error that names file and line, and nothing of the file is used.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// MaxFile bounds every file that is read, in bytes.
const MaxFile = 1 << 20

// maxNesting bounds arrays, inline tables and dotted keys.
const maxNesting = 64

// Error is what is wrong with a file. Line is zero where it is the whole file.
type Error struct {
	File string
	Line int
	Err  error
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.File, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

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

// readFile reads a regular file of at most MaxFile bytes. A hostile repository
// may hold a FIFO or a device in its place: those are not opened.
func readFile(name string) ([]byte, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, &Error{File: name, Err: errors.New("it is not a regular file")}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxFile {
		return nil, tooLarge(name)
	}
	return b, nil
}

func tooLarge(name string) error {
	return &Error{name, 0, fmt.Errorf("it is larger than %d KiB", MaxFile>>10)}
}

// readIfPresent is readFile for a file that may be missing.
func readIfPresent(name string) (b []byte, present bool, err error) {
	if b, err = readFile(name); errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return b, err == nil, err
}

// decode reads strict TOML into v.
func decode(b []byte, file string, v any) (lines, error) {
	if len(b) > MaxFile {
		return nil, tooLarge(file)
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")) // editors on Windows write one
	if bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return nil, &Error{file, 1, errors.New("it is UTF-16; save it as UTF-8")}
	}
	if !utf8.Valid(b) {
		return nil, &Error{file, badLine(b), errors.New("it is not valid UTF-8")}
	}
	ls, err := positions(b, file)
	if err != nil {
		return nil, err
	}
	d := toml.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return nil, located(file, err)
	}
	if key, err := unitErrors(reflect.ValueOf(v), ""); err != nil {
		return nil, ls.fail(file, key, "%s: %w", key, err)
	}
	return ls, nil
}

func badLine(b []byte) int {
	n := 1
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			break
		}
		if r == '\n' {
			n++
		}
		b = b[size:]
	}
	return n
}

// located turns the library's errors into ours.
func located(file string, err error) error {
	var missing *toml.StrictMissingError
	if errors.As(err, &missing) && len(missing.Errors) > 0 {
		first := missing.Errors[0]
		line, _ := first.Position()
		return &Error{file, line, fmt.Errorf("unknown key %q", joinKey(first.Key()))}
	}
	var de *toml.DecodeError
	if errors.As(err, &de) {
		line, _ := de.Position()
		msg := bytes.TrimPrefix([]byte(de.Error()), []byte("toml: "))
		if k := joinKey(de.Key()); k != "" {
			return &Error{file, line, fmt.Errorf("%s: %s", k, msg)}
		}
		return &Error{file, line, errors.New(string(msg))}
	}
	return &Error{file, 0, err}
}

func joinKey(k toml.Key) string {
	out := ""
	for i, p := range k {
		if i > 0 {
			out += "."
		}
		out += p
	}
	return out
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
