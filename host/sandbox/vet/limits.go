package vet

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// Measure is one quantity that is counted in a module and bounded.
type Measure int

// The measures. Those from BodyBytes on are taken per function.
const (
	Bytes Measure = iota
	CustomSections
	Types
	TypeArity
	Imports
	Functions
	Globals
	Exports
	NameBytes
	Tables
	TableEntries
	Memories
	MemoryPages
	ElementItems
	ElementSegments
	DataSegments
	Code
	BodyBytes
	Instructions
	Locals
	Nesting
	Blocks
	Loops
	LoopLocals
	BlockLocals
	NestingWork
	BranchTable
	Edges
	BulkOperations
	numMeasures
)

// Counts holds a number for each Measure: what was found, or what is allowed.
type Counts [numMeasures]int

// limits is the table of bounds. "Real" figures are the largest of 221 modules
// (standard Go, Rust, QuickJS, Ruby, C) that were measured; the runtime's costs
// were measured on wazero 1.12, amd64. The grammar column is for prebuilt
// tree-sitter grammars, whose generated lexers and parsers are far larger than
// what people write; a person installs them by name.
var limits = [numMeasures]struct {
	name              string
	standard, grammar int
	why               string
}{
	Bytes:           {"module bytes", 32 << 20, 32 << 20, "a standard-Go guest with SQLite has 12 MB; decoding takes about six times the size"},
	CustomSections:  {"custom sections", 1 << 16, 1 << 16, "they are dropped before the runtime sees them; the bound is for reading"},
	Types:           {"function types", 4096, 4096, "real modules have hundreds; each costs the runtime about 200 bytes"},
	TypeArity:       {"parameters and results of a type", 64, 64, "real modules reach 22; results beyond registers go through memory at each call"},
	Imports:         {"imports", 512, 512, "WASI has 46 functions and elf/1 fewer than 30"},
	Functions:       {"functions", 1 << 16, 1 << 16, "real: 17,825 (standard Go)"},
	Globals:         {"globals", 4096, 4096, "real: 40; each is a field of every instance, and is restored after each call when it is mutable"},
	Exports:         {"exports", 2048, 2048, "real: 600 (Ruby); a map in every instance"},
	NameBytes:       {"bytes of one name", 1024, 1024, "real: 210 (mangled C++)"},
	Tables:          {"tables", 4, 4, "real: 2"},
	TableEntries:    {"table entries at the start", 1 << 17, 1 << 17, "real: 8,776 (standard Go); 8 bytes each in every instance, and 2^27 took 1 GB"},
	Memories:        {"memories", 1, 1, "multiple memories are a later proposal"},
	MemoryPages:     {"memory pages at the start", 1024, 1024, "64 MiB is the default of a call; a manifest asks for more"},
	ElementItems:    {"items of element segments", 1 << 17, 1 << 17, "real: 8,776; copied into tables at each instantiation"},
	ElementSegments: {"element segments", 1 << 14, 1 << 14, "real: 3; each is a slice in every instance"},
	DataSegments:    {"data segments", 1 << 17, 1 << 17, "real: 76,114 (standard Go splits its data at zeros)"},
	Code:            {"instructions", 1 << 23, 1 << 23, "real: 2.2M (gojq, 6.7 MB); the interpreter that takes the snapshot keeps some 60 bytes of each, and 31 MB of one-byte instructions took 2 GB"},
	BodyBytes:       {"bytes of a function", 1 << 20, 2 << 20, "real: 592k, 534,680 in a standard-Go guest with SQLite"},
	Instructions:    {"instructions of a function", 1 << 19, 1 << 20, "real: 286k; the compiler's memory is about 1 kB per instruction"},
	Locals:          {"locals of a function", 4096, 4096, "real: 3,184; 128 million locals took 16 s and 3.2 GB"},
	Nesting:         {"nested blocks", 4096, 4096, "real: 3,143 in gojq, 1,918 and 1,733 elsewhere; 4,090 took 0.18 s to compile, 20,000 9.5 s"},
	Blocks:          {"blocks of a function", 8192, 32 << 10, "real: 2.7k standard Go, 31k grammars"},
	Loops:           {"loops of a function", 512, 1024, "real: 236; 16,000 flat loops took 7 minutes to compile once metered"},
	LoopLocals:      {"loops × locals of a function", 128 << 10, 128 << 10, "real: 9.1k Ruby, 130k grammars and instrumented C; the compiler makes a phi for each pair"},
	BlockLocals:     {"blocks × locals of a function", 1 << 20, 4 << 20, "real: 682k Ruby, 3.5M grammars; the same at joins"},
	NestingWork:     {"sum of nesting depths over blocks", 8 << 20, 32 << 20, "real: 5.9M standard Go (gojq), 17M grammars; the validator walks the stack of blocks"},
	BranchTable:     {"targets of a br_table", 8192, 16 << 10, "real: 3,125"},
	Edges:           {"control-flow edges of a function", 32 << 10, 128 << 10, "real: 48k grammars; 20 br_table of 50,000 took over 61 s and ignored the deadline"},
	BulkOperations:  {"bulk operations and growths of a function", 1024, 1024, "real: 80; each becomes a branch of the meter, and 15,000 took over 2 minutes to compile"},
}

func (m Measure) String() string { return limits[m].name }

// Why is the measured reason behind the default limit.
func (m Measure) Why() string { return limits[m].why }

// Measures lists all of them.
func Measures() []Measure {
	all := make([]Measure, numMeasures)
	for i := range all {
		all[i] = Measure(i)
	}
	return all
}

// Profile is what a host accepts. The zero value accepts modules within the
// standard limits that import nothing.
type Profile struct {
	Name string
	// Max are the limits; the zero value stands for the standard ones. To
	// change one, begin with Standard().Max.
	Max Counts
	// Import decides about each imported function; its error becomes the
	// reason that a person reads. Nil refuses every import.
	Import func(module, name string, t wasmbin.FuncType) error
	// State allows imported memories, tables and globals. Such a module
	// shares them with the one that it is linked to, so it cannot be reset.
	State bool
}

// Standard is the profile of plugins. Set Import before use.
func Standard() Profile {
	p := Profile{Name: "standard"}
	for i, l := range limits {
		p.Max[i] = l.standard
	}
	return p
}

// Grammars is the wider profile of grammar packs, which a person installs by
// name: side modules that share memory and table with the parser's core.
func Grammars() Profile {
	p := Profile{Name: "grammar", State: true}
	for i, l := range limits {
		p.Max[i] = l.grammar
	}
	return p
}

// Allow is an allow-list of imported functions by module and name, with the
// signature each must have. Its Import method fits Profile.Import.
type Allow map[string]map[string]wasmbin.FuncType

// Import refuses what is not listed, and what is listed with another signature.
func (a Allow) Import(module, name string, t wasmbin.FuncType) error {
	funcs, ok := a[module]
	if !ok {
		return fmt.Errorf("the host offers no module %q; it offers %s", module, strings.Join(slices.Sorted(maps.Keys(a)), ", "))
	}
	want, ok := funcs[name]
	if !ok {
		return fmt.Errorf("the host's module %q has no function %q", module, name)
	}
	if !bytes.Equal(want.Params, t.Params) || !bytes.Equal(want.Results, t.Results) {
		return fmt.Errorf("it is declared as %s and the host's is %s", t, want)
	}
	return nil
}
