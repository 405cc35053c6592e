package config

import (
	"fmt"
	"github.com/elfhost/elfhost/internal/config/strict"
	"reflect"
	"slices"
	"strings"
)

// Key is one key of config.toml, from the table in Config, or of policy.toml. A part of Name that
// a person chooses is NAME: "providers.NAME.kind".
type Key struct {
	Name    string
	Type    string // "string", "duration", "size", "integer", "number", "boolean", "strings", "table of strings"
	Default string
	Doc     string
	OneOf   []string
	User    bool // counts in the user's file only
	Trust   bool // in a project, counts only where the folder is trusted
	Narrow  bool // in a project that nobody trusts, counts only where it allows less
	System  bool // counts in the system policy only
}

// Keys lists every key, in the order of the documentation.
func Keys() []Key { return keysOf(reflect.TypeFor[Config](), "", Key{}) }

func keysOf(t reflect.Type, prefix string, from Key) []Key {
	var out []Key
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("toml")
		if name == "" {
			continue
		}
		k := Key{Name: prefix + name, Default: f.Tag.Get("default"), Doc: f.Tag.Get("doc"),
			User: from.User || f.Tag.Get("user") == "only" || f.Tag.Get("layer") == "user", System: f.Tag.Get("layer") == "system", Trust: from.Trust || f.Tag.Get("trust") == "only", Narrow: from.Narrow || f.Tag.Get("trust") == "narrow"}
		if set := f.Tag.Get("oneof"); set != "" {
			k.OneOf = strings.Fields(set)
		}
		switch ft := f.Type; {
		case typeName(ft) != "":
			k.Type = typeName(ft)
			out = append(out, k)
		case ft.Kind() == reflect.Struct:
			out = append(out, keysOf(ft, k.Name+".", k)...)
		case ft.Kind() == reflect.Map:
			out = append(out, keysOf(ft.Elem(), k.Name+".NAME.", k)...)
		case ft.Kind() == reflect.Slice:
			out = append(out, keysOf(ft.Elem(), k.Name+"[].", k)...)
		}
	}
	return out
}

func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[strict.Duration]():
		return "duration"
	case reflect.TypeFor[strict.Size]():
		return "size"
	case reflect.TypeFor[[]string]():
		return "strings"
	case reflect.TypeFor[[][]string]():
		return "lists of strings"
	case reflect.TypeFor[map[string]string]():
		return "table of strings"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Interface: // texts reads it
		return "strings"
	case reflect.Float64:
		return "number"
	case reflect.Bool:
		return "boolean"
	}
	return ""
}

// Explanation says what a key is set to, and by what.
type Explanation struct {
	Key   string
	Value string // secrets are left out
	Layer string // "default", "user", "project"
	Where string // file:line of what won; "" for a default
	Doc   string
}

// Explain explains a key, or every set key below it. An unknown key is an
// error that names the nearest one.
func (c *Config) Explain(key string) ([]Explanation, error) {
	var out []Explanation
	c.explain(reflect.ValueOf(c).Elem(), "", &out)
	key = strings.TrimSuffix(key, ".")
	hit := func(name string) bool {
		return key == "" || name == key || strings.HasPrefix(name, key+".") || strings.HasPrefix(name, key+"[")
	}
	out = slices.DeleteFunc(out, func(e Explanation) bool { return !hit(e.Key) })
	if len(out) > 0 {
		return out, nil
	}
	near, best := "", -1
	for _, k := range Keys() {
		if hit(k.Name) || matchesKey(k.Name, key) {
			return nil, nil // known, and nothing is set
		}
		if d := common(k.Name, key); d > best {
			near, best = k.Name, d
		}
	}
	return nil, fmt.Errorf("unknown key %q (did you mean %s?)", key, near)
}

// matchesKey reports whether key is name, or a table above it, with NAME replaced.
func matchesKey(name, key string) bool {
	n, k := strings.Split(name, "."), strings.Split(key, ".")
	if len(k) > len(n) {
		return false
	}
	for i := range k {
		if n[i] != k[i] && n[i] != "NAME" && strings.TrimSuffix(n[i], "[]") != k[i] {
			return false
		}
	}
	return true
}

func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if strings.Contains(a, b) {
		n += len(b)
	}
	return n
}

func (c *Config) explain(v reflect.Value, prefix string, out *[]Explanation) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Tag.Get("toml") == "" {
			continue
		}
		key, x := prefix+f.Tag.Get("toml"), v.Field(i)
		switch {
		case typeName(f.Type) != "":
			o, set := c.origin[key]
			if !set && strings.Contains(prefix, ".") && x.IsZero() {
				continue // an entry of a table that leaves the key out
			}
			e := Explanation{Key: key, Value: show(x), Layer: "default", Doc: f.Tag.Get("doc")}
			if set {
				e.Layer, e.Where = o.layer, o.where
			}
			if f.Tag.Get("secret") != "" && x.Len() > 0 {
				e.Value = fmt.Sprintf("(%d values, not shown)", x.Len())
			}
			*out = append(*out, e)
		case f.Type.Kind() == reflect.Struct:
			c.explain(x, key+".", out)
		case f.Type.Kind() == reflect.Map:
			names := x.MapKeys()
			slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
			for _, k := range names {
				c.explain(x.MapIndex(k), key+"."+k.String()+".", out)
			}
		case f.Type.Kind() == reflect.Slice && x.Len() > 0:
			o := c.origin[key]
			*out = append(*out, Explanation{Key: key, Value: fmt.Sprintf("(%d entries)", x.Len()), Layer: o.layer, Where: o.where})
		}
	}
}

func show(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case strict.Duration:
		return x.String()
	case strict.Size:
		return x.String()
	case []string:
		return strings.Join(x, ", ")
	case [][]string:
		parts := make([]string, len(x))
		for i, p := range x {
			parts[i] = strings.Join(p, " + ")
		}
		return strings.Join(parts, ", ")
	case map[string]string:
		return fmt.Sprintf("(%d entries)", len(x))
	}
	return fmt.Sprint(v.Interface())
}
