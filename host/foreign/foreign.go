// Package foreign finds out what plugins of other people's formats are, and
// makes packages of them that the sandbox loads like its own: Extism plugins,
// hyper-mcp and mcp.run tools, IronClaw tools, WASI programs, and scripts on the
// engine that JavaScript plugins share.
//
// Nothing is run to find out. What a format's own configuration allows becomes
// needs, which a person grants or does not; it never grants anything by itself.
package foreign

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/foreign/extism"
	"github.com/elfhost/elfhost/host/foreign/ironclaw"
	"github.com/elfhost/elfhost/host/foreign/javascript"
	"github.com/elfhost/elfhost/host/foreign/wasicmd"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// Names of formats, for people.
const (
	Program = "WASI program"
	Tool    = "IronClaw tool"
	Script  = "JavaScript"
)

// Found is a foreign plugin that a Loader can load.
type Found struct {
	Format  string // one of the names above, or an extism.Kind
	File    string // the module's file
	Package sandbox.Package
	Notes   []string // what of the format's configuration is not honoured
}

// Bounds of what is read.
const (
	maxModule = 32 << 20
	maxConfig = 1 << 20
	maxFiles  = 256
)

// Find looks at a folder, or at one file in it when name is not "". m is the
// folder's elf.toml, nil when it has none. The answer is nil without an error
// when the module is one of elf/1, or when there is no module at all.
func Find(dir fs.FS, name string, m *abi.Manifest) (*Found, error) {
	switch {
	case name != "" && strings.HasSuffix(name, ".json"):
		return fromExtismManifest(dir, name)
	case name == "" && m == nil:
		if f, err := fromManifests(dir); f != nil || err != nil {
			return f, err
		}
		fallthrough
	case name == "":
		var err error
		if name, err = onlyModule(dir); err != nil || name == "" {
			return nil, err
		}
	}
	wasm, err := read(dir, name, maxModule)
	if err != nil {
		return nil, err
	}
	return fromModule(name, wasm, m)
}

// fromManifests finds the folder's manifest in another format.
func fromManifests(dir fs.FS) (*Found, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, err
	}
	if len(entries) > maxFiles {
		entries = entries[:maxFiles]
	}
	for _, e := range entries {
		switch {
		case e.IsDir():
		case e.Name() == ironclaw.ManifestFile:
			return fromIronclaw(dir)
		case strings.HasSuffix(e.Name(), ".json"):
			if f, err := fromExtismManifest(dir, e.Name()); f != nil || err != nil {
				return f, err
			}
		}
	}
	return nil, nil
}

// onlyModule names the folder's module: plugin.wasm, or the only one.
func onlyModule(dir fs.FS) (string, error) {
	names, err := fs.Glob(dir, "*.wasm")
	switch {
	case err != nil || len(names) == 0:
		return "", err
	case len(names) == 1 || !slices.Contains(names, "plugin.wasm"):
		if len(names) > 1 {
			return "", fmt.Errorf("the folder has %d modules (%s…): name one", len(names), names[0])
		}
		return names[0], nil
	}
	return "plugin.wasm", nil
}

// Look says what a module is: the name of a foreign format, or "" for elf/1 and
// for what is nothing that runs here, with vet's report where there is one.
func Look(wasm []byte) (string, *vet.Report, error) {
	if ironclaw.IsComponent(wasm) {
		world, err := ironclaw.World(wasm)
		if err != nil {
			return "", nil, err
		}
		return world, nil, nil
	}
	p := vet.Standard()
	p.Import = func(string, string, wasmbin.FuncType) error { return nil }
	r, err := vet.Check(wasm, p)
	if err != nil {
		return "", r, err
	}
	if _, ok := r.Export(abi.ExportCall); ok {
		return "", r, nil
	}
	if kind, ok := extism.Detect(r); ok {
		return string(kind), r, nil
	}
	if javascript.Detect(wasm) {
		return Script, r, nil
	}
	if wasicmd.Detect(r) {
		return Program, r, nil
	}
	return "", r, nil
}

// fromModule makes a package of a module alone, or of one with an elf.toml.
func fromModule(file string, wasm []byte, m *abi.Manifest) (*Found, error) {
	format, report, err := Look(wasm)
	switch {
	case err != nil:
		return nil, err
	case format == Tool:
		return fromComponent(file, wasm, m)
	case format == "":
		return nil, nil
	}
	f := &Found{Format: format, File: file}
	manifest := abi.Manifest{ABI: abi.Version, Name: PluginName(file), Version: "0.0.0", Description: "A " + format + "."}
	if m != nil {
		manifest = *m
	}
	if manifest.Limits.HostCalls == 0 {
		manifest.Limits.HostCalls = extism.HostCalls
	}
	var form *sandbox.Format
	switch format {
	case Script:
		if form, err = javascript.New(wasm, manifest.Needs); err != nil {
			return nil, err
		}
	case Program:
		if m == nil && opensFiles(report) {
			manifest.Needs = []abi.Need{{Cap: abi.FSRead, Scope: []string{"/ws", "/ws/**"}, Reason: "it is a program that opens files"}}
		}
		programTools(&manifest)
		form = wasicmd.New(needsFiles(manifest.Needs))
	default:
		kind := extism.Kind(format)
		if kind == extism.Plain {
			exportTools(&manifest, report)
		}
		if form, err = extism.New(extism.Options{Kind: kind, Hosts: []string{"*"}}); err != nil {
			return nil, err
		}
	}
	f.Package = pack(manifest, form, wasm)
	return f, nil
}

// programTools gives a program a tool where its manifest names none.
func programTools(m *abi.Manifest) {
	if len(m.Tools) == 0 {
		m.Tools = []abi.ToolDecl{wasicmd.Default(m.Name, "")}
	}
	for i := range m.Tools {
		if m.Tools[i].Program == nil {
			d := wasicmd.Default(m.Tools[i].Name, m.Tools[i].Description)
			d.Output, d.ReadOnly = m.Tools[i].Output, m.Tools[i].ReadOnly
			m.Tools[i] = d
		}
	}
}

// exportTools makes a tool of each export of an Extism plugin, unless the
// manifest names some.
func exportTools(m *abi.Manifest, r *vet.Report) {
	if len(m.Tools) > 0 {
		return
	}
	for _, name := range extism.Exports(r) {
		m.Tools = append(m.Tools, abi.ToolDecl{Name: name, Input: []byte(extism.Input),
			Description: fmt.Sprintf("Call the function %s of the plugin %s.", name, m.Name)})
	}
}

func opensFiles(r *vet.Report) bool {
	return slices.ContainsFunc(r.Imports, func(s vet.Symbol) bool { return s.Name == "path_open" })
}

func needsFiles(needs []abi.Need) bool {
	return slices.ContainsFunc(needs, func(n abi.Need) bool { return n.Cap == abi.FSRead || n.Cap == abi.FSWrite })
}

func pack(m abi.Manifest, f *sandbox.Format, wasm []byte) sandbox.Package {
	sum := sha256.Sum256(wasm)
	return sandbox.Package{Manifest: m, Digest: hex.EncodeToString(sum[:]), Source: host.Plugin, Format: f,
		Wasm: func() ([]byte, error) { return wasm, nil }}
}

// PluginName makes a name that a plugin may have of a file's.
func PluginName(file string) string {
	s := strings.ToLower(strings.TrimSuffix(path.Base(file), path.Ext(file)))
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, s)
	for strings.Contains(s, "--") {
		s = strings.ReplaceAll(s, "--", "-")
	}
	if s = strings.Trim(s, "-"); s == "" || s[0] < 'a' {
		s = "p-" + s
	}
	s = strings.Trim(s[:min(len(s), 64)], "-")
	if abi.CheckName(s) != nil {
		return "plugin"
	}
	return s
}

func read(dir fs.FS, name string, most int64) ([]byte, error) {
	if !fs.ValidPath(name) {
		return nil, fmt.Errorf("%q is no name of a file in the plugin's folder", name)
	}
	if st, err := fs.Stat(dir, name); err == nil && !st.Mode().IsRegular() { // before the open: a FIFO would wait
		return nil, fmt.Errorf("%q is not a regular file", name)
	}
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a regular file", name)
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%q is over %d bytes", name, most)
	}
	return b, err
}

var errNoModule = errors.New("the manifest names no module")
