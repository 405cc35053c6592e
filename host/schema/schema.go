// Package schema brings the arguments of a model, or the answer of somebody
// else's tool, to a JSON Schema: it repairs what models commonly get wrong,
// checks the rest in full, and says in plain sentences what does not fit.
//
// Schemas and values are hostile: both have budgets on size, depth and work,
// references are local ("#…") only, and nothing is loaded.
package schema

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Limits of what is accepted. A schema past them is refused by Compile, a value
// by Coerce and Validate.
const (
	MaxSchemaSize  = 1 << 20 // bytes
	MaxSchemaDepth = 128     // nesting of JSON
	MaxExpansion   = 10_000  // subschemas that apply to one value, references followed
	MaxValueSize   = 32 << 20
	MaxValueDepth  = 128
)

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct {
	root any // the parsed document
	doc  *document
	sch  *jsonschema.Schema

	mu   sync.Mutex // validation counts its work in work
	work *budget
}

// Compile checks and compiles a schema, draft 4 to 2020-12, the last if it
// does not say.
func Compile(raw json.RawMessage) (*Schema, error) {
	if len(raw) > MaxSchemaSize {
		return nil, fmt.Errorf("compiling a schema: %d bytes are over the limit of %d", len(raw), MaxSchemaSize)
	}
	root, err := parse(raw, MaxSchemaDepth)
	if err != nil {
		return nil, fmt.Errorf("compiling a schema: %w", err)
	}
	doc, err := inspect(root)
	if err != nil {
		return nil, fmt.Errorf("compiling a schema: %w", err)
	}
	s := &Schema{root: root, doc: doc, work: &budget{}}
	if s.sch, err = compile(root, s.work); err != nil {
		return nil, fmt.Errorf("compiling a schema: %w", err)
	}
	return s, nil
}

// Coerce repairs args where that cannot change what was meant: a number,
// boolean, array or object in a string, one value where an array is expected,
// null for what is optional, no arguments at all. notes says in sentences what
// was done; without any, out is args itself. The error is an *Invalid; a
// value that merely does not fit the schema is left to Validate.
func (s *Schema) Coerce(args json.RawMessage) (out json.RawMessage, notes []string, err error) {
	_, out, notes, err = s.coerce(args)
	return out, notes, err
}

// Validate checks a value in full. The error is an *Invalid.
func (s *Schema) Validate(raw json.RawMessage) error {
	v, err := parseValue(raw)
	if err != nil {
		return err
	}
	return s.validate(v)
}

// ValidateValue is Validate for a value that was decoded already, with numbers
// as json.Number. Such numbers must come from a reader that bounds them, as
// Coerce and Validate do: exact arithmetic on 1e100000000 has no end.
func (s *Schema) ValidateValue(v any) error { return s.validate(v) }

// Check is Coerce, then Validate, in one pass over the text.
func (s *Schema) Check(args json.RawMessage) (out json.RawMessage, notes []string, err error) {
	v, out, notes, err := s.coerce(args)
	if err != nil {
		return nil, notes, err
	}
	if err := s.validate(v); err != nil {
		return nil, notes, err
	}
	return out, notes, nil
}
