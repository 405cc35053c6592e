package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// leaves are the errors that stand for themselves: below anyOf and oneOf the
// branches are alternatives, so the group is one leaf.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 || alternatives(e) {
		return []*jsonschema.ValidationError{e}
	}
	var out []*jsonschema.ValidationError
	for _, c := range e.Causes {
		out = append(out, leaves(c)...)
	}
	return out
}

func alternatives(e *jsonschema.ValidationError) bool {
	k := keyword(e)
	return (k == "anyOf" || k == "oneOf") && len(e.Causes) > 0
}

func keyword(e *jsonschema.ValidationError) string {
	return e.KeywordLocation[strings.LastIndexByte(e.KeywordLocation, '/')+1:]
}

func (s *Schema) problems(e *jsonschema.ValidationError, v any, missing bool) []string {
	var out []string
	for _, leaf := range leaves(e) {
		if missing && leaf.InstanceLocation == "" && keyword(leaf) == "required" {
			continue // told already
		}
		if line := s.explain(leaf, v); !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	slices.Sort(out) // the validator walks maps
	return out
}

// explain turns one error into a sentence.
func (s *Schema) explain(e *jsonschema.ValidationError, v any) string {
	what := "The value"
	if at := where(e.InstanceLocation, v); at != "" {
		what = "`" + at + "`"
	}
	switch {
	case keyword(e) == "additionalProperties" && e.InstanceLocation == "":
		return s.unknown(v)
	case alternatives(e):
		var ways []string
		for i, c := range e.Causes {
			if i == 4 {
				ways = append(ways, "…")
				break
			}
			ways = append(ways, fmt.Sprintf("(%d) %s", i+1, describe(leaves(c)[0], v)))
		}
		return what + " fits none of the allowed forms: " + strings.Join(ways, "; ") + "."
	}
	return what + ": " + sentence(e.Message) + "."
}

func describe(e *jsonschema.ValidationError, v any) string {
	if at := where(e.InstanceLocation, v); at != "" {
		return "`" + at + "`: " + sentence(e.Message)
	}
	return sentence(e.Message)
}

func sentence(msg string) string {
	if msg == "" {
		return "does not fit"
	}
	return clip(msg, 300)
}

// unknown names the parameters that a closed schema does not have.
func (s *Schema) unknown(v any) string {
	var known, extra []string
	for _, n := range certain(s.doc.top) {
		for name := range n.props {
			known = append(known, name)
		}
	}
	m, _ := v.(map[string]any)
	for name := range m {
		if !slices.Contains(known, name) {
			extra = append(extra, clip(name, 60))
		}
	}
	slices.Sort(known)
	slices.Sort(extra)
	if len(known) == 0 {
		return fmt.Sprintf("There is no parameter `%s`; there are no parameters.", strings.Join(extra, "`, `"))
	}
	return fmt.Sprintf("There is no parameter `%s`; the parameters are `%s`.",
		strings.Join(extra, "`, `"), strings.Join(slices.Compact(known), "`, `"))
}

// where turns the validator's pointer into `a[0].b`, as v has arrays and objects.
func where(ptr string, v any) string {
	var at place
	for step := range strings.SplitSeq(strings.TrimPrefix(ptr, "/"), "/") {
		if ptr == "" {
			break
		}
		step = unescape(step)
		if a, ok := v.([]any); ok {
			i, _ := strconv.Atoi(step)
			at = at.item(i)
			if i < len(a) {
				v = a[i]
			}
			continue
		}
		at = at.key(step)
		m, _ := v.(map[string]any)
		v = m[step]
	}
	return clip(at.String(), 120)
}

func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n]) + "…"
}
