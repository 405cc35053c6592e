// Package strict reads TOML strictly: a key that is unknown, given twice or of
// the wrong type is an error that names file and line, and nothing of the file
// is used. What comes from strangers is bounded before anything recursive sees it.
package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
)

// MaxFile bounds every file that is read, in bytes.
const MaxFile = 1 << 20

// Error is what is wrong with a file. Line is zero where it is the whole file;
// Column counts bytes from 1, and is zero where it is not known.
type Error struct {
	File   string
	Line   int
	Column int
	Err    error

	more []*Error // all that was found at once, this one first
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.File, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// All are the problems that were found together, this one among them.
func (e *Error) All() []*Error {
	if len(e.more) > 0 {
		return e.more
	}
	return []*Error{e}
}

// ReadFile reads a regular file of at most MaxFile bytes. A hostile repository
// may hold a FIFO or a device in its place: those are not opened.
func ReadFile(name string) ([]byte, error) {
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
		return nil, TooLarge(name)
	}
	return b, nil
}

// TooLarge is the error of a file of more than MaxFile bytes.
func TooLarge(name string) error {
	return &Error{File: name, Err: fmt.Errorf("it is larger than %d KiB", MaxFile>>10)}
}

// ReadIfPresent is ReadFile for a file that may be missing.
func ReadIfPresent(name string) (b []byte, present bool, err error) {
	if b, err = ReadFile(name); errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return b, err == nil, err
}

// Decode reads TOML into v. file names it in errors, each of which is an *Error.
func Decode(b []byte, file string, v any) (Lines, error) {
	if len(b) > MaxFile {
		return nil, TooLarge(file)
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")) // editors on Windows write one
	if bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return nil, &Error{File: file, Line: 1, Err: errors.New("it is UTF-16; save it as UTF-8")}
	}
	if !utf8.Valid(b) {
		return nil, &Error{File: file, Line: badLine(b), Err: errors.New("it is not valid UTF-8")}
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
		return nil, ls.Fail(file, key, "%s: %w", key, err)
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

// located turns the library's errors into ours. Of several it gives the first.
func located(file string, err error) error {
	all := allLocated(file, err)
	first := *all[0]
	first.more = all
	return &first
}

// allLocated is located for each thing that is wrong.
func allLocated(file string, err error) []*Error {
	var missing *toml.StrictMissingError
	if errors.As(err, &missing) && len(missing.Errors) > 0 {
		var out []*Error
		for i := range missing.Errors {
			line, col := missing.Errors[i].Position()
			out = append(out, &Error{File: file, Line: line, Column: col, Err: fmt.Errorf("unknown key %q", joinKey(missing.Errors[i].Key()))})
		}
		return out
	}
	var de *toml.DecodeError
	if errors.As(err, &de) {
		line, col := de.Position()
		msg := strings.TrimPrefix(de.Error(), "toml: ")
		if m := typeError.FindStringSubmatch(msg); m != nil {
			msg = "it is " + tomlType(m[1]) + ", and " + tomlType(m[2]) + " is wanted"
		}
		if k := joinKey(de.Key()); k != "" {
			msg = k + ": " + msg
		}
		return []*Error{{File: file, Line: line, Column: col, Err: errors.New(msg)}}
	}
	return []*Error{{File: file, Err: err}}
}

// typeError is the library's complaint about a type, in words of Go.
var typeError = regexp.MustCompile(`^cannot (?:decode|store) (?:a )?(?:TOML )?(\S+)(?: \S+)? in(?:to)? (?:a |an )?(?:struct field )?(?:\S+ )?(?:of type |Go )?(\S+)$`)

func tomlType(s string) string {
	switch {
	case strings.HasPrefix(s, "[]"), s == "array", s == "slice":
		return "an array"
	case s == "bool", s == "boolean":
		return "a boolean"
	case strings.HasPrefix(s, "int"):
		return "an integer"
	case strings.HasPrefix(s, "float"):
		return "a number"
	case s == "strict.Duration", s == "strict.Size":
		return "a string"
	case s == "table", strings.HasPrefix(s, "struct"), strings.HasPrefix(s, "config."), strings.HasPrefix(s, "manifest."), strings.HasPrefix(s, "granted."), strings.HasPrefix(s, "map"):
		return "a table"
	}
	return "a " + s
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
