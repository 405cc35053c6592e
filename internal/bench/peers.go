package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	extism "github.com/extism/go-sdk"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// ServeMCP is a server with the guest's tool, over stdio.
func ServeMCP() error {
	s := server.NewMCPServer("bench", "1")
	s.AddTool(mcp.NewTool("echo", mcp.WithString("text", mcp.Required())), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(r.GetString("text", "")), nil
	})
	return server.ServeStdio(s)
}

// mcpPeer is a live connection to such a server.
type mcpPeer struct{ c *client.Client }

func startMCP(ctx context.Context, self string) (*mcpPeer, error) {
	t := transport.NewStdioWithOptions(self, nil, []string{MCPVerb}, transport.WithCommandFunc(
		func(ctx context.Context, command string, _, args []string) (*exec.Cmd, error) {
			return exec.CommandContext(ctx, command, args...), nil
		}))
	c := client.NewClient(t)
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	req := mcp.InitializeRequest{}
	req.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	req.Params.ClientInfo = mcp.Implementation{Name: "bench", Version: "1"}
	if _, err := c.Initialize(ctx, req); err != nil {
		c.Close()
		return nil, err
	}
	return &mcpPeer{c}, nil
}

func (m *mcpPeer) call(ctx context.Context) error {
	req := mcp.CallToolRequest{}
	req.Params.Name = "echo"
	req.Params.Arguments = map[string]any{"text": string(payload[9 : len(payload)-2])}
	r, err := m.c.CallTool(ctx, req)
	if err == nil && (r.IsError || len(r.Content) == 0) {
		err = errors.New("the MCP server failed")
	}
	return err
}

func (m *mcpPeer) Close() error { return m.c.Close() }

// extismPeer runs a guest on Extism's own host.
type extismPeer struct {
	compiled *extism.CompiledPlugin
	plugin   *extism.Plugin
}

func newExtism(ctx context.Context, wasm []byte) (*extismPeer, error) {
	m := extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: wasm}}, Timeout: 10_000}
	c, err := extism.NewCompiledPlugin(ctx, m, extism.PluginConfig{EnableWasi: true}, nil)
	if err != nil {
		return nil, err
	}
	p, err := c.Instance(ctx, extism.PluginInstanceConfig{})
	return &extismPeer{c, p}, err
}

func (e *extismPeer) live(ctx context.Context, name string, in []byte) error {
	code, out, err := e.plugin.CallWithContext(ctx, name, in)
	return extismErr(code, out, err)
}

func extismErr(code uint32, out []byte, err error) error {
	if err == nil && (code != 0 || len(out) == 0) {
		err = fmt.Errorf("the Extism guest gave code %d and %d bytes", code, len(out))
	}
	return err
}

func (e *extismPeer) fresh(ctx context.Context, name string, in []byte) error {
	p, err := e.compiled.Instance(ctx, extism.PluginInstanceConfig{})
	if err != nil {
		return err
	}
	defer p.Close(ctx)
	code, out, err := p.CallWithContext(ctx, name, in)
	return extismErr(code, out, err)
}

func (e *extismPeer) close(ctx context.Context) {
	e.plugin.Close(ctx)
	e.compiled.Close(ctx)
}

// rawPeer runs our guest on wazero as it comes: no meter, wazero's own WASI,
// and no deadline unless it stops with its context (WithCloseOnContextDone).
type rawPeer struct {
	rt    wazero.Runtime
	cache wazero.CompilationCache
	code  wazero.CompiledModule
	inst  api.Module
}

func newRaw(ctx context.Context, wasm []byte, dir string, stops bool) (*rawPeer, error) {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, err
	}
	r := &rawPeer{rt: wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(cache).WithCloseOnContextDone(stops)), cache: cache}
	wasi_snapshot_preview1.MustInstantiate(ctx, r.rt)
	if r.code, err = r.rt.CompileModule(ctx, wasm); err != nil {
		return nil, err
	}
	stubs := map[string]wazero.HostModuleBuilder{}
	for _, f := range r.code.ImportedFunctions() {
		module, name, _ := f.Import()
		if module == wasi_snapshot_preview1.ModuleName {
			continue
		}
		if stubs[module] == nil {
			stubs[module] = r.rt.NewHostModuleBuilder(module)
		}
		stubs[module].NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
			stack[0] = api.EncodeI32(int32(abi.ErrUnsupported))
		}), f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	for _, b := range stubs {
		if _, err := b.Instantiate(ctx); err != nil {
			return nil, err
		}
	}
	r.inst, err = r.instance(ctx)
	return r, err
}

func (r *rawPeer) instance(ctx context.Context) (api.Module, error) {
	return r.rt.InstantiateModule(ctx, r.code, wazero.NewModuleConfig().WithName("").WithStartFunctions(abi.ExportInitialize).
		WithSysWalltime().WithSysNanotime().WithSysNanosleep())
}

func (r *rawPeer) call(ctx context.Context, mod api.Module, args []byte) error {
	name := []byte("echo")
	var at [2]uint64
	for i, b := range [][]byte{name, args} {
		res, err := mod.ExportedFunction(abi.ExportAlloc).Call(ctx, uint64(len(b)))
		if err != nil {
			return err
		}
		at[i] = res[0]
		mod.Memory().Write(uint32(res[0]), b)
	}
	res, err := mod.ExportedFunction(abi.ExportCall).Call(ctx, at[0], uint64(len(name)), at[1], uint64(len(args)))
	if err == nil && uint32(res[0]) != 118 {
		err = fmt.Errorf("the raw guest answered %d bytes", uint32(res[0]))
	}
	return err
}

func (r *rawPeer) live(ctx context.Context, args []byte) error { return r.call(ctx, r.inst, args) }

// timed is live with a deadline.
func (r *rawPeer) timed(ctx context.Context, args []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return r.call(ctx, r.inst, args)
}

func (r *rawPeer) fresh(ctx context.Context, args []byte) error {
	mod, err := r.instance(ctx)
	if err != nil {
		return err
	}
	defer mod.Close(ctx)
	return r.call(ctx, mod, args)
}

func (r *rawPeer) close(ctx context.Context) {
	r.rt.Close(ctx)
	r.cache.Close(ctx)
}

// echoModule is a hand-made plugin: it answers with its arguments, in place.
func echoModule() []byte {
	return handMade(
		"\x20\x00\x41\xc0\x00\x49\x04\x7f\x41\x80\x08\x05\x41\x81\x80\x08\x0b\x0b",                                     // size < 64 ? 1024 : 131073
		"\x20\x02\x41\x01\x6b\x41\x00\x3a\x00\x00\x20\x02\x41\x01\x6b\xad\x42\x20\x86\x20\x03\x41\x01\x6a\xad\x84\x0b", // kind 0 before the arguments
		"\x20\x00\x0b")
}

// deepModule is one whose tool is fib(60), which has no loop and no end.
func deepModule() []byte {
	return handMade("\x41\x80\x08\x0b", "\x41\x3c\x10\x02\x1a\x42\x00\x0b",
		"\x20\x00\x41\x02\x49\x04\x7f\x20\x00\x05\x20\x00\x41\x01\x6b\x10\x02\x20\x00\x41\x02\x6b\x10\x02\x6a\x0b\x0b")
}

// handMade builds a plugin from the bodies of elf_alloc, elf_call and one more
// function of elf_alloc's type. It has 40 pages of memory.
func handMade(bodies ...string) []byte {
	sized := func(s string) string { return string(wasmbin.AppendUint(nil, uint32(len(s)))) + s }
	section := func(id byte, s string) string { return string([]byte{id}) + sized(s) }
	code := "\x03"
	for _, b := range bodies {
		code += sized("\x00" + b)
	}
	return []byte("\x00asm\x01\x00\x00\x00" +
		section(1, "\x02\x60\x01\x7f\x01\x7f\x60\x04\x7f\x7f\x7f\x7f\x01\x7e") +
		section(3, "\x03\x00\x01\x00") +
		section(5, "\x01\x00\x28") +
		section(7, "\x03"+sized(abi.ExportAlloc)+"\x00\x00"+sized(abi.ExportCall)+"\x00\x01"+sized(abi.ExportMemory)+"\x02\x00") +
		section(10, code))
}
