package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/schema"
)

// Bounds of what one server may list.
const (
	maxTools   = 1000
	maxPages   = 100
	maxListing = 16 << 20 // bytes of all definitions
	maxRefused = 50       // reasons that are kept
)

// definition is a tool as a server lists it, and as it is offered.
type definition struct {
	Tool   string // the server's name
	Digest string // of all that a model or person is told
	Raw    json.RawMessage
	Spec   host.Spec
	Flags  []string
}

// define reads one definition. The schemas are kept whole, but for invisible
// characters; one that cannot be used refuses the tool.
func define(server string, raw json.RawMessage) (*definition, error) {
	var t struct {
		Name        string          `json:"name"`
		Title       string          `json:"title"`
		Description string          `json:"description"`
		Input       json.RawMessage `json:"inputSchema"`
		Output      json.RawMessage `json:"outputSchema"`
		Annotations struct {
			Title string `json:"title"`
		} `json:"annotations"`
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("its definition cannot be read: %w", err)
	}
	if t.Name == "" || len(t.Name) > 256 {
		return nil, fmt.Errorf("its name has %d bytes", len(t.Name))
	}
	d := &definition{Tool: t.Name, Raw: raw}
	if t.Title == "" {
		t.Title = t.Annotations.Title
	}
	d.Spec = host.Spec{Origin: host.Origin{Source: host.MCP, Name: server}, Kind: host.KindOther}
	var flags []string
	d.Spec.Title, flags = told("the title", t.Title, maxTitle)
	d.Flags = append(d.Flags, flags...)
	d.Spec.Description, flags = told("the description", t.Description, maxDescription)
	d.Flags = append(d.Flags, flags...)
	var err error
	if d.Spec.Input, err = d.schema("input", t.Input); err != nil {
		return nil, err
	}
	if len(t.Output) > 0 && string(t.Output) != "null" {
		if d.Spec.Output, err = d.schema("output", t.Output); err != nil {
			return nil, err
		}
	}
	sum := sha256.New()
	_ = json.NewEncoder(sum).Encode([]any{t.Name, t.Title, t.Description, compact(t.Input), compact(t.Output)})
	d.Digest = hex.EncodeToString(sum.Sum(nil))
	return d, nil
}

// flagged are the flags with the name of the tool.
func (d *definition) flagged() (out []string) {
	for _, f := range d.Flags {
		out = append(out, d.Spec.Name+": "+f)
	}
	return out
}

func (d *definition) schema(which string, raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage(`{"type":"object"}`)
	}
	if len(raw) > schema.MaxSchemaSize {
		return nil, fmt.Errorf("its %s schema has %d bytes, at most %d are taken", which, len(raw), schema.MaxSchemaSize)
	}
	raw, hidden := cleanSchema(raw)
	if hidden > 0 {
		d.Flags = append(d.Flags, fmt.Sprintf("the %s schema held %d invisible characters", which, hidden))
	}
	raw, err := schema.Object(raw)
	if err == nil {
		_, err = schema.Compile(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("its %s schema cannot be used: %w", which, err)
	}
	return raw, nil
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return string(raw)
	}
	return b.String()
}

// defineAll reads a listing. What cannot be offered is told by name; a name
// that comes twice counts once.
func defineAll(server string, raws []json.RawMessage, want func(string) bool) (defs []*definition, refused []string) {
	seen := map[string]bool{}
	var tools []string
	for _, raw := range raws {
		d, err := define(server, raw)
		if err != nil {
			refused = append(refused, fmt.Sprintf("%s: %v", nameOf(raw), err))
			continue
		}
		if seen[d.Tool] || !want(d.Tool) {
			continue
		}
		seen[d.Tool] = true
		defs, tools = append(defs, d), append(tools, d.Tool)
	}
	called := names(server, tools)
	for _, d := range defs {
		d.Spec.Name = called[d.Tool]
	}
	if len(refused) > maxRefused {
		refused = append(refused[:maxRefused], fmt.Sprintf("and %d more", len(refused)-maxRefused))
	}
	return defs, refused
}

func nameOf(raw json.RawMessage) string {
	var t struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(raw, &t) != nil || t.Name == "" {
		return "(a tool without a name)"
	}
	name, _ := told("", t.Name, 80)
	return name
}
