package kit_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/compile"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/kit"
	"github.com/elfhost/elfhost/pdk/golden"
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

func open(t *testing.T, dir string) (*kit.Bench, sandbox.Inspection, []golden.Case) {
	t.Helper()
	pkg, _, err := app.ReadPackage(dir)
	if err != nil {
		t.Fatal(err)
	}
	in, err := kit.Inspect(pkg)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := golden.Read(dir)
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
	return b, in, cases
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
	if _, err := kit.New(dir, "go", "hello"); err != nil {
		t.Fatal(err)
	}
	if err := kit.TestNative(t.Context(), dir, io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, err := kit.Build(t.Context(), dir, io.Discard); err != nil {
		t.Fatal(err)
	}
	b, in, cases := open(t, dir)
	if len(cases) != 2 {
		t.Errorf("%d cases", len(cases))
	}
	if bad := failures(kit.Check(t.Context(), b, in, cases)); bad != "" {
		t.Error(bad)
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
}

// TestMissingToolchain: the error says which, where it was looked for, and how
// to install it.
func TestMissingToolchain(t *testing.T) {
	t.Setenv("PATH", "/nowhere")
	t.Setenv("WASI_SDK_PATH", "")
	for lang, want := range map[string]string{"go": "https://go.dev/dl", "c": "apt install clang", "assemblyscript": "Node.js"} {
		dir := filepath.Join(t.TempDir(), "tool")
		if _, err := kit.New(dir, lang, "hello"); err != nil {
			t.Fatal(err)
		}
		_, err := kit.Build(t.Context(), dir, io.Discard)
		var missing *kit.MissingToolchain
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), "/nowhere") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", lang, err)
		}
	}
}

// TestLanguages makes, builds and holds against its cases each example in each
// language whose toolchain is here.
func TestLanguages(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs compilers")
	}
	offline(t)
	for _, lang := range kit.Languages() {
		for _, example := range kit.Examples() {
			t.Run(lang+"/"+example, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "my-tool")
				if _, err := kit.New(dir, lang, example); err != nil {
					t.Fatal(err)
				}
				if lang == "assemblyscript" {
					assemblyScript(t, dir)
				}
				if err := kit.TestNative(t.Context(), dir, io.Discard); err != nil {
					t.Error(err)
				}
				var log bytes.Buffer
				_, err := kit.Build(t.Context(), dir, &log)
				var missing *kit.MissingToolchain
				if errors.As(err, &missing) {
					t.Skip(err)
				}
				if err != nil {
					t.Fatalf("%v\n%s", err, log.String())
				}
				b, in, cases := open(t, dir)
				if len(cases) < 2 {
					t.Errorf("%d cases", len(cases))
				}
				if bad := failures(kit.Check(t.Context(), b, in, cases)); bad != "" {
					t.Error(bad)
				}
			})
		}
	}
}

// assemblyScript puts the compiler where npm would. It is fetched once for many
// runs; a fetch that was cut off, or two at once, leave nothing half there.
func assemblyScript(t *testing.T, dir string) {
	t.Helper()
	cache := filepath.Join(os.TempDir(), "elfhost-assemblyscript-0.28.20")
	modules := filepath.Join(cache, "node_modules")
	if _, err := os.Stat(filepath.Join(modules, "assemblyscript", "bin", "asc.js")); err != nil {
		own, err := os.MkdirTemp("", "elfhost-assemblyscript-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(own) })
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", own, "--fetch-retries=0", "--fetch-timeout=20000", "assemblyscript@0.28.20")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("the AssemblyScript compiler cannot be had from npm: %v %s", err, out)
		}
		if os.Rename(own, cache) != nil { // something is there: another's, or the rest of an older fetch
			modules = filepath.Join(own, "node_modules")
		}
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Skip(err)
	}
}

func TestNewRefuses(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "a"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for dir, lang := range map[string]string{filepath.Join(t.TempDir(), "Bad_Name"): "go", full: "go", filepath.Join(t.TempDir(), "fine"): "cobol"} {
		if _, err := kit.New(dir, lang, "hello"); err == nil {
			t.Errorf("%s in %s is accepted", dir, lang)
		}
	}
	if b, _ := os.ReadDir(full); len(b) != 1 {
		t.Error("something was written to a full folder")
	}
}
