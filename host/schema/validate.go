package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

const schemaURL = "elf:///schema"

// Work a validation may do: some for any value, and more for each of its
// nodes. A unit is one subschema applied to one value.
const (
	workBase = 10_000
	workNode = 50
)

var errBudget = errors.New("checking it takes too much work: the schema tries too many alternatives on it")

// budget counts the work of one validation. It rides in the schema as an
// extension, because the validator has no limit and no context.
type budget struct{ left int }

// meter is what the validator calls for one subschema.
type meter struct {
	work   *budget
	weight int
}

func (b *budget) Compile(_ jsonschema.CompilerContext, m map[string]any) (jsonschema.ExtSchema, error) {
	w := 1
	for _, key := range [...]string{"allOf", "anyOf", "oneOf"} {
		alt, _ := m[key].([]any)
		w += len(alt)
	}
	enum, _ := m["enum"].([]any)
	return meter{b, w + len(enum)/8}, nil
}

func (m meter) Validate(_ jsonschema.ValidationContext, v any) error {
	cost := m.weight
	switch v := v.(type) {
	case map[string]any:
		cost += len(v) / 8
	case []any:
		cost += len(v) / 8
	case string:
		cost += len(v) / 1024
	}
	if m.work.left -= cost; m.work.left < 0 {
		panic(errBudget)
	}
	return nil
}

func compile(root any, work *budget) (sch *jsonschema.Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			sch, err = nil, fmt.Errorf("it cannot be compiled: %v", p)
		}
	}()
	text, err := json.Marshal(root)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.LoadURL = func(url string) (io.ReadCloser, error) {
		return nil, fmt.Errorf("%q is not loaded: a schema stands alone", url)
	}
	c.RegisterExtension("elfhost", nil, work)
	if err := c.AddResource(schemaURL, bytes.NewReader(text)); err != nil {
		return nil, err
	}
	sch, err = c.Compile(schemaURL)
	if bad, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		leaf := leaves(bad)[0]
		return nil, fmt.Errorf("at %q: %s", "#"+leaf.InstanceLocation, leaf.Message)
	}
	if bad, ok := errors.AsType[*jsonschema.SchemaError](err); ok {
		return nil, bad.Err
	}
	return sch, err
}

// validate checks a parsed value.
func (s *Schema) validate(v any) error {
	missing := s.missing(v)
	err := s.run(v)
	if err == nil && len(missing) == 0 {
		return nil
	}
	out := &Invalid{Missing: missing}
	var bad *jsonschema.ValidationError
	switch {
	case errors.As(err, &bad):
		out.Problems = s.problems(bad, v, len(missing) > 0)
	case err != nil:
		out.Problems = []string{fmt.Sprintf("The value cannot be checked: %v.", err)}
	}
	return out
}

func (s *Schema) run(v any) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work.left = workBase + workNode*count(v)
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error:
			err = p
		default:
			err = fmt.Errorf("the validator failed: %v", p)
		}
	}()
	return s.sch.Validate(v)
}

func count(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, c := range v {
			n += count(c)
		}
	case []any:
		for _, c := range v {
			n += count(c)
		}
	}
	return n
}

// missing lists every required parameter that is not there, in the schema's
// order. The validator's own list is per subschema.
func (s *Schema) missing(v any) []string {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	var out []string
	for _, n := range certain(s.doc.top) {
		for _, name := range n.required {
			if _, there := m[name]; !there && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// certain lists the nodes that all apply to the value of n.
func certain(n *node) []*node {
	out := []*node{n}
	for i := 0; i < len(out); i++ {
		for _, c := range out[i].same {
			if !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
	}
	return out
}
