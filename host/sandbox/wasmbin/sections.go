package wasmbin

import "iter"

// ValType is a value or reference type in its binary form.
type ValType byte

// The value types of WebAssembly 2.0.
const (
	I32       ValType = 0x7f
	I64       ValType = 0x7e
	F32       ValType = 0x7d
	F64       ValType = 0x7c
	V128      ValType = 0x7b
	FuncRef   ValType = 0x70
	ExternRef ValType = 0x6f
)

var valTypeNames = map[ValType]string{I32: "i32", I64: "i64", F32: "f32", F64: "f64", V128: "v128",
	FuncRef: "funcref", ExternRef: "externref"}

func (t ValType) String() string {
	if s, ok := valTypeNames[t]; ok {
		return s
	}
	return "unknown type"
}

func (t ValType) known() bool { return t >= V128 && t <= I32 || t.IsRef() }

// IsRef reports whether t is a reference type.
func (t ValType) IsRef() bool { return t == FuncRef || t == ExternRef }

// Kind says what an import or export is.
type Kind byte

// The kinds of imports and exports.
const (
	Function Kind = iota
	TableKind
	MemoryKind
	GlobalKind
)

func (k Kind) String() string {
	if k <= GlobalKind {
		return [...]string{"function", "table", "memory", "global"}[k]
	}
	return "unknown kind"
}

// Limits bound a table (entries) or a memory (pages of 64 KiB).
type Limits struct {
	Min, Max uint32
	HasMax   bool
}

// Table is the type of a table.
type Table struct {
	Elem ValType
	Limits
}

// FuncType is a function type; the slices alias the input, one byte a type.
type FuncType struct{ Params, Results []byte }

func (t FuncType) String() string {
	s := "("
	for i, p := range t.Params {
		if i > 0 {
			s += " "
		}
		s += ValType(p).String()
	}
	s += ") -> ("
	for i, r := range t.Results {
		if i > 0 {
			s += " "
		}
		s += ValType(r).String()
	}
	return s + ")"
}

// Import is one import. Kind says which of the other fields are set: Type for
// a function, Table for a table or memory (limits only), Global for a global.
type Import struct {
	Module, Name string
	Kind         Kind
	Type         uint32
	Table        Table
	Global       Global
}

// Global is the type of a global and, when it is defined in the module, its
// constant expression with the final end.
type Global struct {
	Type    ValType
	Mutable bool
	Init    []byte
}

// Export is one export.
type Export struct {
	Name  string
	Kind  Kind
	Index uint32
}

// Types yields the function types.
func (m *Module) Types() iter.Seq2[FuncType, error] {
	return vector(m, TypeSection, 3, func(c *cursor, _ uint32) (t FuncType) {
		switch form := c.byte(); {
		case c.err != nil || form == 0x60:
		case form >= 0x4d && form <= 0x5f:
			c.unsupported("garbage collection (a struct, array or recursive type)")
		default:
			c.fail(ErrMalformed, "type form %#x", form)
		}
		t.Params = c.types()
		t.Results = c.types()
		return t
	})
}

func (c *cursor) types() []byte {
	b := c.take(c.u32())
	for _, t := range b {
		c.known(ValType(t))
	}
	return b
}

func (c *cursor) known(t ValType) ValType {
	switch {
	case c.err != nil || t.known():
	case t == 0x69:
		c.unsupported("exception handling (exnref)")
	case t >= 0x63 && t <= 0x6e || t >= 0x71 && t <= 0x74:
		c.unsupported("typed references or garbage collection (a reference type)")
	default:
		c.fail(ErrMalformed, "value type %#x", byte(t))
	}
	return t
}

func (c *cursor) refType() ValType {
	t := c.known(ValType(c.byte()))
	if c.err == nil && !t.IsRef() {
		c.fail(ErrMalformed, "%s where a reference type belongs", t)
	}
	return t
}

func (c *cursor) limits() (l Limits) {
	switch flags := c.byte(); {
	case c.err != nil:
	case flags <= 1:
		l.Min = c.u32()
		if l.HasMax = flags == 1; l.HasMax {
			l.Max = c.u32()
		}
	case flags <= 3:
		c.unsupported("threads (a shared memory)")
	case flags <= 7:
		c.unsupported("memory64 (a 64-bit memory or table)")
	case flags <= 15:
		c.unsupported("custom page sizes")
	default:
		c.fail(ErrMalformed, "limits flags %#x", flags)
	}
	return l
}

func (c *cursor) globalType() (g Global) {
	g.Type = c.known(ValType(c.byte()))
	mut := c.byte()
	if mut > 1 {
		c.fail(ErrMalformed, "mutability %#x of a global", mut)
	}
	g.Mutable = mut == 1
	return g
}

// Imports yields the imports.
func (m *Module) Imports() iter.Seq2[Import, error] {
	return vector(m, ImportSection, 4, func(c *cursor, _ uint32) Import {
		im := Import{Module: c.name(), Name: c.name(), Kind: Kind(c.byte())}
		switch {
		case c.err != nil:
		case im.Kind == Function:
			im.Type = c.u32()
		case im.Kind == TableKind:
			im.Table = Table{c.refType(), c.limits()}
		case im.Kind == MemoryKind:
			im.Table.Limits = c.limits()
		case im.Kind == GlobalKind:
			im.Global = c.globalType()
		case im.Kind == 4:
			c.unsupported("exception handling (an imported tag)")
		default:
			c.fail(ErrMalformed, "import kind %#x", byte(im.Kind))
		}
		return im
	})
}

// Functions yields the type index of every function that the module defines.
func (m *Module) Functions() iter.Seq2[uint32, error] {
	return vector(m, FunctionSection, 1, func(c *cursor, _ uint32) uint32 { return c.u32() })
}

// Tables yields the tables that the module defines.
func (m *Module) Tables() iter.Seq2[Table, error] {
	return vector(m, TableSection, 3, func(c *cursor, _ uint32) Table {
		if c.left() > 0 && c.b[c.p] == 0x40 {
			c.unsupported("typed references (a table with an initial value)")
		}
		return Table{c.refType(), c.limits()}
	})
}

// Memories yields the memories that the module defines.
func (m *Module) Memories() iter.Seq2[Limits, error] {
	return vector(m, MemorySection, 2, func(c *cursor, i uint32) Limits {
		if i > 0 {
			c.unsupported("multiple memories")
		}
		return c.limits()
	})
}

// Globals yields the globals that the module defines.
func (m *Module) Globals() iter.Seq2[Global, error] {
	return vector(m, GlobalSection, 4, func(c *cursor, _ uint32) Global {
		g := c.globalType()
		g.Init = c.constExpr()
		return g
	})
}

// Exports yields the exports.
func (m *Module) Exports() iter.Seq2[Export, error] {
	return vector(m, ExportSection, 3, func(c *cursor, _ uint32) Export {
		e := Export{c.name(), Kind(c.byte()), c.u32()}
		switch {
		case c.err != nil || e.Kind <= GlobalKind:
		case e.Kind == 4:
			c.unsupported("exception handling (an exported tag)")
		default:
			c.fail(ErrMalformed, "export kind %#x", byte(e.Kind))
		}
		return e
	})
}
