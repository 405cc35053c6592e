package schema

import (
	"slices"
	"strings"
)

// flattenRoot takes alternatives out of the root, which the providers refuse:
// their properties are all offered, and required is what every one requires.
// The forms are told in the description; Invoke checks the real schema.
func flattenRoot(m map[string]any) {
	if m["properties"] == nil {
		m["properties"] = map[string]any{}
	}
	m["type"] = "object"
	if ref, ok := m["$ref"].(string); ok && ref != "#" {
		delete(m, "$ref")
		if target, _, err := follow(m, ref); err == nil {
			absorb(m, []any{target}, true)
		}
	}
	all, _ := m["allOf"].([]any)
	absorb(m, all, true)
	for _, key := range [...]string{"anyOf", "oneOf"} {
		alt, _ := m[key].([]any)
		absorb(m, alt, false)
	}
	for _, key := range [...]string{"allOf", "anyOf", "oneOf", "not", "enum", "const", "if", "then", "else"} {
		delete(m, key)
	}
}

// absorb merges the object schemas of a list into m.
func absorb(m map[string]any, list []any, all bool) {
	if len(list) == 0 {
		return
	}
	props := m["properties"].(map[string]any)
	var common []string
	var forms []string
	for i, v := range list {
		b := dereferenced(m, v)
		named, _ := b["properties"].(map[string]any)
		for _, name := range sortedKeys(named) {
			if have, ok := props[name]; !ok {
				props[name] = named[name]
			} else if !same(have, named[name]) {
				props[name] = either(have, named[name])
			}
		}
		req := names(b["required"])
		forms = append(forms, "`"+strings.Join(req, "`, `")+"`")
		switch {
		case all || i == 0:
			common = append(common, req...)
		default:
			common = slices.DeleteFunc(common, func(n string) bool { return !slices.Contains(req, n) })
		}
		if extra := b["additionalProperties"]; extra == true {
			delete(m, "additionalProperties")
		}
	}
	if !all {
		text, _ := m["description"].(string)
		m["description"] = strings.TrimSpace(text + " Give the parameters of one of these forms: " + strings.Join(forms, "; ") + ".")
	}
	required := names(m["required"])
	for _, n := range common {
		if !slices.Contains(required, n) {
			required = append(required, n)
		}
	}
	if len(required) > 0 {
		m["required"] = required
	}
}

// dereferenced follows the references at the top of a branch, a few of them.
func dereferenced(root map[string]any, v any) map[string]any {
	m, _ := v.(map[string]any)
	for range 8 {
		ref, ok := m["$ref"].(string)
		if !ok {
			break
		}
		target, _, err := follow(root, ref)
		if err != nil {
			return nil
		}
		m, _ = target.(map[string]any)
	}
	return m
}

func either(a, b any) any {
	if m, ok := a.(map[string]any); ok && len(m) == 1 {
		if alt, ok := m["anyOf"].([]any); ok {
			return map[string]any{"anyOf": append(slices.Clip(alt), b)}
		}
	}
	return map[string]any{"anyOf": []any{a, b}}
}

func same(a, b any) bool {
	x, errA := encode(a)
	y, errB := encode(b)
	return errA == nil && errB == nil && string(x) == string(y)
}

func names(v any) []string {
	var out []string
	switch v := v.(type) {
	case []string:
		return v
	case []any:
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
	}
	return out
}
