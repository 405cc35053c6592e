package pdk

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// schema is the part of JSON Schema 2020-12 that Go types and tags give rise
// to. Its keys are written in this order.
type schema struct {
	Type        string      `json:"type,omitempty"`
	Description string      `json:"description,omitempty"`
	Ref         string      `json:"$ref,omitempty"`
	Format      string      `json:"format,omitempty"`
	Encoding    string      `json:"contentEncoding,omitempty"`
	Enum        []any       `json:"enum,omitempty"`
	Default     any         `json:"default,omitempty"`
	Minimum     *float64    `json:"minimum,omitempty"`
	Maximum     *float64    `json:"maximum,omitempty"`
	Properties  *properties `json:"properties,omitempty"`
	Required    []string    `json:"required,omitempty"`
	Items       *schema     `json:"items,omitempty"`
	MinItems    int         `json:"minItems,omitempty"`
	MaxItems    int         `json:"maxItems,omitempty"`
	Additional  any         `json:"additionalProperties,omitempty"` // false, or a *schema
	Defs        *properties `json:"$defs,omitempty"`
}

// properties keeps the order of the struct, which is the order of importance
// that the author chose; a map would lose it.
type properties struct {
	names   []string
	schemas []*schema
}

func (p *properties) set(name string, s *schema) {
	if i := slices.Index(p.names, name); i >= 0 {
		p.schemas[i] = s
		return
	}
	p.names, p.schemas = append(p.names, name), append(p.schemas, s)
}

func (p *properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range p.names {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(p.schemas[i])
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// inputSchema returns the JSON Schema of a struct type. A type or tag that has
// none panics: that is the author's mistake, found by the first test or build.
func inputSchema(t reflect.Type) json.RawMessage {
	r := reflector{}
	s := r.of(t)
	if s.Ref != "" { // the root refers to itself somewhere
		s = &schema{Ref: s.Ref}
	}
	if len(r.cyclic) > 0 {
		s.Defs = &properties{}
		for _, c := range r.cyclic {
			s.Defs.set(c.Name(), r.done[c])
		}
	}
	data, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("pdk: schema of %s: %v", t, err))
	}
	return data
}

// reflector walks types. A struct that contains itself becomes a reference
// into $defs.
type reflector struct {
	open   []reflect.Type
	cyclic []reflect.Type
	done   map[reflect.Type]*schema
}

var (
	textType   = reflect.TypeFor[encoding.TextMarshaler]()
	rawType    = reflect.TypeFor[json.RawMessage]()
	numberType = reflect.TypeFor[json.Number]()
	timeType   = reflect.TypeFor[time.Time]()
	jsonType   = reflect.TypeFor[json.Marshaler]()
	byteSlice  = reflect.TypeFor[[]byte]()
)

func (r *reflector) of(t reflect.Type) *schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == timeType:
		return &schema{Type: "string", Format: "date-time"}
	case t == numberType:
		return &schema{Type: "number"}
	case t == byteSlice:
		return &schema{Type: "string", Encoding: "base64"}
	case t == rawType, t.Kind() == reflect.Interface:
		return &schema{}
	case t.Implements(textType), reflect.PointerTo(t).Implements(textType):
		return &schema{Type: "string"}
	case t.Implements(jsonType), reflect.PointerTo(t).Implements(jsonType):
		return &schema{}
	}
	switch t.Kind() {
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.String:
		return &schema{Type: "string"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &schema{Type: "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return &schema{Type: "integer", Minimum: new(float64)}
	case reflect.Float32, reflect.Float64:
		return &schema{Type: "number"}
	case reflect.Slice:
		return &schema{Type: "array", Items: r.of(t.Elem())}
	case reflect.Array:
		return &schema{Type: "array", Items: r.of(t.Elem()), MinItems: t.Len(), MaxItems: t.Len()}
	case reflect.Map:
		return &schema{Type: "object", Additional: r.of(t.Elem())}
	case reflect.Struct:
		return r.structure(t)
	}
	panic(fmt.Sprintf("pdk: %s has no JSON Schema", t))
}

func (r *reflector) structure(t reflect.Type) *schema {
	if slices.Contains(r.open, t) {
		if !slices.Contains(r.cyclic, t) {
			r.cyclic = append(r.cyclic, t)
		}
		return &schema{Ref: "#/$defs/" + t.Name()}
	}
	r.open = append(r.open, t)
	s := &schema{Type: "object", Properties: &properties{}, Additional: false}
	r.fields(t, s)
	r.open = r.open[:len(r.open)-1]
	if slices.Contains(r.cyclic, t) {
		if r.done == nil {
			r.done = map[reflect.Type]*schema{}
		}
		r.done[t] = s
		return &schema{Ref: "#/$defs/" + t.Name()}
	}
	return s
}

func (r *reflector) fields(t reflect.Type, s *schema) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		embedded := f.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case name == "-" && options == "":
			continue
		case f.Anonymous && name == "" && embedded.Kind() == reflect.Struct:
			r.fields(embedded, s)
			continue
		case !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		list := strings.Split(options, ",")
		p := r.of(f.Type)
		if slices.Contains(list, "string") {
			p = &schema{Type: "string"}
		}
		annotate(p, f)
		s.Properties.set(name, p)
		optional := slices.Contains(list, "omitempty") || slices.Contains(list, "omitzero") || f.Type.Kind() == reflect.Pointer
		if !optional && !slices.Contains(s.Required, name) {
			s.Required = append(s.Required, name)
		}
	}
}

// annotate adds what a field's tags say about its values. On a list, enum, min
// and max are about the elements.
func annotate(p *schema, f reflect.StructField) {
	p.Description = f.Tag.Get("desc")
	if p.Description == "" {
		p.Description = f.Tag.Get("description")
	}
	target := p
	for target.Items != nil {
		target = target.Items
	}
	if list := f.Tag.Get("enum"); list != "" {
		for _, v := range strings.Split(list, ",") {
			target.Enum = append(target.Enum, literal(f, target.Type, v))
		}
	}
	if v, ok := f.Tag.Lookup("default"); ok {
		p.Default = literal(f, p.Type, v)
	}
	target.Minimum = bound(f, "min", target.Minimum)
	target.Maximum = bound(f, "max", target.Maximum)
}

func bound(f reflect.StructField, tag string, otherwise *float64) *float64 {
	v, ok := f.Tag.Lookup(tag)
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil {
		panic(fmt.Sprintf("pdk: field %s: the tag %s:%q is not a number", f.Name, tag, v))
	}
	return &n
}

// literal reads a tag's value as the JSON type of the field.
func literal(f reflect.StructField, typ, v string) any {
	if typ == "string" {
		return v
	}
	var out any
	dec := json.NewDecoder(strings.NewReader(v))
	dec.UseNumber()
	if err := dec.Decode(&out); err != nil {
		panic(fmt.Sprintf("pdk: field %s: %q is not a JSON value", f.Name, v))
	}
	return out
}
