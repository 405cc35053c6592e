package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

const ironclawTool = "near:agent/tool@0.4.1"

// ironclaw measures tools of IronClaw: one in C that does almost nothing, and
// one in Go.
func (b *foreignBench) ironclaw(ctx context.Context) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/elfhost/elfhost").Output()
	if err != nil {
		return fmt.Errorf("finding the sources: %w", err)
	}
	dir := strings.TrimSpace(string(root))
	for _, t := range []struct {
		figure, language, args, want string
		build                        []string
	}{
		{"foreign.ironclaw_small_vs_wazero_fresh", "C", `{"text":"some"}`, "some", []string{"clang", "--target=wasm32", "-O2", "-nostdlib",
			"-Wl,--no-entry", "-Wl,--strip-all", filepath.Join(dir, "internal/bench/testdata/tool.c"), "-o"}},
		{"foreign.ironclaw_vs_wazero_fresh", "Go", `{"do":"context"}`, "none", []string{"go", "build", "-C", dir, "-buildmode=c-shared",
			"-ldflags=-s -w", "-o"}},
	} {
		file := filepath.Join(b.dir, "tool-"+t.language+".wasm")
		argv := append(t.build, file)
		if t.language == "Go" {
			argv = append(argv, "./host/foreign/ironclaw/testdata/tool")
		}
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(b.w, "%s: skipped: %s: %v %s\n", t.figure, argv[0], err, out)
			continue
		}
		core, err := os.ReadFile(file)
		if err == nil {
			err = b.ironclawTool(ctx, core, t.figure, t.language, json.RawMessage(t.args), t.want)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *foreignBench) ironclawTool(ctx context.Context, core []byte, figure, language string, args json.RawMessage, want string) error {
	p, err := b.load(ctx, "tool.wasm", asComponent(core))
	if err != nil {
		return err
	}
	defer p.Close(ctx)
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCloseOnContextDone(true))
	defer rt.Close(ctx)
	code, err := rawTool(ctx, rt, core)
	if err != nil {
		return err
	}
	b.call(ctx, p, args, want)
	t := Times(15, 20,
		func() { b.call(ctx, p, args, want) },
		func() { b.fail(rawExecute(ctx, rt, code, args, want)) },
	)
	b.rows(t, "IronClaw tool ("+language+"), isolated", "raw wazero, fresh instance of its core")
	Figure(b.w, figure, ratio(t[0], t[1]), 0.2)
	return nil
}

// asComponent wraps a core module as compilers of components do.
func asComponent(core []byte) []byte {
	b := []byte("\x00asm\x0d\x00\x01\x00")
	section := func(id byte, body []byte) {
		b = append(wasmbin.AppendUint(append(b, id), uint32(len(body))), body...)
	}
	section(1, core)
	export := append(wasmbin.AppendUint([]byte{1, 0}, uint32(len(ironclawTool))), ironclawTool...)
	section(11, append(export, 5, 0, 0))
	return b
}

// rawTool compiles a core module on a runtime whose host functions do nothing.
func rawTool(ctx context.Context, rt wazero.Runtime, core []byte) (wazero.CompiledModule, error) {
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	code, err := rt.CompileModule(ctx, core)
	if err != nil {
		return nil, err
	}
	hosts := map[string]wazero.HostModuleBuilder{}
	for _, f := range code.ImportedFunctions() {
		mod, name, _ := f.Import()
		if mod == wasi_snapshot_preview1.ModuleName {
			continue
		}
		if hosts[mod] == nil {
			hosts[mod] = rt.NewHostModuleBuilder(mod)
		}
		hosts[mod].NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) {}), f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	for _, h := range hosts {
		if _, err := h.Instantiate(ctx); err != nil {
			return nil, err
		}
	}
	return code, nil
}

// rawExecute is one call in an instance of its own, without limits but time.
func rawExecute(ctx context.Context, rt wazero.Runtime, code wazero.CompiledModule, args []byte, want string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	mod, err := rt.InstantiateModule(ctx, code, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	if err != nil {
		return err
	}
	defer mod.Close(ctx)
	at, err := mod.ExportedFunction("cabi_realloc").Call(ctx, 0, 0, 1, uint64(len(args)))
	if err != nil {
		return err
	}
	mem := mod.Memory()
	mem.Write(uint32(at[0]), args)
	ret, err := mod.ExportedFunction(ironclawTool+"#execute").Call(ctx, at[0], uint64(len(args)), 0, 0, 0)
	if err != nil {
		return err
	}
	ptr, _ := mem.ReadUint32Le(uint32(ret[0]) + 4)
	n, _ := mem.ReadUint32Le(uint32(ret[0]) + 8)
	if text, _ := mem.Read(ptr, n); !strings.Contains(string(text), want) {
		return fmt.Errorf("the tool answers %q", text)
	}
	return nil
}
