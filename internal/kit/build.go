package kit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/elfhost/elfhost/host/foreign/javascript"
	"github.com/elfhost/elfhost/internal/kit/quickjs"
)

// Module is the file that Build makes.
const Module = "plugin.wasm"

// MissingToolchain is the error of a build whose compiler is not there.
type MissingToolchain struct {
	Program string
	Looked  string // where
	Install string // what to do
}

func (e *MissingToolchain) Error() string {
	return fmt.Sprintf("%s is not there (looked in %s): %s", e.Program, e.Looked, e.Install)
}

// Language is one that projects are written in.
type Language struct {
	Name    string // of --lang
	Sources []string
	// tools: the tools are declared in elf.toml.
	tools bool
	build func(ctx context.Context, p project) error
}

// project is a folder that is built.
type project struct {
	dir, out string // out is absolute
	log      io.Writer
}

// languages in the order in which they are looked for. The first of Sources
// marks a project of the language.
var languages = []Language{
	{Name: "go", Sources: []string{"*.go", "go.mod"}, build: buildGo},
	{Name: "c", Sources: []string{"*.c", "*.h"}, tools: true, build: buildC},
	{Name: "assemblyscript", Sources: []string{"asconfig.json", "assembly/*.ts"}, tools: true, build: buildAssemblyScript},
	{Name: "js", Sources: []string{"plugin.js"}, build: buildJS},
}

// Languages are those that New knows.
func Languages() []string {
	var out []string
	for _, l := range languages {
		out = append(out, l.Name)
	}
	return out
}

// LanguageOf finds out what a project is written in; false when it is none
// that Build knows.
func LanguageOf(dir string) (Language, bool) {
	for _, l := range languages {
		if found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(l.Sources[0]))); err == nil && len(found) > 0 {
			return l, true
		}
	}
	return Language{}, false
}

// Build compiles the project in dir to plugin.wasm there. What the compiler
// says goes to log.
func Build(ctx context.Context, dir string, log io.Writer) (string, error) {
	out := filepath.Join(dir, Module)
	l, ok := LanguageOf(dir)
	if !ok {
		if exists(out) {
			return out, nil // built by the author's own means
		}
		return "", fmt.Errorf("%q holds no sources of %s, and no %s that something else built", dir, strings.Join(Languages(), ", "), Module)
	}
	// Written beside and renamed: a build that fails leaves the last one. Another
	// build of the folder, at the same time, has a file of its own.
	tmp, err := filepath.Abs(out + ".new" + strconv.FormatUint(rand.Uint64(), 36))
	if err != nil {
		return "", err
	}
	defer os.Remove(tmp)
	if err := l.build(ctx, project{dir, tmp, log}); err != nil {
		return "", err
	}
	return out, os.Rename(tmp, out)
}

// TestNative runs the project's own tests, where its language has some.
func TestNative(ctx context.Context, dir string, log io.Writer) error {
	if l, ok := LanguageOf(dir); !ok || l.Name != "go" {
		return nil
	}
	gobin, err := findGo()
	if err != nil {
		return err
	}
	return run(ctx, project{dir: dir, log: log}, goEnv(), gobin, "test", "-count=1", ".")
}

func buildGo(ctx context.Context, p project) error {
	gobin, err := findGo()
	if err != nil {
		return err
	}
	return run(ctx, p, append(goEnv(), "GOOS=wasip1", "GOARCH=wasm"), gobin,
		"build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", p.out, ".")
}

func goEnv() []string { return []string{"CGO_ENABLED=0", "GOWORK=off"} }

func findGo() (string, error) {
	return find("go", "install Go 1.24 or newer from https://go.dev/dl")
}

// find looks a program up.
func find(program, install string) (string, error) {
	file, err := exec.LookPath(program)
	if err != nil {
		return "", &MissingToolchain{program, "PATH=" + os.Getenv("PATH"), install}
	}
	return filepath.Abs(file)
}

const installC = "install clang, lld and wasi-libc (Debian: apt install clang lld wasi-libc libclang-rt-dev-wasm32), or unpack a WASI SDK and set WASI_SDK_PATH"

func buildC(ctx context.Context, p project) error {
	clang, args, err := findClang()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(p.dir, "*.c"))
	if err != nil {
		return err
	}
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	args = append(args, "--target=wasm32-wasi", "-mexec-model=reactor", "-O2", "-Wall", "-Wl,--strip-all", "-o", p.out)
	return run(ctx, p, nil, clang, append(args, files...)...)
}

// findClang finds a clang with a linker and a C library for WASI.
func findClang() (clang string, args []string, err error) {
	if sdk := os.Getenv("WASI_SDK_PATH"); sdk != "" {
		clang = filepath.Join(sdk, "bin", "clang")
		if _, err := exec.LookPath(clang); err != nil {
			return "", nil, &MissingToolchain{"clang", "WASI_SDK_PATH=" + sdk, installC}
		}
		return clang, []string{"--sysroot=" + filepath.Join(sdk, "share", "wasi-sysroot")}, nil
	}
	if clang, err = find("clang", installC); err != nil {
		return "", nil, err
	}
	if _, err := find("wasm-ld", installC); err != nil {
		return "", nil, err
	}
	for _, header := range []string{"/usr/include/wasm32-wasi/stdio.h", "/usr/share/wasi-sysroot/include/wasm32-wasi/stdio.h", "/opt/wasi-sysroot/include/wasm32-wasi/stdio.h"} {
		if !exists(header) {
			continue
		}
		if root, ok := strings.CutSuffix(header, "/include/wasm32-wasi/stdio.h"); ok && root != "/usr" {
			args = append(args, "--sysroot="+root)
		}
		return clang, args, nil
	}
	return "", nil, &MissingToolchain{"wasi-libc", "/usr/include/wasm32-wasi, /usr/share/wasi-sysroot, /opt/wasi-sysroot", installC}
}

func buildAssemblyScript(ctx context.Context, p project) error {
	const install = "run npm install in the project: its package.json names assemblyscript"
	node, err := find("node", "install Node.js 20 or newer, with npm")
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(p.dir)
	if err != nil {
		return err
	}
	var looked []string
	for d := dir; ; d = filepath.Dir(d) { // as node looks for modules
		asc := filepath.Join(d, "node_modules", "assemblyscript", "bin", "asc.js")
		if exists(asc) {
			return run(ctx, p, nil, node, asc, "--config", "asconfig.json", "--outFile", p.out)
		}
		looked = append(looked, filepath.Dir(filepath.Dir(asc)))
		if d == filepath.Dir(d) {
			return &MissingToolchain{"the AssemblyScript compiler", strings.Join(looked[:min(len(looked), 2)], ", ") + ", …", install}
		}
	}
}

// buildJS puts the script behind the engine. Nothing is compiled.
func buildJS(_ context.Context, p project) error {
	script, err := os.ReadFile(filepath.Join(p.dir, "plugin.js"))
	if err != nil {
		return err
	}
	engine, err := findEngine(p.dir)
	if err != nil {
		return err
	}
	wasm, err := javascript.Pack(engine, script)
	if err != nil {
		return err
	}
	return os.WriteFile(p.out, wasm, 0o644)
}

// findEngine is the engine in this program, or the one that npm put into the
// project.
func findEngine(dir string) ([]byte, error) {
	engine, err := quickjs.Engine()
	if !errors.Is(err, quickjs.ErrNotBuilt) {
		return engine, err
	}
	file := filepath.Join(dir, "node_modules", "quickjs-wasi", "quickjs.wasm")
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &MissingToolchain{"the JavaScript engine", "this program, " + file,
			"run npm install " + quickjs.Package + " in the project, or build elfhost with make, which fetches it"}
	}
	if err != nil {
		return nil, err
	}
	return b, quickjs.Check(b)
}

// run runs a compiler in the project's folder.
func run(ctx context.Context, p project, env []string, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), env...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err := cmd.Run()
	if _, werr := p.log.Write(text.Bytes()); err == nil {
		err = werr
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", strings.TrimSuffix(filepath.Base(program), ".exe")+" "+args[0], err)
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
