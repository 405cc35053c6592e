package foreign

import (
	"fmt"
	"io/fs"
	"path"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/foreign/ironclaw"
)

// fromIronclaw reads an extension of IronClaw: its manifest, its module and
// the schemas of its tools.
func fromIronclaw(dir fs.FS) (*Found, error) {
	fail := func(err error) (*Found, error) {
		return nil, fmt.Errorf("the IronClaw manifest %q: %w", ironclaw.ManifestFile, err)
	}
	b, err := read(dir, ironclaw.ManifestFile, maxConfig)
	if err != nil {
		return nil, err
	}
	m, err := ironclaw.ParseManifest(b)
	if err != nil {
		return fail(err)
	}
	wasm, err := read(dir, path.Clean(m.Runtime.Module), maxModule)
	if err != nil {
		return fail(err)
	}
	tool, err := ironclaw.Open(wasm)
	if err != nil {
		return fail(err)
	}
	out := abi.Manifest{ABI: abi.Version, Name: PluginName(m.ID + ".wasm"), Version: m.Version, Description: m.Description}
	if out.Version == "" {
		out.Version = "0.0.0"
	}
	if out.Needs, err = m.Needs(); err != nil {
		return fail(err)
	}
	if out.Tools, err = m.Declarations(func(ref string) ([]byte, error) { return read(dir, path.Clean(ref), maxConfig) }); err != nil {
		return fail(err)
	}
	format, err := ironclaw.New(tool, m)
	if err != nil {
		return fail(err)
	}
	return &Found{Format: Tool, File: ironclaw.ManifestFile, Package: pack(out, format, tool.Core)}, nil
}

// fromComponent makes a package of a component alone.
func fromComponent(file string, wasm []byte, m *abi.Manifest) (*Found, error) {
	tool, err := ironclaw.Open(wasm)
	if err != nil {
		return nil, err
	}
	format, err := ironclaw.New(tool, nil)
	if err != nil {
		return nil, err
	}
	manifest := abi.Manifest{ABI: abi.Version, Name: PluginName(file), Version: "0.0.0", Description: "An IronClaw tool."}
	if m != nil {
		manifest = *m
	}
	return &Found{Format: Tool, File: file, Package: pack(manifest, format, tool.Core)}, nil
}
