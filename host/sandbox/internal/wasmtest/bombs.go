package wasmtest

import "bytes"

// Bomb is a small module made to exhaust whoever reads or compiles it.
type Bomb struct {
	Row  string // the attack's id
	Name string
	Wasm []byte
	// Edge marks a module just inside the limits: it must pass, and its
	// compilation must end within the compiler's own limits.
	Edge bool
}

var (
	voidType = Section(1, []byte{1, 0x60, 0, 0})
	oneFunc  = Section(3, []byte{1, 0})
)

func code(body ...[]byte) []byte {
	b := Cat(body...)
	return Section(10, []byte{1}, U(uint32(len(b))), b)
}

// OneFunction is a module of one function without parameters and results;
// body is its locals and its code with the end.
func OneFunction(body ...[]byte) []byte { return Module(voidType, oneFunc, code(body...)) }

// Nested is a body of n blocks inside each other.
func Nested(n int) []byte {
	return Cat([]byte{0}, bytes.Repeat([]byte{2, 0x40}, n), bytes.Repeat([]byte{0x0b}, n), []byte{0x0b})
}

// Flat is a body of n blocks (op 2) or loops (op 3) in a row that work on the
// given number of locals.
func Flat(n, locals int, op byte) []byte {
	b := bytes.NewBuffer(Cat([]byte{1}, U(uint32(locals)), []byte{0x7f}))
	for i := range n {
		l := U(uint32(i % locals))
		for _, p := range [][]byte{{op, 0x40, 0x20}, l, {0x41, 1, 0x6a, 0x21}, l, {0x20}, l, {0x0d, 0, 0x0b}} {
			b.Write(p)
		}
	}
	b.WriteByte(0x0b)
	return b.Bytes()
}

// BrTables is a body of k br_table instructions with n targets each.
func BrTables(k, n int) []byte {
	b := bytes.NewBuffer([]byte{0})
	for range k {
		b.Write(Cat([]byte{2, 0x40, 0x41, 0, 0x0e}, U(uint32(n)), make([]byte, n+1), []byte{0x0b}))
	}
	b.WriteByte(0x0b)
	return b.Bytes()
}

func tables(n int, min uint32) []byte {
	return Section(4, U(uint32(n)), bytes.Repeat(Cat([]byte{0x70, 0}, U(min)), n))
}

// Bombs lists them.
func Bombs() []Bomb {
	huge := U(1 << 31)
	mem := Section(5, []byte{1, 0, 1})
	name := func(sub byte) []byte {
		return Module(voidType, oneFunc, code([]byte{0, 0x0b}), Section(0, []byte{4, 'n', 'a', 'm', 'e', sub, 5}, huge))
	}
	return []Bomb{
		{Row: "WL-01", Name: "types", Wasm: Module(Section(1, huge))},
		{Row: "WL-01", Name: "parameters of a type", Wasm: Module(Section(1, []byte{1, 0x60}, huge))},
		{Row: "WL-01", Name: "imports", Wasm: Module(Section(2, huge))},
		{Row: "WL-01", Name: "length of an import's name", Wasm: Module(Section(2, []byte{1}, huge))},
		{Row: "WL-01", Name: "functions", Wasm: Module(voidType, Section(3, huge))},
		{Row: "WL-01", Name: "tables", Wasm: Module(Section(4, huge))},
		{Row: "WL-01", Name: "globals", Wasm: Module(Section(6, huge))},
		{Row: "WL-01", Name: "exports", Wasm: Module(Section(7, huge))},
		{Row: "WL-01", Name: "element segments", Wasm: Module(Section(9, huge))},
		{Row: "WL-01", Name: "items of an element segment", Wasm: Module(Section(4, []byte{1, 0x70, 0, 1}), Section(9, []byte{1, 0, 0x41, 0, 0x0b}, huge))},
		{Row: "WL-01", Name: "bodies", Wasm: Module(Section(10, huge))},
		{Row: "WL-01", Name: "size of a body", Wasm: Module(voidType, oneFunc, Section(10, []byte{1}, huge))},
		{Row: "WL-01", Name: "data segments", Wasm: Module(mem, Section(11, huge))},
		{Row: "WL-01", Name: "length of a data segment", Wasm: Module(mem, Section(11, []byte{1, 0, 0x41, 0, 0x0b}, huge))},
		{Row: "WL-01", Name: "data count", Wasm: Module(Section(12, huge))},
		{Row: "WL-02", Name: "groups of locals", Wasm: Module(voidType, oneFunc, Section(10, []byte{1, 7}, huge, []byte{0x0b, 0x0b}))},
		{Row: "WL-02", Name: "2^32-1 locals", Wasm: OneFunction([]byte{1}, U(1<<32-1), []byte{0x7f, 0x0b})},
		{Row: "WL-02", Name: "2^27 locals", Wasm: OneFunction([]byte{1}, U(1<<27), []byte{0x7f, 0x0b})},
		{Row: "WL-02", Name: "50,001 locals", Wasm: OneFunction([]byte{1}, U(50001), []byte{0x7f, 0x0b})},
		{Row: "WL-03", Name: "function names", Wasm: name(1), Edge: true},
		{Row: "WL-03", Name: "local names", Wasm: name(2), Edge: true},
		{Row: "WL-04", Name: "20,000 nested blocks", Wasm: OneFunction(Nested(20_000))},
		{Row: "WL-04", Name: "200,000 nested blocks", Wasm: OneFunction(Nested(200_000))},
		{Row: "WL-04", Name: "2,000 nested blocks", Wasm: OneFunction(Nested(2_000)), Edge: true},
		{Row: "WL-05", Name: "20 br_table of 50,000", Wasm: OneFunction(BrTables(20, 50_000))},
		{Row: "WL-05", Name: "8 br_table of 4,000", Wasm: OneFunction(BrTables(8, 4_000)), Edge: true},
		{Row: "WL-06", Name: "300 loops over 2,000 locals", Wasm: OneFunction(Flat(300, 2_000, 3))},
		{Row: "WL-06", Name: "16,000 loops", Wasm: OneFunction(Flat(16_000, 50, 3))},
		{Row: "WL-06", Name: "20,000 blocks over 50 locals", Wasm: OneFunction(Flat(20_000, 50, 2))},
		{Row: "WL-06", Name: "500 loops over 60 locals", Wasm: OneFunction(Flat(500, 60, 3)), Edge: true},
		{Row: "WL-06", Name: "5,000 blocks over 200 locals", Wasm: OneFunction(Flat(5_000, 200, 2)), Edge: true},
		{Row: "WL-07", Name: "table of 2^27-1", Wasm: Module(tables(1, 1<<27-1))},
		{Row: "WL-07", Name: "64 tables of 2^27-1", Wasm: Module(tables(64, 1<<27-1))},
		{Row: "WL-08", Name: "memory of 65,536 pages", Wasm: Module(Section(5, []byte{1, 0}, U(65536)))},
		{Row: "WL-08", Name: "100 memories", Wasm: Module(Section(5, U(100), bytes.Repeat([]byte{0, 1}, 100)))},
		{Row: "WL-08", Name: "memory64", Wasm: Module(Section(5, []byte{1, 4, 1}))},
		{Row: "WL-08", Name: "shared memory", Wasm: Module(Section(5, []byte{1, 3, 1, 1}))},
		{Row: "WL-12", Name: "10,000 custom sections", Wasm: Module(bytes.Repeat(Section(0, []byte{1, 'x'}), 10_000)), Edge: true},
	}
}
