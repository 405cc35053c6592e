package kit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/internal/kit"
)

const guide = "../../docs/plugin-authors.md"

// TestHelloIsAsDocumented: what `plugin new hello` makes is what the guide shows.
func TestHelloIsAsDocumented(t *testing.T) {
	doc, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	for lang, file := range map[string]string{"go": "main.go", "c": "plugin.c", "assemblyscript": "assembly/index.ts", "js": "plugin.js"} {
		dir := filepath.Join(t.TempDir(), "hello")
		if _, err := kit.New(dir, lang, "hello"); err != nil {
			t.Fatal(err)
		}
		source, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		text := string(source)
		if lang == "go" { // the example has another name for the function
			text = strings.ReplaceAll(text, "greet(", "hello(")
			text = strings.ReplaceAll(text, "}, greet)", "}, hello)")
		}
		if !strings.Contains(string(doc), text) {
			t.Errorf("the guide does not show %s as it is:\n%s", file, text)
		}
		if n := len(strings.Fields(strings.ReplaceAll(text, " ", ""))); n > 15 {
			t.Errorf("%s has %d lines with something on them", file, n)
		}
	}
}

var rustBlock = regexp.MustCompile("(?s)```rust\n(.*?)```")

// TestRustAsDocumented follows the guide's steps for Rust.
func TestRustAsDocumented(t *testing.T) {
	doc, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	m := rustBlock.FindSubmatch(doc)
	if m == nil {
		t.Fatal("the guide shows no Rust")
	}
	rustc, target := findRust()
	if rustc == "" {
		t.Skip("there is no rustc with a target of WASI (Debian: rustc libstd-rust-dev-wasm32)")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"lib.rs": string(m[1]),
		"elf.toml": "abi = \"elf/1\"\nname = \"count\"\nversion = \"0.1.0\"\ndescription = \"Counts words.\"\n\n[[needs]]\ncap = \"fs.read\"\nscope = [\"/ws/**\"]\nreason = \"counts words\"\n\n" +
			"[[tools]]\nname = \"count\"\ndescription = \"Counts the words of a file.\"\ninput = { type = \"object\", properties = { path = { type = \"string\" } }, required = [\"path\"] }\n",
		"testdata/cases/two.json":  `{"tool":"count","args":{"path":"/ws/a.txt"},"grants":["fs.read /ws/**"],"files":{"a.txt":"one two"},"want":"2 words."}`,
		"testdata/cases/none.json": `{"tool":"count","args":{"path":"/ws/b.txt"},"grants":["fs.read /ws/**"],"error":true,"contains":"could not be read"}`,
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(rustc, "--edition", "2021", "--crate-type", "cdylib", "--target", target, "-O", "-C", "strip=symbols", "-o", "plugin.wasm", "lib.rs")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, in, cases := open(t, dir)
	if bad := failures(kit.Check(t.Context(), b, in, cases)); bad != "" {
		t.Error(bad)
	}
}

// findRust finds a rustc, and a target that it has a library for.
func findRust() (rustc, target string) {
	for _, r := range []string{"rustc", "/usr/bin/rustc"} {
		for _, target := range []string{"wasm32-wasip1", "wasm32-wasi"} {
			out, err := exec.Command(r, "--target", target, "--print", "target-libdir").Output()
			if err != nil {
				continue
			}
			if found, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "libstd*")); len(found) > 0 {
				return r, target
			}
		}
	}
	return "", ""
}
