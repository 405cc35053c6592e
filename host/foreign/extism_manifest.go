package foreign

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/foreign/extism"
)

// fromExtismManifest reads an Extism manifest, or hyper-mcp's configuration of
// one plugin. Nil without an error: the file is neither.
func fromExtismManifest(dir fs.FS, file string) (*Found, error) {
	b, err := read(dir, file, maxConfig)
	if err != nil {
		return nil, err
	}
	m, ok, err := extism.ParseManifest(b)
	if !ok && err == nil {
		return fromHyperMCP(dir, file, b)
	}
	fail := func(err error) (*Found, error) { return nil, fmt.Errorf("the Extism manifest %q: %w", file, err) }
	if err != nil {
		return fail(err)
	}
	options := m.Options()
	main, libraries := m.Split()
	for _, s := range libraries {
		l, err := library(dir, s, options)
		if err != nil {
			return fail(err)
		}
		options.Libraries = append(options.Libraries, l)
	}
	wasm, name, err := source(dir, main)
	if err != nil {
		return fail(err)
	}
	if name == "" {
		name = file
	}
	f, err := assemble(name, bind(wasm, options.Libraries), options, m.AllowedPaths)
	if err != nil {
		return fail(err)
	}
	f.File = file
	limits := m.Limits()
	f.Package.Manifest.Limits = limits
	return f, nil
}

// library makes a module that others link. It sees the libraries before it.
func library(dir fs.FS, s extism.Source, o extism.Options) (extism.Library, error) {
	fail := func(err error) (extism.Library, error) { return extism.Library{}, err }
	if err := extism.CheckLibrary(s.Name); err != nil {
		return fail(err)
	}
	for _, l := range o.Libraries {
		if l.Name == s.Name {
			return fail(fmt.Errorf("two modules have the name %q", s.Name))
		}
	}
	wasm, _, err := source(dir, s)
	if err != nil {
		return fail(err)
	}
	format, report, err := Look(wasm)
	switch {
	case err != nil:
		return fail(fmt.Errorf("the module %q: %w", s.Name, err))
	case report == nil:
		return fail(fmt.Errorf("the module %q is a component (%s), which Extism cannot run", s.Name, format))
	}
	o.Kind = extism.Lib
	form, err := extism.New(o)
	if err != nil {
		return fail(err)
	}
	form.Links = nil // the call's own module has them
	m := abi.Manifest{ABI: abi.Version, Name: s.Name, Version: "0.0.0"}
	return extism.Library{Name: s.Name, Report: report, Package: pack(m, form, bind(wasm, o.Libraries))}, nil
}

// linksSection names the libraries that a module was put together with.
const linksSection = "elf:links"

// bind adds the digests of its libraries to a module, so that its own digest,
// which grants and pins go by, is one of all of them.
func bind(wasm []byte, libraries []extism.Library) []byte {
	if len(libraries) == 0 {
		return wasm
	}
	body := append([]byte{byte(len(linksSection))}, linksSection...)
	for _, l := range libraries {
		body = append(body, l.Name+" "+l.Package.Digest+"\n"...)
	}
	out := append(slices.Clone(wasm), 0)
	return append(binary.AppendUvarint(out, uint64(len(body))), body...)
}

// source reads a module of a manifest and holds it against its hash.
func source(dir fs.FS, s extism.Source) (wasm []byte, name string, err error) {
	switch {
	case len(s.Data) > 0:
		wasm = s.Data
	case s.Path != "":
		name = path.Clean(s.Path)
		wasm, err = read(dir, name, maxModule)
	case s.URL != "":
		err = fmt.Errorf("its module is at %s: download it, put it beside the manifest and write \"path\"", s.URL)
	default:
		err = errNoModule
	}
	if err != nil || s.Hash == "" {
		return wasm, name, err
	}
	sum := sha256.Sum256(wasm)
	if got := hex.EncodeToString(sum[:]); !strings.EqualFold(got, s.Hash) {
		return nil, name, fmt.Errorf("the module has the hash %s, and the manifest says %s", got, s.Hash)
	}
	return wasm, name, nil
}

// assemble makes a package of a module of Extism's family.
func assemble(name string, wasm []byte, o extism.Options, paths map[string]string) (*Found, error) {
	format, report, err := Look(wasm)
	switch {
	case err != nil:
		return nil, err
	case report == nil:
		return nil, errors.New("its module is a component, which Extism cannot run")
	}
	o.Kind = extism.Kind(format)
	if format == "" || format == Program { // it imports nothing of Extism's, and is one by its manifest
		o.Kind = extism.Plain
	}
	m := abi.Manifest{ABI: abi.Version, Name: PluginName(name), Version: "0.0.0", Description: "A " + string(o.Kind) + "."}
	m.Needs = extism.HostNeeds(o.Hosts)
	needs, guest, err := extism.PathNeeds(paths, virtual)
	if err != nil {
		return nil, err
	}
	m.Needs = append(m.Needs, needs...)
	o.Paths = guest
	if o.Kind == extism.Plain {
		exportTools(&m, report)
	}
	m.Limits.HostCalls = extism.HostCalls
	form, err := extism.New(o)
	if err != nil {
		return nil, err
	}
	return &Found{Format: string(o.Kind), Package: pack(m, form, wasm)}, nil
}

// virtual maps a folder of a manifest below the workspace.
func virtual(host string) (string, error) {
	switch {
	case host == "/ws" || strings.HasPrefix(host, "/ws/"):
		return path.Clean(host), nil
	case path.IsAbs(host) || strings.Contains(host, `\`) || strings.Contains(host, ":"):
		return "", errors.New(`it lies outside the workspace: write it relative to the workspace, or as "/ws/…"`)
	}
	clean := path.Join("/ws", host)
	if clean != "/ws" && !strings.HasPrefix(clean, "/ws/") {
		return "", errors.New("it leads out of the workspace")
	}
	return clean, nil
}

// hyperPlugin is a plugin in hyper-mcp's configuration.
type hyperPlugin struct {
	Name    string       `json:"name"`
	Path    string       `json:"path"`
	URL     string       `json:"url"`
	Runtime hyperRuntime `json:"runtime_config"`
}

type hyperRuntime struct {
	Skip    []string `json:"skip_tools"`
	Hosts   []string `json:"allowed_hosts"`
	Paths   []string `json:"allowed_paths"` // "host:guest"
	Secrets []struct {
		Service string `json:"service"`
		User    string `json:"user"`
	} `json:"allowed_secrets"`
	Env    map[string]string `json:"env_vars"`
	Memory string            `json:"memory_limit"`
}

// fromHyperMCP reads hyper-mcp's configuration where it has one plugin.
func fromHyperMCP(dir fs.FS, file string, b []byte) (*Found, error) {
	p, ok := onePlugin(b)
	if !ok {
		return nil, nil
	}
	fail := func(err error) (*Found, error) {
		return nil, fmt.Errorf("the hyper-mcp configuration %q: %w", file, err)
	}
	at := strings.TrimPrefix(p.Path+p.URL, "file://")
	if strings.Contains(at, "://") {
		return fail(fmt.Errorf("its plugin is at %s: install it first, or put the file here", at))
	}
	wasm, err := read(dir, path.Clean(strings.TrimPrefix(at, "/")), maxModule)
	if err != nil {
		return fail(err)
	}
	paths := map[string]string{}
	for _, s := range p.Runtime.Paths {
		from, to, two := strings.Cut(s, ":")
		if !two {
			to = from
		}
		paths[from] = to
	}
	o := extism.Options{Config: p.Runtime.Env, Hosts: p.Runtime.Hosts, Skip: p.Runtime.Skip}
	var scopes []string
	for _, s := range p.Runtime.Secrets {
		name := extism.SecretName(s.Service, s.User)
		o.Secrets = append(o.Secrets, name)
		for _, h := range p.Runtime.Hosts {
			scopes = append(scopes, name+"@"+h)
		}
	}
	name := p.Name
	if name == "" {
		name = at
	}
	f, err := assemble(name, wasm, o, paths)
	if err != nil {
		return fail(err)
	}
	f.File = file
	m := &f.Package.Manifest
	if len(scopes) > 0 {
		m.Needs = append(m.Needs, abi.Need{Cap: abi.Secret, Scope: scopes, Reason: "its configuration allows these secrets"})
	} else if len(o.Secrets) > 0 {
		f.Notes = append(f.Notes, "allowed_secrets without allowed_hosts: there is nowhere to fill them in")
	}
	m.Limits.Memory = memory(p.Runtime.Memory)
	return f, nil
}

// onePlugin finds the configuration's only plugin; both versions are known.
func onePlugin(b []byte) (hyperPlugin, bool) {
	var doc struct {
		Plugins json.RawMessage `json:"plugins"`
	}
	if json.Unmarshal(b, &doc) != nil || len(doc.Plugins) == 0 {
		return hyperPlugin{}, false
	}
	var list []hyperPlugin
	if json.Unmarshal(doc.Plugins, &list) == nil {
		if len(list) == 1 {
			return list[0], true
		}
		return hyperPlugin{}, false
	}
	var named map[string]hyperPlugin
	if json.Unmarshal(doc.Plugins, &named) != nil || len(named) != 1 {
		return hyperPlugin{}, false
	}
	for name, p := range named {
		p.Name = name
		return p, true
	}
	return hyperPlugin{}, false
}

// memory reads "512Mi", "1Gi", "64MB" and plain bytes; 0 for what is none.
func memory(s string) int64 {
	var n int64
	i := 0
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9' && n < 1<<40; i++ {
		n = n*10 + int64(s[i]-'0')
	}
	switch strings.TrimSuffix(strings.ToLower(strings.TrimSpace(s[i:])), "b") {
	case "":
		return n
	case "k":
		return n * 1000
	case "ki":
		return n << 10
	case "m":
		return n * 1_000_000
	case "mi":
		return n << 20
	case "g":
		return n * 1_000_000_000
	case "gi":
		return n << 30
	}
	return 0
}
