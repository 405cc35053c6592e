// Package vet decides, before any byte reaches a runtime or a compiler,
// whether a module is acceptable.
//
// It guarantees about a module that passes: every count, size and nesting is
// within the profile's limits, which bound the memory and the time that
// decoding, validating, metering, compiling and instantiating it can take;
// every imported function is allowed with its signature; and every index
// (function, type, table, memory, global, local, label, segment) lies inside
// the module, so that what the meter adds behind them cannot be named by the
// guest. Vetting itself takes time and memory proportional to the file.
//
// It is no validator: the types of instructions are checked by the runtime, in
// the compiler's child process.
//
//	r, err := vet.Check(wasm, profile)   // err: *wasmbin.Error or *Refusal
//	m, stats, err := meter.Rewrite(r.Module, meter.Options{})
package vet

import (
	"crypto/sha256"
	"fmt"
	"math"

	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// Report is what was found. After a refusal it is complete up to the refusal.
type Report struct {
	Digest   [sha256.Size]byte // of the file as given
	Module   *wasmbin.Module
	Profile  Profile
	Used     Counts
	Imports  []Symbol
	Exports  []Symbol
	Features Features
}

// Symbol is an import or an export.
type Symbol struct {
	Module string // of an import
	Name   string
	Kind   wasmbin.Kind
	Type   wasmbin.FuncType // of a function
}

// Features are facts that later stages and people want.
type Features struct {
	Start         bool // has a start function, which runs under the meter
	TableWrites   bool // changes a table after instantiation
	TableGrows    bool
	MemoryGrows   bool // contains memory.grow
	ImportsState  bool // imports a memory, a table or a global
	BulkMemory    bool
	PassiveData   bool
	DataDrops     bool // contains data.drop
	SIMD          bool
	MultiValue    bool
	Indirect      bool // calls through a table
	OpaqueGlobals bool // a mutable global holds a vector or a reference
	SideModule    bool // made for dynamic linking: has a dylink.0 section
}

// Export finds an export by name.
func (r *Report) Export(name string) (Symbol, bool) {
	for _, e := range r.Exports {
		if e.Name == name {
			return e, true
		}
	}
	return Symbol{}, false
}

// Usage is one line of the table that people see.
type Usage struct {
	Measure Measure `json:"-"`
	Name    string  `json:"name"`
	Used    int     `json:"used"`
	Max     int     `json:"max"`
}

// Usage lists every measure with its limit.
func (r *Report) Usage() []Usage {
	u := make([]Usage, 0, numMeasures)
	for _, m := range Measures() {
		u = append(u, Usage{m, m.String(), r.Used[m], r.Profile.Max[m]})
	}
	return u
}

// Refusal is the error for a well-formed module outside the profile.
type Refusal struct {
	Measure  Measure // when Got is set
	Got, Max int
	Rule     string // when it is no limit
	Function int    // index of the function, or -1
	Offset   int    // in the file, when Function is set
	Err      error  // the profile's own reason, may be nil
}

func (r *Refusal) Error() string {
	s := "module refused: " + r.Rule
	if r.Rule == "" {
		s = fmt.Sprintf("module refused: %s: %d, at most %d allowed", r.Measure, r.Got, r.Max)
	}
	if r.Err != nil {
		s += ": " + r.Err.Error()
	}
	if r.Function >= 0 {
		s += fmt.Sprintf(" (function %d, offset %#x)", r.Function, r.Offset)
	}
	return s
}

func (r *Refusal) Unwrap() error { return r.Err }

// Reserved is the prefix of export names, and the module name of imports, that
// belong to the meter.
const (
	ReservedPrefix = "elf."
	ReservedModule = "elf"
)

// Check reads wasm and holds it against the profile. The error is a
// [*wasmbin.Error] for bytes that are no acceptable module, a [*Refusal] for a
// module outside the profile. The report is never nil.
func Check(wasm []byte, p Profile) (*Report, error) {
	if p.Max == (Counts{}) {
		p.Max = Standard().Max
	}
	c := &checker{r: &Report{Profile: p}}
	if err := c.limit(Bytes, len(wasm)); err != nil {
		return c.r, err
	}
	c.r.Digest = sha256.Sum256(wasm)
	m, err := wasmbin.Parse(wasm)
	if err != nil {
		return c.r, err
	}
	c.r.Module = m
	for _, step := range []func(*wasmbin.Module) error{
		c.counts, c.customs, c.typeSection, c.imports, c.functions, c.tables, c.memories,
		c.globals, c.exports, c.start, c.segments, c.bodies,
	} {
		if err := step(m); err != nil {
			return c.r, err
		}
	}
	return c.r, nil
}

// checker holds the sizes of the index spaces while a module is walked.
type checker struct {
	r         *Report
	types     []wasmbin.FuncType
	funcTypes []uint32 // type of each function, imports first
	imported  int      // functions
	nGlobals  uint32   // imports first
	nTables   uint32
	nMemories uint32
	nData     uint32 // as declared by the data count section
	nElements uint32
}

// limit records v and refuses it above the profile's maximum.
func (c *checker) limit(m Measure, v int) error {
	c.r.Used[m] = max(c.r.Used[m], v)
	if most := c.r.Profile.Max[m]; v > most {
		return &Refusal{Measure: m, Got: v, Max: most, Function: -1}
	}
	return nil
}

func (c *checker) add(m Measure, v int) error {
	return c.limit(m, int(min(int64(c.r.Used[m])+int64(v), math.MaxInt)))
}

// count is a number of the module as an int, also where that has 32 bits: no limit
// is near the largest.
func count(n uint32) int { return int(min(n, math.MaxInt32)) }

func refuse(format string, args ...any) error {
	return &Refusal{Rule: fmt.Sprintf(format, args...), Function: -1}
}

// index refuses i outside a space of n.
func index(space string, i, n uint32) error {
	if i < n {
		return nil
	}
	return refuse("%s index %d where the module has %d", space, i, n)
}
