package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox/compile"
	"github.com/elfhost/elfhost/host/sandbox/image"
	"github.com/elfhost/elfhost/host/sandbox/meter"
	"github.com/elfhost/elfhost/host/sandbox/wasi"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// engine names what the stages make: a change of what they do changes it, and
// what was kept before is made anew.
const engine = "elf1-wazero1.12.0-2"

// artifact is what the stages make of a module.
type artifact struct {
	whole  []byte       // metered, to be compiled; nil: that has happened
	module []byte       // what the runtime is given for it
	code   string       // the key of its machine code
	img    *image.Image // nil: the module keeps state that no image holds
	// found waits for what Find says of the code, where somebody looks already.
	found *soon[*compile.Artifact]
}

// build takes a module through the stages: bytes → vet → meter → image →
// compile → pool. What the first three make is kept on disk.
func (p *Plugin) build(ctx context.Context, progress func(abi.Progress)) (*program, error) {
	for _, l := range p.linked { // not in the time of a call
		if _, err := l.program(ctx, progress); err != nil {
			return nil, fmt.Errorf("the linked module %q: %w", l.pkg.Manifest.Name, err)
		}
	}
	a, err := p.kept()
	if err != nil {
		return nil, err
	}
	if a != nil {
		if g, err := p.compile(ctx, a); !errors.Is(err, os.ErrNotExist) {
			return g, err
		}
	}
	if progress != nil && ctx.Err() == nil {
		progress(abi.Progress{Message: fmt.Sprintf("Compiling the plugin %s for this machine (once).", p.pkg.Manifest.Name)})
	}
	wasm, err := p.wasm()
	if err != nil {
		return nil, err
	}
	if a, err = p.prepare(ctx, wasm); err != nil {
		return nil, err
	}
	if p.pkg.Draft {
		return p.interpret(ctx, a)
	}
	return p.finish(ctx, a)
}

// finish makes the machine code, and keeps what was made.
func (p *Plugin) finish(ctx context.Context, a *artifact) (*program, error) {
	g, err := p.compile(ctx, a)
	if err != nil {
		return nil, err
	}
	if err := p.keep(a); err != nil { // a full disk, perhaps: it is made again next time
		p.warn("what was made of it cannot be kept: " + err.Error())
	}
	return g, nil
}

// prepare is vet → meter → image. Nothing of it makes machine code.
func (p *Plugin) prepare(ctx context.Context, wasm []byte) (*artifact, error) {
	report, err := p.vet(wasm)
	if err != nil {
		return nil, err
	}
	metered, _, err := meter.Rewrite(report.Module, meter.Options{})
	if err != nil {
		return nil, err
	}
	a := &artifact{whole: metered.Encode()}
	if image.Suitable(report) == nil {
		if a.img, err = p.snapshot(ctx, metered, a.whole); err == nil {
			a.whole = a.img.Module
		}
	}
	return a, err
}

// snapshot runs the initialisation and a description in the interpreter, and
// keeps the state. It has prepareTime, and nobody's rights.
func (p *Plugin) snapshot(ctx context.Context, metered *wasmbin.Module, module []byte) (*image.Image, error) {
	rt := wazero.NewRuntimeWithConfig(ctx, p.runtime(wazero.NewRuntimeConfigInterpreter()))
	defer rt.Close(context.WithoutCancel(ctx))
	code, err := p.link(ctx, rt, module)
	if err != nil {
		return nil, err
	}
	random := image.NewRandom()
	cctx, c := p.begin(ctx, host.Call{Tool: abi.ExportInitialize}, true) // the translation is not the guest's time
	defer func() { c.unlink(ctx, false); c.end(nil) }()
	c.sys.Close()
	c.sys = wasi.New(wasi.Config{Stdout: &c.logs.out, Stderr: &c.logs.err, Rand: random})
	mod, err := rt.InstantiateModule(cctx, code, bare())
	if err == nil {
		err = c.initialise(cctx, mod)
	}
	if err != nil {
		return nil, fmt.Errorf("initialisation: %w", guestError(cctx, err))
	}
	spans := random.FindGo(mod.Memory())
	// The description is the one call that changes nothing and that every
	// guest knows: what it leaves warm, no call has to warm.
	format := p.pkg.Format
	if f := mod.ExportedFunction(abi.ExportDescribe); f != nil && format == nil {
		if err := c.fuel.Arm(mod); err != nil {
			return nil, err
		}
		if _, err := f.Call(cctx); err != nil {
			return nil, fmt.Errorf("%s: %w", abi.ExportDescribe, guestError(cctx, err))
		}
	}
	var keep []string
	if format != nil {
		keep = format.Keep
	}
	return image.Snapshot(metered, mod, spans, keep...)
}

// initialise starts an instance, as its format does.
func (c *call) initialise(ctx context.Context, mod api.Module) error {
	if c.plugin.pkg.Format != nil {
		return c.initForeign(ctx, mod)
	}
	return initialise(ctx, mod)
}

func initialise(ctx context.Context, mod api.Module) error {
	f := mod.ExportedFunction(abi.ExportInitialize)
	if f == nil {
		return nil
	}
	if err := callOf(ctx).fuel.Arm(mod); err != nil {
		return err
	}
	_, err := f.Call(ctx)
	return err
}

// runtime adds to a configuration what all runtimes of the plugin share.
func (p *Plugin) runtime(c wazero.RuntimeConfig) wazero.RuntimeConfig {
	return c.WithMemoryLimitPages(uint32(min((p.limits.Memory+65535)/65536, 65536)))
}

// bare is the configuration of an instance: everything it sees comes through
// our host functions.
func bare() wazero.ModuleConfig { return wazero.NewModuleConfig().WithName("").WithStartFunctions() }

// link puts the host modules into a runtime and compiles the module there.
func (p *Plugin) link(ctx context.Context, rt wazero.Runtime, module []byte) (wazero.CompiledModule, error) {
	if err := errors.Join(hostModules(ctx, rt, p.pkg.Format), meter.Instantiate(ctx, rt)); err != nil {
		return nil, err
	}
	return rt.CompileModule(ctx, module)
}

// key names the artifact on disk: of this module, under these needs (they
// decided what it may import), made by this engine for this platform.
func (p *Plugin) key() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s/%s\n%s\n", engine, runtime.GOOS, runtime.GOARCH, p.pkg.Digest)
	if f := p.pkg.Format; f != nil {
		fmt.Fprintf(h, "%s %q\n", f.Name, f.Key)
	} else {
		for _, n := range p.pkg.Manifest.Needs {
			fmt.Fprintf(h, "%s\n", n.Cap)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

const (
	plainTag = "elf plain 3\n"
	imageTag = "elf image 3\n"
	keySize  = 2 * sha256.Size

	keyOffset  = sha256.Size + len(plainTag) // in a kept file
	keptSuffix = ".elf"
)

// kept reads the artifact of an earlier time, or nothing. A damaged file, or one
// that cannot be read, is as good as none: it is made anew.
func (p *Plugin) kept() (*artifact, error) {
	if p.loader.Dir == "" || p.pkg.Digest == "" {
		return nil, nil
	}
	if err := compile.Private(p.loader.Dir); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(p.file())
	if err != nil || len(b) < keyOffset+keySize {
		return nil, nil
	}
	// To sum the code takes longest. It begins while the key is only read: a key
	// that is wrong names another entry or none, and is found to be wrong below.
	code := string(b[keyOffset : keyOffset+keySize])
	found := meanwhile(func() (*compile.Artifact, error) { return compile.Find(code, p.loader.codeDir()) })
	a, err := p.decode(b)
	if a == nil {
		found.wait() // nothing goes on behind who asked
		return nil, err
	}
	a.found = found
	return a, nil
}

// decode reads a kept file, and gives nothing for one that is damaged.
func (p *Plugin) decode(b []byte) (a *artifact, err error) {
	sum, body := b[:sha256.Size], b[sha256.Size:]
	tag := string(body[:len(plainTag)])
	summed := body
	if tag == imageTag {
		summed = body[:len(tag)+keySize] // what follows has a checksum of its own
	}
	if got := sha256.Sum256(summed); !bytes.Equal(got[:], sum) {
		return nil, nil
	}
	body = body[len(tag):]
	a = &artifact{code: string(body[:keySize]), module: body[keySize:]}
	switch tag {
	case plainTag:
		return a, nil
	case imageTag:
		if a.img, err = image.Decode(a.module, int(p.limits.Memory)); err != nil {
			return nil, nil
		}
		a.module = a.img.Module
		return a, nil
	}
	return nil, nil
}

// warn tells the log what is not the caller's concern.
func (p *Plugin) warn(text string) {
	if p.loader.Log != nil {
		p.loader.Log(LogLine{Plugin: p.pkg.Manifest.Name, Level: "warn", Text: printable(text)})
	}
}

func (p *Plugin) keep(a *artifact) error {
	if p.loader.Dir == "" || p.pkg.Digest == "" {
		return nil
	}
	body := append([]byte(plainTag+a.code), a.module...)
	sum := sha256.Sum256(body)
	if a.img != nil {
		img := *a.img
		img.Module = a.module
		body = []byte(imageTag + a.code)
		sum = sha256.Sum256(body)
		body = append(body, img.Encode()...)
	}
	return writeAtomic(p.file(), append(sum[:], body...))
}

func (p *Plugin) file() string { return filepath.Join(p.loader.Dir, p.key()+keptSuffix) }
