package vet

import (
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// counts refuses declared numbers before anything is kept for them.
func (c *checker) counts(m *wasmbin.Module) error {
	for _, v := range []struct {
		measure Measure
		section wasmbin.SectionID
	}{
		{Types, wasmbin.TypeSection}, {Imports, wasmbin.ImportSection}, {Functions, wasmbin.FunctionSection},
		{Tables, wasmbin.TableSection}, {Memories, wasmbin.MemorySection}, {Globals, wasmbin.GlobalSection},
		{Exports, wasmbin.ExportSection}, {ElementSegments, wasmbin.ElementSection}, {DataSegments, wasmbin.DataSection},
	} {
		if err := c.limit(v.measure, count(m.Count(v.section))); err != nil {
			return err
		}
	}
	if f, b := m.Count(wasmbin.FunctionSection), m.Count(wasmbin.CodeSection); f != b {
		return refuse("%d functions are declared and %d are defined", f, b)
	}
	c.nElements = m.Count(wasmbin.ElementSection)
	if m.Has(wasmbin.DataCountSection) {
		if c.nData = m.Count(wasmbin.DataCountSection); c.nData != m.Count(wasmbin.DataSection) {
			return refuse("%d data segments are declared and %d are present", c.nData, m.Count(wasmbin.DataSection))
		}
	}
	return nil
}

func (c *checker) customs(m *wasmbin.Module) error {
	n := 0
	for s := range m.Customs() {
		n++
		switch s.Name {
		case "linking":
			return refuse("the file is an object file; link it with wasm-ld")
		case "dylink.0", "dylink":
			c.r.Features.SideModule = true
		}
	}
	return c.limit(CustomSections, n)
}

func (c *checker) typeSection(m *wasmbin.Module) error {
	c.types = make([]wasmbin.FuncType, 0, c.r.Used[Types])
	for t, err := range m.Types() {
		if err != nil {
			return err
		}
		c.types = append(c.types, t)
		c.r.Features.MultiValue = c.r.Features.MultiValue || len(t.Results) > 1
		if err := c.limit(TypeArity, len(t.Params)+len(t.Results)); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) imports(m *wasmbin.Module) error {
	for im, err := range m.Imports() {
		if err != nil {
			return err
		}
		if err := c.limit(NameBytes, max(len(im.Module), len(im.Name))); err != nil {
			return err
		}
		s := Symbol{Module: im.Module, Name: im.Name, Kind: im.Kind}
		if im.Kind == wasmbin.Function {
			if err := index("type", im.Type, uint32(len(c.types))); err != nil {
				return err
			}
			s.Type = c.types[im.Type]
		}
		c.r.Imports = append(c.r.Imports, s)
		if err := c.imported1(im, s); err != nil {
			return err
		}
	}
	c.imported = len(c.funcTypes)
	return nil
}

func (c *checker) imported1(im wasmbin.Import, s Symbol) error {
	if im.Module == ReservedModule {
		return refuse("the import module %q is the host's own", ReservedModule)
	}
	if im.Kind != wasmbin.Function {
		c.r.Features.ImportsState = true
		if !c.r.Profile.State {
			return refuse("it imports the %s %.64q from %.64q; a plugin may import functions only", im.Kind, im.Name, im.Module)
		}
	}
	switch im.Kind {
	case wasmbin.Function:
		c.funcTypes = append(c.funcTypes, im.Type)
		p := c.r.Profile.Import
		if p == nil {
			return refuse("it imports %.64q from %.64q and nothing may be imported", im.Name, im.Module)
		}
		if err := p(im.Module, im.Name, s.Type); err != nil {
			return &Refusal{Rule: "import of " + quote(im.Name) + " from " + quote(im.Module), Err: err, Function: -1}
		}
	case wasmbin.TableKind:
		c.nTables++
		return c.add(TableEntries, count(im.Table.Min))
	case wasmbin.MemoryKind:
		c.nMemories++
		return c.limit(MemoryPages, count(im.Table.Min))
	case wasmbin.GlobalKind:
		c.nGlobals++
	}
	return nil
}

func (c *checker) functions(m *wasmbin.Module) error {
	for t, err := range m.Functions() {
		if err != nil {
			return err
		}
		if err := index("type", t, uint32(len(c.types))); err != nil {
			return err
		}
		c.funcTypes = append(c.funcTypes, t)
	}
	return nil
}

func (c *checker) tables(m *wasmbin.Module) error {
	for t, err := range m.Tables() {
		if err != nil {
			return err
		}
		c.nTables++
		if t.HasMax && t.Max < t.Min {
			return refuse("a table of at least %d and at most %d entries", t.Min, t.Max)
		}
		if err := c.add(TableEntries, count(t.Min)); err != nil {
			return err
		}
	}
	return c.limit(Tables, count(c.nTables))
}

func (c *checker) memories(m *wasmbin.Module) error {
	for l, err := range m.Memories() {
		if err != nil {
			return err
		}
		c.nMemories++
		if l.HasMax && l.Max < l.Min {
			return refuse("a memory of at least %d and at most %d pages", l.Min, l.Max)
		}
		if err := c.limit(MemoryPages, count(l.Min)); err != nil {
			return err
		}
	}
	return c.limit(Memories, count(c.nMemories))
}

func (c *checker) globals(m *wasmbin.Module) error {
	for g, err := range m.Globals() {
		if err != nil {
			return err
		}
		if err := c.constant(g.Init); err != nil { // earlier globals only
			return err
		}
		c.nGlobals++
		if g.Mutable && (g.Type == wasmbin.V128 || g.Type.IsRef()) {
			c.r.Features.OpaqueGlobals = true
		}
	}
	return nil
}

// constant checks the indexes of a constant expression.
func (c *checker) constant(expr []byte) error {
	switch k, ok := wasmbin.EvalConst(expr); {
	case !ok:
		return refuse("a constant expression of more than one instruction")
	case k.Op == wasmbin.OpGlobalGet:
		return index("global", k.Index, c.nGlobals)
	case k.Op == wasmbin.OpRefFunc:
		return index("function", k.Index, uint32(len(c.funcTypes)))
	}
	return nil
}

func (c *checker) exports(m *wasmbin.Module) error {
	seen := make(map[string]bool, c.r.Used[Exports])
	spaces := map[wasmbin.Kind]uint32{wasmbin.Function: uint32(len(c.funcTypes)), wasmbin.TableKind: c.nTables,
		wasmbin.MemoryKind: c.nMemories, wasmbin.GlobalKind: c.nGlobals}
	for e, err := range m.Exports() {
		if err != nil {
			return err
		}
		if err := c.limit(NameBytes, len(e.Name)); err != nil {
			return err
		}
		if seen[e.Name] {
			return refuse("two exports are named %s", quote(e.Name))
		}
		seen[e.Name] = true
		if len(e.Name) >= len(ReservedPrefix) && e.Name[:len(ReservedPrefix)] == ReservedPrefix {
			return refuse("export names that begin with %q are the host's own", ReservedPrefix)
		}
		if err := index(e.Kind.String(), e.Index, spaces[e.Kind]); err != nil {
			return err
		}
		s := Symbol{Name: e.Name, Kind: e.Kind}
		if e.Kind == wasmbin.Function {
			s.Type = c.types[c.funcTypes[e.Index]]
		}
		c.r.Exports = append(c.r.Exports, s)
	}
	return nil
}

func (c *checker) start(m *wasmbin.Module) error {
	f, ok, err := m.Start()
	if err != nil || !ok {
		return err
	}
	c.r.Features.Start = true
	return index("function", f, uint32(len(c.funcTypes)))
}

func (c *checker) segments(m *wasmbin.Module) error {
	for e, err := range m.Elements() {
		if err != nil {
			return err
		}
		if err := c.add(ElementItems, count(e.Count)); err != nil {
			return err
		}
		if e.Active() {
			if err := index("table", e.Table, c.nTables); err != nil {
				return err
			}
			if err := c.constant(e.Offset); err != nil {
				return err
			}
		}
		for f, x := range e.Items() {
			if e.Exprs() {
				err = c.constant(x)
			} else {
				err = index("function", f, uint32(len(c.funcTypes)))
			}
			if err != nil {
				return err
			}
		}
	}
	for d, err := range m.DataSegments() {
		if err != nil {
			return err
		}
		if d.Passive {
			c.r.Features.PassiveData = true
			continue
		}
		if err := index("memory", 0, c.nMemories); err != nil {
			return err
		}
		if err := c.constant(d.Offset); err != nil {
			return err
		}
	}
	return nil
}
