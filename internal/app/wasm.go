package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/foreign"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/policy/packages"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/config/granted"
	"github.com/elfhost/elfhost/internal/config/manifest"
	"github.com/elfhost/elfhost/internal/config/strict"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/plugins"
)

// pack is a plugin of this session.
type pack struct {
	manifest abi.Manifest
	digest   string
	tools    []abi.ToolDecl
	bundled  bool
	needs    string // manifest.NeedsHash
	folder   string // that --plugin named; "" for others

	installed *installedPack // nil: not from elfhost.lock
}

func newPack(m abi.Manifest, digest string, tools []abi.ToolDecl, bundled bool) pack {
	return pack{manifest: m, digest: digest, tools: tools, bundled: bundled, needs: manifest.NeedsHash(m.Needs)}
}

func (p pack) key() granted.Key {
	return granted.Key{Publisher: p.manifest.Publisher, Name: p.manifest.Name, Digest: p.digest, Needs: p.needs}
}

// bundled loads one plugin that ships with the binary. Its bytes are unpacked
// at its first call.
func (a *App) bundled(ctx context.Context, name string) ([]host.Tool, error) {
	b, err := plugins.Bundled(name)
	if errors.Is(err, plugins.ErrNotBuilt) {
		a.note("the plugin %s is not in this build: make plugins, then build again", name)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := manifest.Read(b.Manifest, name+"/elf.toml")
	if err != nil {
		return nil, err
	}
	p, err := a.Loader.Load(ctx, sandbox.Package{
		Manifest: *m, Description: &b.Description, Digest: b.Digest, Source: host.Bundled, Wasm: b.Wasm,
	})
	if err != nil {
		return nil, fmt.Errorf("loading the bundled plugin %q: %w", name, err)
	}
	a.Plugins = append(a.Plugins, p)
	a.packages = append(a.packages, newPack(*m, b.Digest, b.Description.Tools, true))
	return p.Tools(), nil
}

// folderPlugins loads the plugins that a person named with --plugin.
func folderPlugins(ctx context.Context, a *App) ([]host.Tool, error) {
	if len(a.opt.Plugins) == 0 {
		return nil, nil
	}
	var out []host.Tool
	seen := openModules(filepath.Join(a.Paths.State, "modules.json"))
	for _, dir := range a.opt.Plugins {
		tools, err := a.folder(ctx, dir, seen)
		if err != nil {
			return nil, fault.Wrap("E1302", "give a folder with elf.toml and plugin.wasm, or a plugin of another format; `elfhost plugin inspect FILE` looks at a module", err)
		}
		out = append(out, tools...)
	}
	if err := seen.save(); err != nil {
		a.note("the digests of plugins cannot be kept: %v", err)
	}
	return out, nil
}

// folder loads what a person named: a plugin's folder, or a module or a
// manifest of another format.
func (a *App) folder(ctx context.Context, name string, seen *modules) ([]host.Tool, error) {
	pkg, notes, err := readPackage(name, seen)
	if err != nil {
		return nil, err
	}
	// A folder is no way round what a policy says of packages. Nobody signed it.
	if err := a.judged(a.Policy.Package(folderFacts(name, pkg.Manifest))); err != nil {
		return nil, err
	}
	for _, n := range notes {
		a.note("%s: %s", name, n)
	}
	p, err := a.Loader.Load(ctx, pkg)
	if err != nil {
		return nil, err
	}
	a.Plugins = append(a.Plugins, p)
	mine := newPack(pkg.Manifest, pkg.Digest, p.Description().Tools, false)
	mine.folder = name
	a.packages = append(a.packages, mine)
	return p.Tools(), nil
}

// folderFacts are what a policy judges of a plugin in a folder.
func folderFacts(name string, m abi.Manifest) packages.Facts {
	f := packages.Facts{Name: m.Name, Version: m.Version, Publisher: m.Publisher, Needs: m.Needs}
	if abs, err := filepath.Abs(name); err == nil {
		f.Hub = "file://" + filepath.ToSlash(abs)
	}
	return f
}

// ReadPackage reads a plugin from disk: a folder with elf.toml and plugin.wasm,
// or a folder or a file in a format that host/foreign knows. The notes say what
// of a foreign configuration is not honoured.
func ReadPackage(name string) (pkg sandbox.Package, notes []string, err error) {
	return readPackage(name, nil)
}

func readPackage(name string, seen *modules) (pkg sandbox.Package, notes []string, err error) {
	dir, file := name, ""
	if st, err := os.Stat(name); err != nil {
		return pkg, nil, err
	} else if !st.IsDir() {
		dir, file = filepath.Split(name)
	}
	dir = filepath.Clean(dir)
	m, err := readManifest(filepath.Join(dir, "elf.toml"))
	if err != nil {
		return pkg, nil, err
	}
	whole, err := filepath.Abs(filepath.Join(dir, moduleFile))
	if err != nil {
		return pkg, nil, err
	}
	usual := seen != nil && file == "" && m != nil
	if usual {
		if digest, ok := seen.digest(whole); ok {
			return elfPackage(m, digest, whole), nil, nil
		}
	}
	before, _ := os.Lstat(whole)
	found, err := foreign.Find(os.DirFS(dir), file, m)
	switch {
	case err != nil:
		return pkg, nil, err
	case found != nil:
		return found.Package, found.Notes, nil
	case m == nil:
		return pkg, nil, fmt.Errorf("%q holds no elf.toml, and no plugin of a format that elfhost knows", name)
	}
	if file != "" {
		usual = false
		if whole, err = filepath.Abs(filepath.Join(dir, file)); err != nil {
			return pkg, nil, err
		}
	}
	wasm, err := readBounded(whole, maxModule)
	if err != nil {
		return pkg, nil, err
	}
	if usual {
		seen.keep(whole, before, wasm)
	}
	sum := sha256.Sum256(wasm)
	return elfPackage(m, hex.EncodeToString(sum[:]), whole), nil, nil
}

// moduleFile is the module of a plugin's folder.
const moduleFile = "plugin.wasm"

// elfPackage is a plugin of elf/1, whose module is read at the first call.
func elfPackage(m *abi.Manifest, digest, file string) sandbox.Package {
	return sandbox.Package{Manifest: *m, Digest: digest, Source: host.Plugin,
		Wasm: func() ([]byte, error) { return readBounded(file, maxModule) }}
}

// readManifest reads an elf.toml; nil when there is none.
func readManifest(file string) (*abi.Manifest, error) {
	b, err := readBounded(file, strict.MaxFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return manifest.Read(b, file)
}

// maxModule is the ABI's limit on a module, in bytes.
const maxModule = 32 << 20

func readBounded(path string, most int64) ([]byte, error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() { // before the open: a FIFO would wait
		return nil, fmt.Errorf("%q is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a regular file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%q is over %d bytes", path, most)
	}
	return b, err
}

// answer serves elf:model: the background model, without tools.
func (a *App) answer(ctx context.Context, _ policy.Rights, q sandbox.ModelRequest) (sandbox.ModelReply, error) {
	chosen, err := a.background(ctx)
	if err != nil {
		return sandbox.ModelReply{}, fmt.Errorf("%w: %w", abi.ErrUnavailable, err)
	}
	req := model.Request{System: q.System, MaxTokens: q.MaxTokens}
	for _, msg := range q.Messages {
		next := model.User(msg.Content...)
		if msg.Role == "assistant" {
			next.Role = model.RoleAssistant
		}
		req.Messages = append(req.Messages, next)
	}
	var turn model.Turn
	m := model.Retry{Attempts: 3}.Wrap(chosen.Model)
	for e, err := range m.Stream(ctx, req) {
		if err != nil {
			return sandbox.ModelReply{}, fmt.Errorf("%w: %w", abi.ErrUnavailable, err)
		}
		turn.Add(e)
	}
	return sandbox.ModelReply{
		Text: turn.Message.Text(), Model: chosen.Info.ID, Stop: string(turn.Stop),
		TokensIn: turn.Usage.Input + turn.Usage.CacheRead + turn.Usage.CacheWrite, TokensOut: turn.Usage.Output,
	}, nil
}

// Package is a plugin of this session, for people.
type Package struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Source  string   `json:"source"`
	Digest  string   `json:"digest"`
	Tools   []string `json:"tools"`
	Needs   []string `json:"needs"`
	Grants  []string `json:"grants"`
}

// OpenPlugin gives the plugin behind a row of Packages.
func (a *App) OpenPlugin(ctx context.Context, p Package) (*sandbox.Plugin, error) {
	for i, x := range a.packs() {
		switch {
		case x.manifest.Name != p.Name || x.digest != p.Digest:
		case x.installed != nil:
			return x.installed.open(ctx)
		default:
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.Plugins[i], nil
		}
	}
	return nil, fault.New("E1304", "`elfhost plugin list` shows them", "there is no plugin %q any more", p.Name)
}

// Packages lists the plugins of this session.
func (a *App) Packages() []Package {
	out := []Package{}
	for _, p := range a.packs() {
		row := Package{Name: p.manifest.Name, Version: p.manifest.Version, Source: string(host.Plugin), Digest: p.digest}
		if p.bundled {
			row.Source = string(host.Bundled)
		}
		if p.installed != nil {
			row.Source = p.installed.in.Source
		}
		for i, t := range p.tools {
			name := t.Name
			if p.installed != nil {
				name = p.installed.names[i] // as it is called
			}
			row.Tools = append(row.Tools, name)
		}
		for _, n := range p.manifest.Needs {
			row.Needs = append(row.Needs, policy.Grant{Cap: n.Cap, Scope: n.Scope}.String())
		}
		for _, g := range a.Grants(p.key()) {
			row.Grants = append(row.Grants, g.String())
		}
		out = append(out, row)
	}
	return out
}
