package ironclaw

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of a component that is read. Real tools have three modules and about
// forty imports and exports.
const (
	maxSections = 10_000
	maxNames    = 1_000
	maxName     = 1 << 10
	maxModules  = 64
)

// component is what is read of a component binary: its core modules, as slices
// of the input, and the names that it imports and exports.
type component struct {
	modules          [][]byte
	imports, exports []string
}

// Sections of the component format (Component Model, binary format).
const (
	sectionCustom     = 0
	sectionCoreModule = 1
	sectionImport     = 10
	sectionExport     = 11
	lastSection       = 11
)

var preamble = []byte{0, 'a', 's', 'm', 0x0d, 0, 1, 0}

// IsComponent reports whether the bytes begin like a component.
func IsComponent(b []byte) bool {
	return len(b) >= 8 && bytes.Equal(b[:4], preamble[:4]) && b[6] == 1 && b[7] == 0
}

// parse reads a component. Nothing that it declares is allocated; every name
// and module is a slice of the input.
func parse(b []byte) (c component, err error) {
	if !IsComponent(b) {
		return c, errors.New("these bytes are no component")
	}
	if !bytes.Equal(b[:8], preamble) {
		return c, fmt.Errorf("the component has version %#x, and this host reads 0xd", b[4])
	}
	r := reader{b: b, at: 8}
	for n := 0; r.at < len(b); n++ {
		if n == maxSections {
			return c, fmt.Errorf("the component has more than %d sections", maxSections)
		}
		at := r.at
		id := r.byte()
		body := r.take(r.u32())
		if r.failed {
			return c, fmt.Errorf("the component is cut off in the section at %#x", at)
		}
		switch {
		case id > lastSection:
			return c, fmt.Errorf("the component has an unknown section %d at %#x", id, at)
		case id == sectionCoreModule:
			if len(c.modules) == maxModules {
				return c, fmt.Errorf("the component has more than %d modules", maxModules)
			}
			c.modules = append(c.modules, body)
		case id == sectionImport:
			err = names(body, &c.imports, false)
		case id == sectionExport:
			err = names(body, &c.exports, true)
		}
		if err != nil {
			return c, fmt.Errorf("the section at %#x: %w", at, err)
		}
	}
	return c, nil
}

// names reads an import or an export section.
func names(body []byte, list *[]string, export bool) error {
	r := reader{b: body}
	for n := r.u32(); n > 0; n-- {
		if len(*list) == maxNames {
			return fmt.Errorf("more than %d names", maxNames)
		}
		kind := r.byte()
		name := r.take(r.u32())
		if kind == 2 { // a name with the rest of its version
			r.take(r.u32())
		}
		if export {
			r.sort()
			r.u32()
			if r.byte() == 1 {
				r.description()
			}
		} else {
			r.description()
		}
		switch {
		case r.failed || kind > 2:
			return errors.New("an import or an export is malformed")
		case len(name) > maxName || !utf8.Valid(name):
			return errors.New("a name is too long, or no UTF-8")
		}
		*list = append(*list, string(name))
	}
	if r.failed || r.at != len(body) {
		return errors.New("the imports or exports are malformed")
	}
	return nil
}

// reader reads the encoding that all of WebAssembly shares. After a failure it
// gives zeros.
type reader struct {
	b      []byte
	at     int
	failed bool
}

func (r *reader) byte() byte {
	if r.at >= len(r.b) {
		r.failed = true
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

func (r *reader) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v >= 1<<32 {
				break
			}
			return uint32(v)
		}
	}
	r.failed = true
	return 0
}

func (r *reader) take(n uint32) []byte {
	if r.failed || uint64(n) > uint64(len(r.b)-r.at) {
		r.failed = true
		return nil
	}
	r.at += int(n)
	return r.b[r.at-int(n) : r.at]
}

// sort reads what kind of thing an index is of.
func (r *reader) sort() byte {
	s := r.byte()
	if s == 0 { // of the core: one byte more says which
		r.byte()
	}
	if s > 5 {
		r.failed = true
	}
	return s
}

// description reads the type of an import or an export.
func (r *reader) description() {
	switch s := r.sort(); s {
	case 0, 1, 4, 5: // a type's index
		r.u32()
	case 2: // a value: equal to one, or of a type
		if r.byte() == 0 {
			r.u32()
		} else {
			r.valType()
		}
	case 3: // a type: equal to one, or a fresh resource
		if r.byte() == 0 {
			r.u32()
		}
	}
}

// valType is a primitive, one byte from 0x40 on, or a type's index.
func (r *reader) valType() {
	if r.at < len(r.b) && r.b[r.at] >= 0x40 && r.b[r.at] < 0x80 {
		r.at++
		return
	}
	r.u32()
}

// interfaceName cuts "near:agent/tool@0.4.1" into name and version.
func interfaceName(s string) (name, version string) {
	name, version, _ = strings.Cut(s, "@")
	return name, version
}
