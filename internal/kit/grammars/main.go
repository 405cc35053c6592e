// Grammars builds what file_outline carries for languages whose native parsers
// are missing or old: the core that grammar packs are linked to, from
// tree-sitter's C library, and the packs, from npm. Nothing of either is kept
// in the repository.
//
//	go run ./internal/kit/grammars [LANGUAGE…]
//
// Without names it fetches the packs of Dart, Swift and Kotlin; "all" stands
// for every language, for builds without cgo.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/internal/npm"
)

// library is the C library, as a Go module, and its checksum as go.sum has it.
const (
	library    = "github.com/tree-sitter/go-tree-sitter@v0.25.0"
	librarySum = "h1:sx6kcg8raRFCvc9BnXglke6axya12krCJF5xJ2sftRU="
	dist       = "builtins/outline/dist"
)

// pack is a grammar and what its module must be.
type pack struct {
	id, from, sha256 string
	always           bool
}

const wasms = "npm:@repomix/tree-sitter-wasms@0.1.17#"

var packs = []pack{
	{"dart", wasms + "dart", "2346f891b73e741b35d33be6cc450ec6b471cf42e80515182f8fa89dc479fd69", true},
	{"swift", wasms + "swift", "d084eceba50e9a83319f5d171051b53179bd22b6ea6419014900c602d52cfa28", true},
	{"kotlin", "npm:@tree-sitter-grammars/tree-sitter-kotlin@1.1.0", "7009d69453bc8735e438b2818a633efb21c88f99782769abba60dffedfab73f7", true},
	{"typescript", wasms + "typescript", "13677574a6375e1b12e98579850c55a4db5952ad8bacd673110007ac7cfd7e69", false},
	{"tsx", wasms + "tsx", "28fd7df7f2531af8deefa41c42b1f38a42b16141f8864d335439704eaf6cb465", false},
	{"javascript", wasms + "javascript", "06ad932f038e999733c8aae0b7ff0c8bd22953c10a681d39c69c77e6e707c90e", false},
	{"python", wasms + "python", "36d25eee776af6293dc67bdf6f8f820af6a26bbc49e335cc4821dfd5a0dac685", false},
	{"go", wasms + "go", "7ca9e17e2b4fe236cb1d2386b0dfa897d7f13016cb88c1a5c8c1140719e5e514", false},
	{"c", wasms + "c", "f0c308e7465d6af2e1de71426afbcb22ba33390227db950652808d248da03bf3", false},
	{"cpp", wasms + "cpp", "212ed7c04c7a6e25702edf3148c2e65a096193fd8154f77a1c1ad1b940216d08", false},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "grammars:", err)
		os.Exit(1)
	}
}

// run is started in the module's root. The core comes first: without it no
// pack can run.
func run(ctx context.Context, names []string) error {
	if _, err := os.Stat(dist); err != nil {
		return fmt.Errorf("no %s here: start it in the module's root", dist)
	}
	for _, n := range names {
		if n != "all" && !slices.ContainsFunc(packs, func(p pack) bool { return p.id == n }) {
			return fmt.Errorf("no pack is known for %q", n)
		}
	}
	core, err := buildCore(ctx)
	if err != nil {
		return fmt.Errorf("building the core: %w", err)
	}
	if err := write("core", core); err != nil {
		return err
	}
	for _, p := range packs {
		if want := slices.Contains(names, p.id) || slices.Contains(names, "all") || len(names) == 0 && p.always; !want || present(p) {
			continue
		}
		if err := fetch(ctx, p); err != nil {
			return fmt.Errorf("the grammar of %s: %w", p.id, err)
		}
	}
	return nil
}

func fetch(ctx context.Context, p pack) error {
	spec, _, err := npm.Parse(p.from)
	if err != nil {
		return err
	}
	_, module, err := npm.Fetch(ctx, spec)
	if errors.Is(err, npm.ErrMissing) {
		return fmt.Errorf("%w; file_outline will say which languages are not in this build", err)
	}
	if err != nil {
		return err
	}
	if got := sum(module); got != p.sha256 {
		return fmt.Errorf("%s has the sha256 %s, not %s", p.from, got, p.sha256)
	}
	return write(p.id, module)
}

// present reports whether an earlier run left the very pack.
func present(p pack) bool {
	b, err := os.ReadFile(target(p.id))
	if err != nil {
		return false
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return false
	}
	var module bytes.Buffer
	_, err = module.ReadFrom(z)
	return err == nil && sum(module.Bytes()) == p.sha256
}

func target(id string) string { return filepath.Join(dist, id+".wasm.gz") }

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func write(id string, module []byte) error {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(module); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	if old, err := os.ReadFile(target(id)); err == nil && bytes.Equal(old, out.Bytes()) {
		return nil // an untouched file keeps the build cache warm
	}
	if err := os.WriteFile(target(id), out.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s: %.1f MB, %.1f MB packed\n", target(id), float64(len(module))/1e6, float64(out.Len())/1e6)
	return nil
}

// libc are the functions of the C library that grammars' scanners call.
var libc = strings.Fields(`malloc calloc realloc free abort memcpy memmove memset memcmp memchr
	strlen strcmp strncmp strcpy strncpy strcat strncat strchr
	isdigit isalpha isalnum isspace isupper islower isxdigit toupper tolower
	iswspace iswalnum iswalpha iswdigit iswlower iswupper iswxdigit iswpunct iswblank towlower towupper
	ts_language_symbol_count ts_language_symbol_name ts_language_field_count ts_language_field_name_for_id ts_language_abi_version`)

// buildCore compiles the library with clang for wasm32. The memory from 1 to
// 16 MiB is left to the pack's data.
func buildCore(ctx context.Context) ([]byte, error) {
	clang, err := exec.LookPath("clang")
	if err != nil {
		return nil, errors.New("clang is not installed (on Debian: apt install clang lld wasi-libc libclang-rt-14-dev-wasm32)")
	}
	source, err := download(ctx)
	if err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp("", "elf-core-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, "core.wasm")
	args := []string{
		"--target=wasm32-wasi", "-O2", "-mmutable-globals", "-mbulk-memory", "-std=c11", "-DNDEBUG", "-D_GNU_SOURCE", "-fno-ident", "-w",
		"-I" + filepath.Join(source, "src"), "-I" + filepath.Join(source, "include"), "internal/kit/grammars/core/core.c", "-o", out,
		"-nostartfiles", "-Wl,--no-entry", "-Wl,--export-table", "-Wl,--export=__stack_pointer", "-Wl,--strip-all",
		"-Wl,-z,stack-size=1048576", "-Wl,--global-base=16777216",
	}
	for _, f := range libc {
		args = append(args, "-Wl,--export="+f)
	}
	cmd := exec.CommandContext(ctx, clang, args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("clang: %w (it needs lld, wasi-libc and compiler-rt for wasm32)", err)
	}
	return os.ReadFile(out)
}

// download brings the library's source through the Go module proxy.
func download(ctx context.Context) (dir string, err error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", library)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go mod download %s: %w", library, err)
	}
	var m struct{ Dir, Sum string }
	if err := json.Unmarshal(out, &m); err != nil {
		return "", err
	}
	if m.Sum != librarySum {
		return "", fmt.Errorf("%s has the checksum %s, not %s", library, m.Sum, librarySum)
	}
	return m.Dir, nil
}
