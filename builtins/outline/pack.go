package outline

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/host/sandbox/compile"
	"github.com/elfhost/elfhost/host/sandbox/meter"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// engine is where packs run.
type engine struct {
	cache string // folder of machine code; "": in memory
	self  string // the program that compiles; "": this process
}

// packMemory is the most that a parser may use: a file of 10,000 lines takes
// some 40 MB.
const packMemory = 768 << 20

// program is a pack that is ready to run. One goroutine at a time may use it.
type program struct {
	rt     wazero.Runtime
	code   wazero.CompiledModule
	cache  wazero.CompilationCache
	kinds  []string
	fields []string
	walk   walker
}

// load links, vets, meters and compiles a pack.
func (e engine) load(ctx context.Context, core, pack []byte) (*program, error) {
	module, err := build(core, pack)
	if err != nil {
		return nil, err
	}
	p := &program{}
	conf := wazero.NewRuntimeConfig()
	if e.self != "" && e.cache != "" {
		code, err := compile.Run(ctx, module, compile.Options{Cache: e.cache, Self: e.self})
		if err != nil {
			return nil, err
		}
		if conf, p.cache, err = code.Config(); err != nil {
			return nil, err
		}
	} else if e.cache != "" {
		if p.cache, err = wazero.NewCompilationCacheWithDir(filepath.Join(e.cache, "own")); err != nil {
			return nil, err
		}
		conf = conf.WithCompilationCache(p.cache)
	}
	p.rt = wazero.NewRuntimeWithConfig(ctx, conf.WithMemoryLimitPages(packMemory>>16))
	if err = meter.Instantiate(ctx, p.rt); err == nil {
		p.code, err = p.rt.CompileModule(ctx, module)
	}
	if err != nil {
		return nil, errors.Join(err, p.close(ctx))
	}
	return p, nil
}

// build gives the module that runs: linked, vetted and metered.
func build(core, pack []byte) ([]byte, error) {
	joined, err := link(core, pack)
	if err != nil {
		return nil, err
	}
	profile := vet.Grammars() // it imports nothing any more
	r, err := vet.Check(joined, profile)
	if err != nil {
		return nil, fmt.Errorf("the linked grammar: %w", err)
	}
	if err := checkExports(r); err != nil {
		return nil, err
	}
	m, _, err := meter.Rewrite(r.Module, meter.Options{})
	if err != nil {
		return nil, err
	}
	return m.Encode(), nil
}

// checkExports holds what will be called against its type.
func checkExports(r *vet.Report) error {
	for name, want := range map[string]string{
		"language": "() -> (i32)", "malloc": "(i32) -> (i32)",
		"outline_parse": "(i32 i32 i32) -> (i32)", "outline_walk": "(i32 i32 i32 i32 i32) -> (i32)",
		"ts_language_abi_version": "(i32) -> (i32)", "ts_language_symbol_count": "(i32) -> (i32)", "ts_language_symbol_name": "(i32 i32) -> (i32)",
		"ts_language_field_count": "(i32) -> (i32)", "ts_language_field_name_for_id": "(i32 i32) -> (i32)",
	} {
		if s, ok := r.Export(name); !ok || s.Kind != wasmbin.Function || s.Type.String() != want {
			return fmt.Errorf("%w: it has no function %s of type %s", errPack, name, want)
		}
	}
	for _, name := range []string{"relocate", "construct"} {
		if s, ok := r.Export(name); ok && s.Type.String() != "() -> ()" {
			return fmt.Errorf("%w: its %s has the type %s", errPack, name, s.Type)
		}
	}
	return nil
}

func (p *program) close(ctx context.Context) error {
	err := p.rt.Close(ctx)
	if p.cache != nil {
		err = errors.Join(err, p.cache.Close(ctx))
	}
	return err
}

// guest is one fresh instance.
type guest struct {
	ctx context.Context
	mod api.Module
	err error // the first one
}

// run makes an instance for one file, with the parser's language in it.
func (p *program) run(ctx context.Context, timeout time.Duration, f func(g *guest, language uint32) error) error {
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	ctx, budget := meter.Start(ctx, meter.Limits{Deadline: time.Now().Add(timeout)})
	mod, err := p.rt.InstantiateModule(ctx, p.code, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return reason(ctx, err)
	}
	defer mod.Close(context.WithoutCancel(ctx))
	if err := budget.Arm(mod); err != nil {
		return err
	}
	g := &guest{ctx: ctx, mod: mod}
	for _, name := range []string{"relocate", "construct"} {
		if mod.ExportedFunction(name) != nil {
			g.call(name)
		}
	}
	language := g.call("language")
	if v := g.call("ts_language_abi_version", language); g.err == nil && (v < 13 || v > 15) {
		return fmt.Errorf("%w: it was made for version %d of tree-sitter's grammars, and 13 to 15 are known", errPack, v)
	}
	if g.err == nil {
		err = f(g, language)
	}
	return reason(ctx, errors.Join(g.err, err))
}

// call calls a function; after an error it does nothing.
func (g *guest) call(name string, args ...uint32) uint32 {
	if g.err != nil {
		return 0
	}
	var stack [6]uint64
	for i, a := range args {
		stack[i] = uint64(a)
	}
	g.err = g.mod.ExportedFunction(name).CallWithStack(g.ctx, stack[:])
	return uint32(stack[0])
}

// put copies bytes into the guest.
func (g *guest) put(b []byte) uint32 {
	at := g.call("malloc", uint32(len(b))+1)
	if g.err == nil && (at == 0 || !g.mod.Memory().Write(at, b)) {
		g.err = errMemory
	}
	return at
}

func (g *guest) read(at, n uint32) []byte {
	if g.err != nil {
		return nil
	}
	b, ok := g.mod.Memory().Read(at, n)
	if !ok {
		g.err = fmt.Errorf("%w: it points outside its memory", errPack)
	}
	return b
}

// text reads a C string.
func (g *guest) text(at uint32) string {
	if g.err != nil || at == 0 {
		return ""
	}
	n := min(256, g.mod.Memory().Size()-min(at, g.mod.Memory().Size()))
	b := g.read(at, n)
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// What parsers die of in both their homes.
var (
	errMemory = errors.New("the file needs more memory than a parser may have")
	errDeep   = errors.New("the file is nested too deeply")
)

// reason puts what a guest died of into words.
func reason(ctx context.Context, err error) error {
	switch {
	case err == nil, ctx.Err() != nil:
		return err
	case errors.Is(err, context.DeadlineExceeded):
		if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
			<-ctx.Done() // the caller's time is over: the meter read the clock before the context's timer fired
			return err
		}
		return errSlow
	case errors.Is(err, meter.ErrDepth):
		return errDeep
	case errors.Is(err, errMemory), errors.Is(err, errPack):
		return err
	}
	return fmt.Errorf("%w: %s", errWorker, line(err.Error()))
}

// names reads the grammar's names, once.
func (p *program) names(g *guest, language uint32, l *language) {
	if p.kinds != nil {
		return
	}
	var kinds []string
	for i := range min(g.call("ts_language_symbol_count", language), 1<<15) {
		kinds = append(kinds, g.text(g.call("ts_language_symbol_name", language, i)))
	}
	fields := []string{""}
	for i := range min(g.call("ts_language_field_count", language), 1<<12) {
		fields = append(fields, g.text(g.call("ts_language_field_name_for_id", language, i+1)))
	}
	if g.err == nil {
		p.kinds, p.fields = append(kinds, "ERROR"), fields
		p.walk = l.walker(p.kinds)
	}
}

// recordSize is that of a node in the guest's memory (core.c).
const recordSize = 24

// parse makes the tree of a text in a fresh instance.
func (p *program) parse(ctx context.Context, l *language, src []byte, timeout time.Duration) (*tree, error) {
	var t *tree
	err := p.run(ctx, timeout, func(g *guest, language uint32) error {
		p.names(g, language, l)
		text := g.put(src)
		parsed := g.call("outline_parse", language, text, uint32(len(src)))
		if g.err == nil && parsed == 0 {
			return fmt.Errorf("%w: it does not fit the parser's core", errPack)
		}
		walk := g.put(p.walk[:len(p.walk)])
		at := g.call("outline_walk", parsed, walk, uint32(max(len(p.walk)-1, 0)), maxNodes, maxDepth)
		head := g.read(at, 16)
		if g.err != nil {
			return nil
		}
		le := binary.LittleEndian
		n := min(le.Uint32(head), maxNodes)
		records := g.read(le.Uint32(head[12:]), n*recordSize)
		if g.err != nil {
			return nil
		}
		t = &tree{kinds: p.kinds, fields: p.fields, src: src, bad: le.Uint32(head[4:]) != 0, badRow: le.Uint32(head[8:])}
		t.nodes = make([]node, n)
		for i := range t.nodes {
			t.nodes[i] = readRecord(records[i*recordSize:], uint16(len(p.kinds)-1))
		}
		return nil
	})
	return t, err
}

// readRecord reads one node. An error's kind is beyond the grammar's own.
func readRecord(b []byte, last uint16) node {
	le := binary.LittleEndian
	return node{
		start: le.Uint32(b), end: le.Uint32(b[4:]), row: le.Uint32(b[8:]), endRow: le.Uint32(b[12:]),
		kind: min(le.Uint16(b[16:]), last), field: le.Uint16(b[18:]), depth: le.Uint16(b[20:]), flags: uint8(le.Uint16(b[22:])),
	}
}

// readBounded reads a file that is no module beyond the limit.
func readBounded(name string, most int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("%q is no file of at most %d bytes", name, most)
	}
	return os.ReadFile(name)
}
