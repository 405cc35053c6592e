package kit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/compile"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/kit"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == compile.Verb {
		os.Exit(compile.Child(os.Args[2:], os.Stdin, os.Stderr))
	}
	os.Exit(m.Run())
}

// offline makes every fetch of the go command fail.
func offline(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
}

func open(t *testing.T, dir string) (*kit.Bench, sandbox.Package, sandbox.Inspection, []kit.Case) {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join(dir, kit.Module))
	if err != nil {
		t.Fatal(err)
	}
	toml, err := os.ReadFile(filepath.Join(dir, "elf.toml"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := config.ReadManifest(toml, "elf.toml")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(wasm)
	pkg := sandbox.Package{Manifest: *m, Digest: hex.EncodeToString(sum[:]), Source: host.Plugin, Wasm: func() ([]byte, error) { return wasm, nil }}
	in, err := sandbox.Inspect(wasm)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := kit.Cases(dir)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := kit.Open(t.Context(), pkg, self, filepath.Join(os.TempDir(), "elfhost-kit-test"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close(context.Background()) })
	return b, pkg, in, cases
}

func failures(found []kit.Finding) string {
	var out []string
	for _, f := range found {
		if !f.OK {
			out = append(out, f.What+": "+f.Why)
		}
	}
	return strings.Join(out, "\n")
}

// TestNew makes a plugin outside of this repository and without a network,
// builds it, and holds it against its own cases. Then mistakes are planted.
func TestNew(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the go command")
	}
	offline(t)
	dir := filepath.Join(t.TempDir(), "my-tool")
	if _, err := kit.New(dir, "go"); err != nil {
		t.Fatal(err)
	}
	if err := kit.TestNative(t.Context(), dir, io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, err := kit.Build(t.Context(), dir, io.Discard); err != nil {
		t.Fatal(err)
	}
	b, pkg, in, cases := open(t, dir)
	if len(cases) != 2 {
		t.Errorf("%d cases", len(cases))
	}
	if bad := failures(kit.Check(t.Context(), b, pkg, in, cases)); bad != "" {
		t.Error(bad)
	}

	// A need that nothing uses, and a case that is wrong.
	pkg.Manifest.Needs = append(pkg.Manifest.Needs, needs(t, "net.http", "https://api.example.org")...)
	wrong := "Goodbye"
	cases[0].Want = &wrong
	bad := failures(kit.Check(t.Context(), b, pkg, in, cases))
	for _, want := range []string{"imports nothing of [net.http]", `want "Goodbye"`} {
		if !strings.Contains(bad, want) {
			t.Errorf("no %q in %s", want, bad)
		}
	}

	// Sources that do not compile leave the last module alone.
	before, _ := os.ReadFile(filepath.Join(dir, kit.Module))
	if err := os.WriteFile(filepath.Join(dir, "broken.go"), []byte("package main\nfunc"), 0o644); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	if _, err := kit.Build(t.Context(), dir, &log); err == nil || !strings.Contains(log.String(), "broken.go") {
		t.Errorf("a broken build: %v, %s", err, log.String())
	}
	if after, _ := os.ReadFile(filepath.Join(dir, kit.Module)); !bytes.Equal(before, after) {
		t.Error("the broken build replaced the module")
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := kit.Build(t.Context(), dir, io.Discard); !errors.Is(err, kit.ErrNoToolchain) {
		t.Errorf("without go: %v", err)
	}
}

func needs(t *testing.T, cap, scope string) []abi.Need {
	t.Helper()
	m, err := config.ReadManifest([]byte("abi = \"elf/1\"\nname = \"a\"\nversion = \"1\"\n[[needs]]\ncap = \""+cap+"\"\nscope = \""+scope+"\"\nreason = \"r\"\n"), "elf.toml")
	if err != nil {
		t.Fatal(err)
	}
	return m.Needs
}

func TestNewRefuses(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "a"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for dir, lang := range map[string]string{filepath.Join(t.TempDir(), "Bad_Name"): "go", full: "go", filepath.Join(t.TempDir(), "fine"): "cobol"} {
		if _, err := kit.New(dir, lang); err == nil {
			t.Errorf("%s in %s is accepted", dir, lang)
		}
	}
	if b, _ := os.ReadDir(full); len(b) != 1 {
		t.Error("something was written to a full folder")
	}
}

func TestCases(t *testing.T) {
	dir := t.TempDir()
	cases := filepath.Join(dir, filepath.FromSlash(kit.CasesDir))
	if err := os.MkdirAll(cases, 0o755); err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{
		`{"tool":"a","want":""}`: true, `{"tool":"a","error":true}`: true, `{"tool":"a","json":{"a":1}}`: true,
		`{"events":[],"tool":"a","digest":"x"}`: true,
		`{"tool":"a"}`:                          false, `{"want":"x"}`: false, `{"tool":"a","want":"x","wnat":"y"}`: false, `[]`: false,
	} {
		if err := os.WriteFile(filepath.Join(cases, "c.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := kit.Cases(dir); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
