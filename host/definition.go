package host

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/elfhost/elfhost/host/schema"
)

// Format is how a provider wants tools described.
type Format string

// The formats of Definitions.
const (
	FormatOpenAI    Format = "openai"    // chat completions: {"type":"function","function":{…}}
	FormatResponses Format = "responses" // OpenAI's Responses: {"type":"function","name":…}
	FormatAnthropic Format = "anthropic"
	FormatGemini    Format = "gemini" // a functionDeclaration
	FormatMCP       Format = "mcp"
)

// Formats lists the formats, in the order in which people are shown them.
func Formats() []Format {
	return []Format{FormatOpenAI, FormatResponses, FormatAnthropic, FormatGemini, FormatMCP}
}

// Definition describes a tool to a provider. Input is brought into the subset
// of JSON Schema that the provider takes; nil for Gemini means no parameters.
// It marshals to the provider's own form.
type Definition struct {
	Format      Format
	Name        string
	Title       string
	Description string
	Input       json.RawMessage
	Output      json.RawMessage // MCP only
	Origin      Origin
	Kind        Kind
}

// Definitions describes the tools, in the order of All. A tool whose schema
// cannot be told to the provider is left out, and named in the error; the
// others are returned all the same.
func (r *Registry) Definitions(f Format) ([]Definition, error) {
	var (
		out  []Definition
		errs []error
	)
	for _, e := range r.entries() {
		d, err := e.definition(f)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, d)
	}
	return out, errors.Join(errs...)
}

// definition is worked out once a format.
func (e *entry) definition(f Format) (Definition, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d, ok := e.defs[f]; ok {
		return d, nil
	}
	s := e.spec
	d := Definition{Format: f, Name: s.Name, Title: s.Title, Description: s.Description, Origin: s.Origin, Kind: s.Kind}
	var err error
	switch f {
	case FormatGemini:
		d.Input, err = schema.Gemini(s.Input)
	case FormatOpenAI, FormatResponses, FormatAnthropic:
		d.Input, err = schema.Plain(s.Input)
	case FormatMCP:
		d.Input, err = schema.Object(s.Input)
		d.Output = s.Output
	default:
		err = fmt.Errorf("unknown format %q", f)
	}
	if err != nil {
		return Definition{}, fmt.Errorf("describing tool %q: %w", s.Name, err)
	}
	if e.defs == nil {
		e.defs = map[Format]Definition{}
	}
	e.defs[f] = d
	return d, nil
}

// MarshalJSON writes the provider's form.
func (d Definition) MarshalJSON() ([]byte, error) {
	type function struct {
		Type        string          `json:"type,omitempty"`
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
		InputSchema json.RawMessage `json:"input_schema,omitempty"`
	}
	switch d.Format {
	case FormatOpenAI:
		return json.Marshal(struct {
			Type     string   `json:"type"`
			Function function `json:"function"`
		}{"function", function{Name: d.Name, Description: d.Description, Parameters: d.Input}})
	case FormatResponses:
		return json.Marshal(function{Type: "function", Name: d.Name, Description: d.Description, Parameters: d.Input})
	case FormatAnthropic:
		return json.Marshal(function{Name: d.Name, Description: d.Description, InputSchema: d.Input})
	case FormatGemini:
		return json.Marshal(function{Name: d.Name, Description: d.Description, Parameters: d.Input})
	}
	return d.marshalMCP()
}

// marshalMCP writes the tool of MCP 2025-11-25. The hints follow from the
// kind; they never change who is asked.
func (d Definition) marshalMCP() ([]byte, error) {
	type annotations struct {
		Title       string `json:"title,omitempty"`
		ReadOnly    bool   `json:"readOnlyHint"`
		Destructive bool   `json:"destructiveHint"`
		OpenWorld   bool   `json:"openWorldHint"`
	}
	read := d.Kind == KindRead || d.Kind == KindSearch || d.Kind == KindFetch || d.Kind == KindThink
	return json.Marshal(struct {
		Name         string          `json:"name"`
		Title        string          `json:"title,omitempty"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
		Annotations  annotations     `json:"annotations"`
	}{d.Name, d.Title, d.Description, d.Input, d.Output, annotations{
		d.Title, read, !read, d.Kind != KindRead && d.Kind != KindSearch && d.Kind != KindThink && d.Kind != KindEdit,
	}})
}
