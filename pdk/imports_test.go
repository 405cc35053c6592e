package pdk_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
)

// A guest imports what it calls and nothing else: this is what an installer is
// shown as the most that a plugin can do.
func TestOnlyUsedImportsAreLinked(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"none", `return "hi", nil`, nil},
		{"log", `pdk.Log(ctx, pdk.LevelInfo, "x"); return "", nil`, []string{"elf:io.error", "elf:io.take", "elf:log.write"}},
		{"net", `r, err := pdk.Fetch(ctx, pdk.Request{URL: "https://example.org"}); return string(r.Body), err`,
			[]string{"elf:io.error", "elf:io.take", "elf:net.http"}},
		{"kv", `b, err := pdk.KVGet(ctx, "k"); return string(b), err`, []string{"elf:io.error", "elf:io.take", "elf:kv.get"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := imports(t, build(t, c.body))
			if !slices.Equal(got, c.want) {
				t.Errorf("imports %q, want %q", got, c.want)
			}
		})
	}
}

// build compiles a guest with one tool whose body is given. Its folder is in
// the module, so that the pdk is found, and in testdata, which ./... passes by.
func build(t *testing.T, body string) []byte {
	t.Helper()
	if err := os.MkdirAll("testdata", 0o750); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("testdata", "guest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir); _ = os.Remove("testdata") })
	source := `package main
import ("context"; "github.com/elfhost/elfhost/pdk")
func init() { pdk.Tool(pdk.Spec{Name: "t"}, func(ctx context.Context, _ struct{}) (string, error) { ` + body + ` }) }
func main() { pdk.Main() }
`
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	wasm := filepath.Join(t.TempDir(), "t.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", wasm, "./"+dir)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the guest: %v\n%s", err, out)
	}
	data, err := os.ReadFile(wasm)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// imports lists the functions that a module imports, WASI's excepted.
func imports(t *testing.T, wasm []byte) []string {
	t.Helper()
	r := bytes.NewReader(wasm[8:])
	num := func() int {
		n, err := binary.ReadUvarint(r)
		if err != nil {
			t.Fatal(err)
		}
		return int(n)
	}
	text := func() string {
		b := make([]byte, num())
		if _, err := r.Read(b); err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for {
		section, err := r.ReadByte()
		if err != nil {
			t.Fatal(errors.Join(errors.New("no import section"), err))
		}
		size := num()
		if section != 2 {
			_, _ = r.Seek(int64(size), 1)
			continue
		}
		var out []string
		for range num() {
			module, name := text(), text()
			_, _ = r.ReadByte() // the kind: Go imports functions only
			num()
			if module != abi.ModuleWASI {
				out = append(out, module+"."+name)
			}
		}
		slices.SortFunc(out, strings.Compare)
		return out
	}
}
