package config

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/host/policy"
)

// maxProblems is how many problems of one file are told.
const maxProblems = 100

// CheckPolicyFile is CheckPolicy for a file on disk. The error is that it cannot
// be read at all.
func CheckPolicyFile(name string, kind policy.LayerKind) (problems []*Error, notes []string, err error) {
	b, err := readFile(name)
	if err != nil {
		return nil, nil, err
	}
	problems, notes = CheckPolicy(b, kind, name)
	return problems, notes, nil
}

// CheckPolicy lists everything that is wrong with a policy.toml, in the order
// of lines. notes say what is right but counts for nothing in a layer of this
// kind. A syntax error hides what follows it.
func CheckPolicy(b []byte, kind policy.LayerKind, file string) (problems []*Error, notes []string) {
	add := func(errs ...*Error) { problems = append(problems, errs...) }
	var f policyFile
	for range maxProblems {
		f = policyFile{}
		ls, err := decode(b, file, &f)
		if err == nil {
			_, wrong := f.layer(kind, file, ls)
			add(wrong...)
			break
		}
		var e *Error
		if !errors.As(err, &e) {
			e = &Error{File: file, Err: err}
		}
		more := allOf(e)
		add(more...)
		// The rest is looked at without the lines that are wrong.
		if b = without(b, more); b == nil {
			break
		}
	}
	slices.SortStableFunc(problems, func(a, b *Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	problems = slices.CompactFunc(problems, func(a, b *Error) bool { return a.Line == b.Line && a.Error() == b.Error() })
	if len(problems) == 0 {
		if l, err := ReadPolicy(b, kind, file); err != nil {
			add(&Error{File: file, Err: err})
		} else if p, err := policy.NewPolicy(l); err == nil {
			notes = p.Notes()
		}
	}
	return problems[:min(len(problems), maxProblems)], notes
}

// allOf gives the problems that were found together with e.
func allOf(e *Error) []*Error {
	if len(e.more) > 0 {
		return e.more
	}
	return []*Error{e}
}

// without empties the expressions in which problems lie; nil when that is not
// possible without changing what the rest means.
func without(b []byte, problems []*Error) []byte {
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
