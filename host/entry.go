package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"sync"

	"github.com/elfhost/elfhost/host/schema"
)

// entry is a registered tool with what is worked out once: nothing of it
// before it is needed.
type entry struct {
	tool  Tool
	spec  Spec
	input func() (*schema.Schema, error)
	// output is nil for a tool without an output schema.
	output func() (*schema.Schema, error)

	mu   sync.Mutex
	defs map[Format]Definition
}

// modelName is what every provider accepts as a tool's name.
var modelName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func newEntry(t Tool) (*entry, error) {
	if t == nil {
		return nil, errors.New("adding a nil tool")
	}
	s := t.Spec()
	if !modelName.MatchString(s.Name) {
		return nil, fmt.Errorf("adding tool %q: a name is 1 to 64 of A-Z, a-z, 0-9, '_' and '-'", s.Name)
	}
	if len(s.Input) == 0 {
		s.Input = json.RawMessage(`{"type":"object"}`)
	}
	e := &entry{tool: t, spec: s}
	e.input = sync.OnceValues(func() (*schema.Schema, error) { return schema.Compile(s.Input) })
	if len(s.Output) > 0 {
		e.output = sync.OnceValues(func() (*schema.Schema, error) { return schema.Compile(s.Output) })
	}
	return e, nil
}
