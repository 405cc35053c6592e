// Package plugintest runs a plugin of this module in the real sandbox: built
// from its sources, under its own manifest, with the grants of the test. It is
// for tests of what pdk/pdktest leaves out: the encoding, the rights, the limits.
package plugintest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/reach/secret"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/compile"
	"github.com/elfhost/elfhost/internal/config/manifest"
)

// Plugin is a loaded plugin. Set Loader's brokers before the first call.
type Plugin struct {
	Loader *sandbox.Loader
	Dir    string // is /ws

	t      testing.TB
	plugin *sandbox.Plugin
}

// Main is the TestMain of a package that calls [Load]: its test program is also
// the one that compiles plugins, in a process of its own.
func Main(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == compile.Verb {
		os.Exit(compile.Child(os.Args[2:], os.Stdin, os.Stderr))
	}
	os.Exit(m.Run())
}

// Load builds the plugin whose sources and elf.toml are in dir. It is closed
// with the test. Machine code is kept between runs, in the temporary folder,
// by digest: compiling takes seconds.
func Load(t testing.TB, dir string) *Plugin {
	t.Helper()
	return LoadModule(t, dir, Build(t, dir))
}

// LoadModule is Load for a module that is built already.
func LoadModule(t testing.TB, dir string, wasm []byte) *Plugin {
	t.Helper()
	p := &Plugin{t: t, Dir: t.TempDir()}
	tree, err := reach.NewTree(reach.Mount{Name: "/ws", Dir: p.Dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.Loader = &sandbox.Loader{
		Dir: filepath.Join(os.TempDir(), "elfhost-plugintest"), Compiler: self,
		Tree: func(host.Caller) *reach.Tree { return tree },
		HTTP: &reach.HTTP{Secrets: &secret.Vault{Store: Secrets{}}},
		Env:  func(string) (string, bool) { return "", false },
	}
	t.Cleanup(func() { p.Loader.HTTP.Close() })
	m, err := manifest.ReadFile(filepath.Join(dir, "elf.toml"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(wasm)
	p.plugin, err = p.Loader.Load(t.Context(), sandbox.Package{
		Manifest: *m, Digest: hex.EncodeToString(sum[:]), Source: host.Bundled,
		Wasm: func() ([]byte, error) { return wasm, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.plugin.Close(context.WithoutCancel(t.Context())) })
	return p
}

// Build compiles the sources in dir as the shipped plugins are compiled.
func Build(t testing.TB, dir string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "plugin.wasm")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", dir, err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// Description is what the module itself says of its tools.
func (p *Plugin) Description() abi.Description { return p.plugin.Description() }

// Call runs the named tool under the grants, which are written as in grants
// files ("net.http public GET"). An error of the sandbox is in err.
func (p *Plugin) Call(tool string, args any, grants ...string) (abi.Result, abi.Receipt, error) {
	p.t.Helper()
	return p.CallContext(p.t.Context(), tool, args, grants...)
}

// CallContext is Call that ends with ctx.
func (p *Plugin) CallContext(ctx context.Context, tool string, args any, grants ...string) (r abi.Result, receipt abi.Receipt, err error) {
	p.t.Helper()
	input, err := json.Marshal(args)
	if err != nil {
		p.t.Fatal(err)
	}
	var given []policy.Grant
	for _, g := range grants {
		parsed, err := policy.ParseGrant(g)
		if err != nil {
			p.t.Fatal(err)
		}
		given = append(given, parsed)
	}
	rights, err := policy.New("grants", given...)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, t := range p.plugin.Tools() {
		if t.Spec().Name == tool {
			r, err = t.Call(ctx, host.Call{
				ID: "test", Tool: tool, Args: input, Rights: policy.Rights{Grants: rights},
				Receipt: func(got abi.Receipt) { receipt = got },
			})
			return r, receipt, err
		}
	}
	p.t.Fatalf("no tool %q", tool)
	return r, receipt, err
}

// Secrets is a [secret.Store] in memory.
type Secrets map[string]string

func (s Secrets) Get(name string) (string, error) {
	if v, ok := s[name]; ok {
		return v, nil
	}
	return "", abi.ErrNotFound
}

func (s Secrets) Set(name, value string) error { s[name] = value; return nil }

func (s Secrets) Delete(name string) error { delete(s, name); return nil }

func (s Secrets) Names() ([]string, error) { return slices.Sorted(maps.Keys(s)), nil }

func (s Secrets) Where() string { return "memory" }
