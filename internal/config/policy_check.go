package config

import (
	"errors"
	"slices"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/config/strict"
)

// maxProblems is how many problems of one file are told.
const maxProblems = 100

// CheckPolicyFile is checkPolicy for a file on disk. The error is that it cannot
// be read at all.
func CheckPolicyFile(name string, kind policy.LayerKind) (problems []*strict.Error, notes []string, err error) {
	b, err := strict.ReadFile(name)
	if err != nil {
		return nil, nil, err
	}
	problems, notes = checkPolicy(b, kind, name)
	return problems, notes, nil
}

// checkPolicy lists everything that is wrong with a policy.toml, in the order
// of lines. notes say what is right but counts for nothing in a layer of this
// kind. A syntax error hides what follows it.
func checkPolicy(b []byte, kind policy.LayerKind, file string) (problems []*strict.Error, notes []string) {
	add := func(errs ...*strict.Error) { problems = append(problems, errs...) }
	var f policyFile
	for range maxProblems {
		f = policyFile{}
		ls, err := strict.Decode(b, file, &f)
		if err == nil {
			_, wrong := f.layer(kind, file, ls)
			add(wrong...)
			break
		}
		var e *strict.Error
		if !errors.As(err, &e) {
			e = &strict.Error{File: file, Err: err}
		}
		more := e.All()
		add(more...)
		// The rest is looked at without the lines that are wrong.
		if b = strict.Without(b, more); b == nil {
			break
		}
	}
	slices.SortStableFunc(problems, func(a, b *strict.Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	problems = slices.CompactFunc(problems, func(a, b *strict.Error) bool { return a.Line == b.Line && a.Error() == b.Error() })
	if len(problems) == 0 {
		if l, err := readPolicy(b, kind, file); err != nil {
			add(&strict.Error{File: file, Err: err})
		} else if p, err := policy.NewPolicy(l); err == nil {
			notes = p.Notes()
		}
	}
	return problems[:min(len(problems), maxProblems)], notes
}
