// Package wasmbin reads and writes core WebAssembly modules without trusting
// any number that a module declares.
//
// It guarantees: parsing allocates a small constant amount of memory, whatever
// counts a module declares, because sections are slices of the input and every
// vector is visited by an iterator that yields one element at a time; no input
// makes it panic or loop; every failure is an [*Error] that says what is wrong,
// where, and what to do. It accepts the instructions and sections of
// WebAssembly 2.0 (the feature set that the engine enables: MVP, sign
// extension, saturating conversions, bulk memory, multi-value, reference types,
// SIMD) and refuses later proposals by name.
//
// It is no validator: types are checked by the runtime, in a child process.
//
// Iterators yield (element, nil) until the end, or a last (zero, error):
//
//	for im, err := range m.Imports() {
//		if err != nil {
//			return err
//		}
//		…
//	}
//
// Slices and iterators alias the input, which must not change meanwhile.
package wasmbin

import "iter"

// SectionID is the number of a section in the binary format.
type SectionID byte

// The sections of a core module.
const (
	Custom SectionID = iota
	TypeSection
	ImportSection
	FunctionSection
	TableSection
	MemorySection
	GlobalSection
	ExportSection
	StartSection
	ElementSection
	CodeSection
	DataSection
	DataCountSection
	numSections
)

var sectionNames = [numSections]string{"custom", "type", "import", "function", "table", "memory", "global",
	"export", "start", "element", "code", "data", "data count"}

func (id SectionID) String() string {
	if id < numSections {
		return sectionNames[id]
	}
	return "unknown"
}

// sequence is the order of sections in a module.
var sequence = [...]SectionID{TypeSection, ImportSection, FunctionSection, TableSection, MemorySection, GlobalSection,
	ExportSection, StartSection, ElementSection, DataCountSection, CodeSection, DataSection}

func (id SectionID) rank() int {
	for i, s := range sequence {
		if s == id {
			return i + 1
		}
	}
	return 0
}

var header = [8]byte{0, 'a', 's', 'm', 1, 0, 0, 0}

type section struct {
	body []byte // nil when absent
	off  int
}

// Module is a module cut into sections. The zero value is the empty module.
// Copying the struct is cheap and gives an independent module: Set on the copy
// does not change the original.
type Module struct {
	sections [numSections]section
	raw      []byte // for custom sections; nil in a module that was built
}

// Parse cuts b into sections and checks their order. It does not look inside:
// errors there appear while iterating.
func Parse(b []byte) (*Module, error) {
	if len(b) < len(header) || [8]byte(b[:8]) != header {
		return nil, identify(b)
	}
	m := &Module{raw: b}
	c := cursor{b: b, p: len(header)}
	last := 0
	for c.err == nil && c.p < len(b) {
		at := c.p
		id := SectionID(c.byte())
		body := c.take(c.u32())
		if c.err != nil {
			c.err.Detail = "inside the " + id.String() + " section: " + c.err.Detail
			break
		}
		off := c.p - len(body)
		switch {
		case id == Custom:
			nc := cursor{b: body, base: off}
			if nc.take(nc.u32()); nc.err != nil {
				return nil, nc.err
			}
		case id == 13:
			c.unsupported("exception handling (a tag section)")
		case id >= numSections:
			c.failAt(at, ErrMalformed, "unknown section %d", id)
		case id.rank() <= last:
			c.failAt(at, ErrMalformed, "the %s section is repeated or out of order", id)
		default:
			last = id.rank()
			m.sections[id] = section{body, off}
		}
	}
	if c.err != nil {
		return nil, c.err
	}
	return m, nil
}

// Encode writes the module without its custom sections: nothing after vetting
// needs them, and the runtime must not parse them.
func (m *Module) Encode() []byte {
	n := len(header)
	for _, s := range m.sections {
		n += len(s.body) + 6
	}
	out := append(make([]byte, 0, n), header[:]...)
	for _, id := range sequence {
		if b := m.sections[id].body; b != nil {
			out = append(AppendUint(append(out, byte(id)), uint32(len(b))), b...)
		}
	}
	return out
}

// Has reports whether the section is present.
func (m *Module) Has(id SectionID) bool { return m.sections[id].body != nil }

// Size is the length of a section's content in bytes.
func (m *Module) Size(id SectionID) int { return len(m.sections[id].body) }

// Count is the declared length of a vector section: zero when it is absent or
// when the declared number cannot be right.
func (m *Module) Count(id SectionID) uint32 {
	c := m.open(id)
	if !m.Has(id) {
		return 0
	}
	if id == DataCountSection {
		return c.u32()
	}
	return c.count(1)
}

// Raw gives the encoded elements of a vector section, without the count.
func (m *Module) Raw(id SectionID) []byte {
	if !m.Has(id) {
		return nil
	}
	c := m.open(id)
	c.u32()
	return c.b[c.p:]
}

// Set replaces a vector section by n encoded elements. Zero elements remove it.
func (m *Module) Set(id SectionID, n uint32, elements ...[]byte) {
	if n == 0 {
		m.sections[id] = section{}
		return
	}
	size := 5
	for _, e := range elements {
		size += len(e)
	}
	b := AppendUint(make([]byte, 0, size), n)
	for _, e := range elements {
		b = append(b, e...)
	}
	m.sections[id] = section{body: b}
}

// SetStart replaces the start section.
func (m *Module) SetStart(function uint32) {
	m.sections[StartSection] = section{body: AppendUint(nil, function)}
}

// Remove drops a section.
func (m *Module) Remove(id SectionID) { m.sections[id] = section{} }

// Start gives the index of the start function.
func (m *Module) Start() (function uint32, ok bool, err error) {
	if !m.Has(StartSection) {
		return 0, false, nil
	}
	c := m.open(StartSection)
	function = c.u32()
	if c.err == nil && c.left() != 0 {
		c.fail(ErrMalformed, "bytes after the start function")
	}
	return function, true, c.failure()
}

// CustomSection is a named section outside the specification's own.
type CustomSection struct {
	Name string
	Data []byte
}

// Customs yields the custom sections of a parsed module, in order.
func (m *Module) Customs() iter.Seq[CustomSection] {
	return func(yield func(CustomSection) bool) {
		if len(m.raw) == 0 {
			return
		}
		c := cursor{b: m.raw, p: len(header)}
		for c.err == nil && c.p < len(c.b) {
			id := SectionID(c.byte())
			body := cursor{b: c.take(c.u32())}
			if id != Custom {
				continue
			}
			name := string(body.take(body.u32()))
			if body.err == nil && !yield(CustomSection{name, body.b[body.p:]}) {
				return
			}
		}
	}
}

func (m *Module) open(id SectionID) cursor {
	return cursor{b: m.sections[id].body, base: m.sections[id].off}
}

// vector iterates over a section whose elements take at least size bytes.
func vector[T any](m *Module, id SectionID, size int, read func(c *cursor, i uint32) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if !m.Has(id) {
			return
		}
		var zero T
		c := m.open(id)
		n := c.count(size)
		for i := uint32(0); i < n && c.err == nil; i++ {
			if v := read(&c, i); c.err == nil && !yield(v, nil) {
				return
			}
		}
		if c.err == nil && c.left() != 0 {
			c.fail(ErrMalformed, "%d bytes after the last element of the %s section", c.left(), id)
		}
		if c.err != nil {
			yield(zero, c.err)
		}
	}
}
