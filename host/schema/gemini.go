package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Gemini's function declarations take a subset of OpenAPI 3.0 schemas: no
// references, one type, string enums, no additionalProperties
// (ai.google.dev/api/caching#Schema). What cannot be said in it is said in the
// description where it helps the model; Invoke checks the real schema.

// maxGemini bounds the copy, in which references are written out.
const maxGemini = 5_000

// Gemini returns a tool's schema in Gemini's subset, nil for a tool without
// parameters.
func Gemini(raw json.RawMessage) (json.RawMessage, error) {
	plain, err := Plain(raw)
	if err != nil {
		return nil, err
	}
	root, err := parseSchema(plain)
	if err != nil {
		return nil, err
	}
	g := &gemini{root: root}
	out := g.schema(root, nil)
	if g.nodes > maxGemini {
		return nil, fmt.Errorf("the schema has more than %d subschemas when its references are written out", maxGemini)
	}
	if props, _ := out["properties"].(map[string]any); len(props) == 0 {
		return nil, nil
	}
	return encode(out)
}

type gemini struct {
	root  map[string]any
	nodes int
}

// kept are the keywords that mean the same in both.
var kept = []string{"title", "description", "minItems", "maxItems", "minProperties", "maxProperties",
	"minLength", "maxLength", "pattern", "minimum", "maximum", "default", "example"}

// schema converts one subschema. open are the references being written out.
func (g *gemini) schema(v any, open []string) map[string]any {
	return finished(g.part(v, open))
}

// finished makes a part a whole: with a type, items, and no more required than
// there is.
func finished(out map[string]any) map[string]any {
	if out["type"] == nil && out["anyOf"] == nil {
		out["type"] = guess(out)
	}
	if out["type"] == "ARRAY" && out["items"] == nil {
		out["items"] = map[string]any{"type": "STRING"}
	}
	props, _ := out["properties"].(map[string]any)
	if out["type"] == "OBJECT" && len(props) == 0 { // refused; Coerce reads the string
		text, _ := out["description"].(string)
		out["type"], out["description"] = "STRING", strings.TrimSpace(text+" A JSON object, written as a string.")
		delete(out, "properties")
	}
	req := slices.DeleteFunc(slices.Clone(names(out["required"])), func(n string) bool { return props[n] == nil })
	if delete(out, "required"); len(req) > 0 {
		out["required"] = req
	}
	return out
}

// part converts a subschema that may be merged into another.
func (g *gemini) part(v any, open []string) map[string]any {
	m, _ := v.(map[string]any)
	out := map[string]any{}
	if g.nodes++; g.nodes > maxGemini {
		return out
	}
	if ref, ok := m["$ref"].(string); ok {
		return g.reference(m, ref, open)
	}
	for _, k := range kept {
		if v, ok := m[k]; ok {
			out[k] = v
		}
	}
	g.types(m, out, open)
	g.values(m, out)
	g.members(m, out, open)
	g.alternatives(m, out, open)
	return out
}

// guess names a type where a schema accepts any, which Gemini cannot say.
func guess(out map[string]any) string {
	switch {
	case out["properties"] != nil:
		return "OBJECT"
	case out["items"] != nil:
		return "ARRAY"
	}
	return "STRING"
}

func (g *gemini) reference(m map[string]any, ref string, open []string) map[string]any {
	target, at, err := follow(g.root, ref)
	if err != nil || slices.Contains(open, at) || at == "" {
		return map[string]any{"type": "OBJECT", "description": "The same form again."}
	}
	out := g.part(target, append(slices.Clip(open), at))
	if d, ok := m["description"].(string); ok {
		out["description"] = d
	}
	return out
}

func (g *gemini) types(m, out map[string]any, open []string) {
	list := names(m["type"])
	if t, ok := m["type"].(string); ok {
		list = []string{t}
	}
	rest := slices.DeleteFunc(slices.Clone(list), func(t string) bool { return t == "null" })
	if len(rest) < len(list) {
		out["nullable"] = true
	}
	if len(rest) == 1 {
		out["type"] = strings.ToUpper(rest[0])
	} else if len(rest) > 1 {
		var alt []any
		for _, t := range rest {
			one := map[string]any{"type": t}
			for _, k := range [...]string{"items", "prefixItems", "properties", "required"} {
				if v, ok := m[k]; ok && (t == "array") == strings.HasSuffix(strings.ToLower(k), "items") && (t == "array" || t == "object") {
					one[k] = v
				}
			}
			alt = append(alt, g.schema(one, open))
		}
		out["anyOf"] = alt
	}
	format, _ := m["format"].(string)
	fits := map[string][]string{"STRING": {"enum", "date-time"}, "INTEGER": {"int32", "int64"}, "NUMBER": {"float", "double"}}
	if t, _ := out["type"].(string); slices.Contains(fits[t], format) {
		out["format"] = format
	}
}

// values writes enum and const: an enum of strings as such, others in words.
func (g *gemini) values(m, out map[string]any) {
	list, _ := m["enum"].([]any)
	if c, ok := m["const"]; ok {
		list = []any{c}
	}
	if len(list) == 0 {
		return
	}
	var words []any
	for _, v := range list {
		switch v := v.(type) {
		case string:
			words = append(words, v)
		case nil:
			out["nullable"] = true
		}
	}
	if t := out["type"]; len(words) > 0 && (t == nil || t == "STRING") {
		out["type"], out["enum"] = "STRING", words
		return
	}
	if out["type"] == nil {
		out["type"] = typeOfAll(list)
	}
	told, _ := encode(list)
	text, _ := out["description"].(string)
	out["description"] = strings.TrimSpace(text + " One of: " + strings.Trim(string(told), "[]") + ".")
}

// typeOfAll is the Gemini type of values that are not strings.
func typeOfAll(list []any) string {
	var t types
	for _, v := range list {
		t |= typeOf(v)
	}
	switch t &^ tNull {
	case tInteger:
		return "INTEGER"
	case tFraction, tInteger | tFraction:
		return "NUMBER"
	case tBool:
		return "BOOLEAN"
	}
	return "STRING"
}

func (g *gemini) members(m, out map[string]any, open []string) {
	if out["anyOf"] != nil {
		return // several types: each has its own members
	}
	if props, ok := m["properties"].(map[string]any); ok && len(props) > 0 {
		conv := make(map[string]any, len(props))
		for _, name := range sortedKeys(props) {
			conv[name] = g.schema(props[name], open)
		}
		out["properties"] = conv
	}
	if req := names(m["required"]); len(req) > 0 {
		out["required"] = req
	}
	tuple, _ := m["prefixItems"].([]any)
	if list, ok := m["items"].([]any); ok {
		tuple = list
	}
	switch {
	case len(tuple) == 1:
		out["items"] = g.schema(tuple[0], open)
	case len(tuple) > 1:
		var alt []any
		for _, t := range tuple {
			alt = append(alt, g.schema(t, open))
		}
		out["items"] = map[string]any{"anyOf": alt}
	case m["items"] != nil:
		out["items"] = g.schema(m["items"], open)
	}
}

// alternatives writes anyOf and oneOf as anyOf, null among them as nullable,
// and puts allOf into the schema itself. Alternatives of an object that has
// properties of its own become optional properties.
func (g *gemini) alternatives(m, out map[string]any, open []string) {
	all, _ := m["allOf"].([]any)
	for _, v := range all {
		merge(out, g.part(v, open))
	}
	for _, key := range [...]string{"anyOf", "oneOf"} {
		list, _ := m[key].([]any)
		var alt []map[string]any
		for _, v := range list {
			if b, ok := v.(map[string]any); ok && b["type"] == "null" {
				out["nullable"] = true
				continue
			}
			if b := g.part(v, open); b["type"] != nil || b["properties"] != nil || b["items"] != nil || b["anyOf"] != nil {
				alt = append(alt, b)
			}
		}
		switch {
		case len(alt) == 1:
			merge(out, alt[0])
		case len(alt) > 1 && out["properties"] != nil:
			for _, b := range alt {
				delete(b, "required")
				merge(out, b)
			}
		case len(alt) > 1:
			var forms []any
			for _, b := range alt {
				forms = append(forms, finished(b))
			}
			out["anyOf"] = forms
			delete(out, "type")
		}
	}
}

// merge adds what from says and into does not; properties and required add up.
func merge(into, from map[string]any) {
	for k, v := range from {
		have, ok := into[k]
		if !ok {
			into[k] = v
			continue
		}
		switch k {
		case "properties":
			props, more := have.(map[string]any), v.(map[string]any)
			for name, s := range more {
				if _, ok := props[name]; !ok {
					props[name] = s
				}
			}
		case "required":
			into[k] = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(names(have)), names(v)...))))
		}
	}
}
