package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Where a schema object holds schemas, for those who rewrite one.
var (
	holdsOne  = []string{"not", "if", "then", "else", "items", "additionalProperties", "additionalItems", "unevaluatedProperties", "unevaluatedItems", "contains", "propertyNames", "contentSchema"}
	holdsList = []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	holdsMap  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)

// subschemas calls f for each schema directly in m and stores what it returns.
func subschemas(m map[string]any, f func(any) any) {
	for _, k := range holdsOne {
		switch v := m[k].(type) {
		case map[string]any, bool:
			m[k] = f(v)
		}
	}
	for _, k := range holdsList {
		if list, ok := m[k].([]any); ok {
			for i := range list {
				list[i] = f(list[i])
			}
		}
	}
	for _, k := range holdsMap {
		if named, ok := m[k].(map[string]any); ok {
			for _, name := range sortedKeys(named) {
				named[name] = f(named[name])
			}
		}
	}
}

// Object returns a tool's schema as MCP wants it: "type" is "object" at the
// root, everything else as it was written.
func Object(raw json.RawMessage) (json.RawMessage, error) {
	root, err := parseSchema(raw)
	if err != nil {
		return nil, err
	}
	if root["type"] == "object" {
		return raw, nil
	}
	root["type"] = "object"
	return encode(root)
}

// Plain returns a tool's schema as OpenAI and Anthropic want it: an object at
// the root, with properties and without alternatives there, items in every
// array. Local references into the middle of the schema are moved to $defs;
// what already is in $defs, recursive or not, stays.
func Plain(raw json.RawMessage) (json.RawMessage, error) {
	root, err := parseSchema(raw)
	if err != nil {
		return nil, err
	}
	r := &rewriter{orig: root, moved: map[string]string{}, defs: map[string]any{}}
	out, _ := r.copy(root).(map[string]any)
	if r.err != nil {
		return nil, r.err
	}
	if len(r.defs) > 0 {
		defs, _ := out["$defs"].(map[string]any)
		if defs == nil {
			defs = map[string]any{}
			out["$defs"] = defs
		}
		maps.Copy(defs, r.defs)
	}
	delete(out, "$schema")
	delete(out, "$id")
	flattenRoot(out)
	return encode(out)
}

func parseSchema(raw json.RawMessage) (map[string]any, error) {
	if len(raw) > MaxSchemaSize {
		return nil, fmt.Errorf("the schema is %d bytes, over the limit of %d", len(raw), MaxSchemaSize)
	}
	v, err := parse(raw, MaxSchemaDepth)
	if err != nil {
		return nil, fmt.Errorf("reading a schema: %w", err)
	}
	switch v := v.(type) {
	case map[string]any:
		return v, nil
	case bool:
		return map[string]any{"type": "object"}, nil
	}
	return nil, fmt.Errorf("reading a schema: it is not an object")
}

// rewriter copies a schema and moves the targets of references to $defs.
type rewriter struct {
	orig  map[string]any
	moved map[string]string // pointer to name in $defs
	defs  map[string]any
	nodes int
	err   error
}

func (r *rewriter) copy(v any) any {
	m, ok := v.(map[string]any)
	if !ok || r.err != nil {
		return v
	}
	if r.nodes++; r.nodes > 2*maxSubschemas {
		r.err = fmt.Errorf("the schema has more than %d subschemas", 2*maxSubschemas)
		return v
	}
	out := shallow(m)
	subschemas(out, r.copy)
	if ref, ok := m["$ref"].(string); ok {
		out["$ref"] = r.reference(ref)
	}
	if hasType(out, "array") && out["items"] == nil && out["prefixItems"] == nil {
		out["items"] = map[string]any{}
	}
	return out
}

// shallow copies m and the lists and maps that hold schemas, so that they can
// be replaced one by one.
func shallow(m map[string]any) map[string]any {
	out := maps.Clone(m)
	for _, k := range holdsList {
		if list, ok := out[k].([]any); ok {
			out[k] = slices.Clone(list)
		}
	}
	for _, k := range holdsMap {
		if named, ok := out[k].(map[string]any); ok {
			out[k] = maps.Clone(named)
		}
	}
	return out
}

func hasType(m map[string]any, want string) bool {
	switch t := m["type"].(type) {
	case string:
		return t == want
	case []any:
		return slices.Contains(t, any(want))
	}
	return false
}

// reference returns what a reference is rewritten to.
func (r *rewriter) reference(ref string) string {
	target, at, err := follow(r.orig, ref)
	if err != nil {
		r.err = err
		return ref
	}
	if at == "" {
		return "#"
	}
	if parts := strings.Split(at, "/"); len(parts) == 3 && (parts[1] == "$defs" || parts[1] == "definitions") {
		return "#" + at
	}
	name, ok := r.moved[at]
	if !ok {
		name = "ref" + strconv.Itoa(len(r.moved)+1)
		for taken(r.orig, name) {
			name += "_"
		}
		r.moved[at] = name
		r.defs[name] = r.copy(target)
	}
	return "#/$defs/" + name
}

func taken(root map[string]any, name string) bool {
	defs, _ := root["$defs"].(map[string]any)
	_, ok := defs[name]
	return ok
}

// follow finds the target of a local reference and its canonical pointer.
func follow(root map[string]any, ref string) (any, string, error) {
	frag, local := strings.CutPrefix(ref, "#")
	if !local {
		return nil, "", fmt.Errorf("the reference %q is not local", ref)
	}
	if frag == "/" {
		frag = ""
	}
	if frag != "" && !strings.HasPrefix(frag, "/") {
		d := &document{root: root, anchors: map[string]string{}}
		d.findAnchors(root, "")
		ptr, ok := d.anchors[frag]
		if !ok {
			return nil, "", fmt.Errorf("the reference %q leads nowhere", ref)
		}
		frag = ptr
	}
	v, at, ok := lookup(root, frag)
	if !ok {
		return nil, "", fmt.Errorf("the reference %q leads nowhere", ref)
	}
	return v, at, nil
}
