package sandbox

import (
	"fmt"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// vet refuses what is no acceptable module before anything else reads it.
func (p *Plugin) vet(wasm []byte) (*vet.Report, error) {
	profile := vet.Standard()
	profile.Import = p.importRule()
	if most := p.limits.Memory; most > 0 { // what the manifest asks for, it may have from the start
		profile.Max[vet.MemoryPages] = int(min((most+65535)/65536, 65536))
	}
	r, err := vet.Check(wasm, profile)
	if err != nil {
		return nil, err
	}
	if f := p.pkg.Format; f != nil {
		return r, f.check(r)
	}
	return r, checkExports(r)
}

// importRule allows what the manifest asks for, and says what else would need.
func (p *Plugin) importRule() func(module, name string, t wasmbin.FuncType) error {
	if f := p.pkg.Format; f != nil {
		return f.offers().Import
	}
	allow := allowed(p.pkg.Manifest.Needs)
	return func(module, name string, t wasmbin.FuncType) error {
		if c, known := abi.Import(module); known && allow[module] == nil {
			return fmt.Errorf("it needs the capability %s, which the manifest does not ask for", c)
		}
		return allow.Import(module, name, t)
	}
}

// checkExports holds the exports against the ABI.
func checkExports(r *vet.Report) error {
	i32, i64 := wasmbin.I32, wasmbin.I64
	for _, e := range [...]struct {
		name     string
		required bool
		params   []wasmbin.ValType
		results  []wasmbin.ValType
	}{
		{abi.ExportAlloc, true, []wasmbin.ValType{i32}, []wasmbin.ValType{i32}},
		{abi.ExportCall, true, []wasmbin.ValType{i32, i32, i32, i32}, []wasmbin.ValType{i64}},
		{abi.ExportDescribe, false, nil, []wasmbin.ValType{i64}},
		{abi.ExportInitialize, false, nil, nil},
		{abi.ExportReseed, false, []wasmbin.ValType{i32, i32}, nil},
	} {
		s, ok := r.Export(e.name)
		want := wasmbin.FuncType{Params: bytesOf(e.params), Results: bytesOf(e.results)}
		switch {
		case !ok && e.required:
			return abiErrorf("there is no export %q", e.name)
		case ok && s.Kind != wasmbin.Function:
			return abiErrorf("the export %q is no function", e.name)
		case ok && s.Type.String() != want.String():
			return abiErrorf("the export %q has the type %v, not %v", e.name, s.Type, want)
		}
	}
	if s, ok := r.Export(abi.ExportMemory); !ok || s.Kind != wasmbin.MemoryKind {
		return abiErrorf("there is no export %q that is a memory", abi.ExportMemory)
	}
	return nil
}

func bytesOf(list []wasmbin.ValType) []byte {
	var b []byte
	for _, t := range list {
		b = append(b, byte(t))
	}
	return b
}
