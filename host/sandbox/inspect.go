package sandbox

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasi"
)

// Inspection says what a module is, and what it could do at the most, without
// running any of it.
type Inspection struct {
	Digest string `json:"digest"` // sha256 in hex
	Size   int    `json:"size"`
	// Capabilities are those whose host functions the module imports. Files
	// and fine clocks have none of their own: with Files it may use them, if
	// its manifest asks and a person grants.
	Capabilities []abi.Capability `json:"capabilities"`
	Files        bool             `json:"files"`   // imports WASI's file functions
	Imports      []string         `json:"imports"` // "elf:net.http"
	Exports      []string         `json:"exports"`
	Limits       []vet.Usage      `json:"limits"`
	Features     vet.Features     `json:"features"`
	// Refused says why the host would not load it; "" when it would.
	Refused string `json:"refused,omitempty"`
}

// Inspect reads a module of elf/1. The error is for bytes that are no module at
// all; a module that the host refuses is an Inspection with the reason.
func Inspect(wasm []byte) (Inspection, error) {
	allow := allowed(everyNeed())
	return inspect(wasm, allow, checkExports, func(s vet.Symbol) abi.Capability {
		c, _ := abi.Import(s.Module)
		return c
	})
}

// InspectAs is Inspect for a module of another format.
func InspectAs(wasm []byte, f *Format) (Inspection, error) {
	in, err := inspect(wasm, f.offers(), f.check, func(s vet.Symbol) abi.Capability {
		for i := range f.Funcs {
			if fn := &f.Funcs[i]; fn.Module == s.Module && fn.Name == s.Name {
				return fn.Cap
			}
		}
		return ""
	})
	for _, c := range f.Caps {
		switch {
		case c == abi.FSRead || c == abi.FSWrite:
			in.Files = true
		case !slices.Contains(in.Capabilities, c):
			in.Capabilities = append(in.Capabilities, c)
		}
	}
	return in, err
}

func inspect(wasm []byte, allow vet.Allow, check func(*vet.Report) error, reaches func(vet.Symbol) abi.Capability) (Inspection, error) {
	profile := vet.Standard()
	profile.Import = allow.Import
	r, err := vet.Check(wasm, profile)
	in := Inspection{Digest: hex.EncodeToString(r.Digest[:]), Size: len(wasm), Limits: r.Usage(), Features: r.Features,
		Capabilities: []abi.Capability{}, Imports: []string{}, Exports: []string{}}
	var refusal *vet.Refusal
	if err != nil && !errors.As(err, &refusal) {
		return in, err
	}
	if err == nil {
		err = check(r)
	}
	if err != nil {
		in.Refused = err.Error()
	}
	for _, s := range r.Imports {
		in.Imports = append(in.Imports, s.Module+"."+s.Name)
		if c := reaches(s); c != "" && c != abi.FSRead && !slices.Contains(in.Capabilities, c) {
			in.Capabilities = append(in.Capabilities, c)
		} else if c == abi.FSRead {
			in.Files = true
		}
		in.Files = in.Files || s.Module == wasi.ModuleName && strings.HasPrefix(s.Name, "path_")
	}
	for _, s := range r.Exports {
		in.Exports = append(in.Exports, s.Name)
	}
	return in, nil
}

func everyNeed() []abi.Need {
	var list []abi.Need
	for _, c := range abi.Capabilities() {
		list = append(list, abi.Need{Cap: c})
	}
	return list
}
