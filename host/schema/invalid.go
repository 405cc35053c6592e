package schema

import (
	"fmt"
	"strings"
)

// Invalid says why a value does not fit, in sentences for a model. Missing
// are the required parameters that are not there.
type Invalid struct {
	Missing  []string
	Problems []string
	Err      error // *Syntax where the text could not be read
}

// maxProblems is how many are told; the rest is counted.
const maxProblems = 8

func (e *Invalid) Error() string {
	var lines []string
	if e.Err != nil {
		lines = append(lines, fmt.Sprintf("The arguments cannot be read as JSON: %s.", e.Err))
	}
	switch len(e.Missing) {
	case 0:
	case 1:
		lines = append(lines, fmt.Sprintf("The required parameter `%s` is missing.", e.Missing[0]))
	default:
		lines = append(lines, fmt.Sprintf("The required parameters `%s` are missing.", strings.Join(e.Missing, "`, `")))
	}
	for i, p := range e.Problems {
		if i == maxProblems {
			lines = append(lines, fmt.Sprintf("And %d more problems.", len(e.Problems)-i))
			break
		}
		lines = append(lines, p)
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the *Syntax.
func (e *Invalid) Unwrap() error { return e.Err }

func problem(format string, args ...any) *Invalid {
	return &Invalid{Problems: []string{fmt.Sprintf(format, args...)}}
}

// dotted turns the steps to a value into `entries[2].status`.
type place []string

func (p place) String() string {
	var b strings.Builder
	for _, s := range p {
		if b.Len() > 0 && !strings.HasPrefix(s, "[") {
			b.WriteByte('.')
		}
		b.WriteString(s)
	}
	return b.String()
}

func (p place) key(k string) place { return append(p[:len(p):len(p)], k) }
func (p place) item(i int) place   { return append(p[:len(p):len(p)], fmt.Sprintf("[%d]", i)) }
