package extism_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	sdkhost "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/foreign/extism"
)

// oracle is a module under Extism's Go SDK.
func oracle(t testing.TB, wasm []byte, config map[string]string, timeout time.Duration) *sdkhost.CompiledPlugin {
	t.Helper()
	t.Setenv("EXTISM_ENABLE_WASI_OUTPUT", "")
	m := sdkhost.Manifest{Wasm: []sdkhost.Wasm{sdkhost.WasmData{Data: wasm, Name: "main"}}, Config: config,
		Timeout: uint64(timeout.Milliseconds()), Memory: &sdkhost.ManifestMemory{MaxHttpResponseBytes: -1, MaxVarBytes: -1}}
	p, err := sdkhost.NewCompiledPlugin(t.Context(), m, sdkhost.PluginConfig{EnableWasi: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(context.Background()) })
	return p
}

func ask(t testing.TB, p *sdkhost.CompiledPlugin, tool, input string) (string, bool) {
	t.Helper()
	in, err := p.Instance(t.Context(), sdkhost.PluginInstanceConfig{ModuleConfig: wazero.NewModuleConfig().WithSysWalltime()})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close(t.Context())
	code, out, err := in.Call(tool, []byte(input))
	if err != nil {
		return err.Error(), false
	}
	return string(out), code == 0
}

// TestOracle compares what modules answer here with what they answer under
// Extism's SDK.
func TestOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	inputs := []string{"", "a", "hello world", "\x00\xff\xfe", "häßlich 🟢", strings.Repeat("test ", 20_000)}
	for range 12 {
		b := make([]byte, r.IntN(200))
		for i := range b {
			b[i] = "aeiou test\n\x00"[r.IntN(12)]
		}
		inputs = append(inputs, string(b))
	}
	config := map[string]string{"thing": "hello", "greeting": "Howdy"}
	for _, c := range []struct{ module, tool string }{
		{"count_vowels.wasm", "count_vowels"}, {"replace.wasm", "run_test"}, {"hello.wasm", "run_test"}, {"fail.wasm", "run_test"},
		{"config.wasm", "run_test"}, {"hello_haskell.wasm", "testing"}, {"input_offset.wasm", "input_offset_length"}, {"std_command.wasm", "_start"},
	} {
		wasm := module(t, c.module)
		peer := oracle(t, wasm, config, 0)
		k := (&kit{t: t, opt: extism.Options{Config: config}}).load(wasm)
		for i, input := range inputs {
			if !utf8.ValidString(input) {
				continue // arguments are JSON: no other bytes than text
			}
			k.session = input
			want, ok := ask(t, peer, c.tool, input)
			got, err := k.run(c.tool, input)
			said := got.Text()
			if len(got.Content) > 0 && got.Content[0].Resource != nil {
				said = string(got.Content[0].Resource.Blob)
			}
			if err != nil || got.IsError == ok || said != want {
				t.Errorf("%s, input %d (%.20q): %.80q, %v; the SDK says %.80q", c.module, i, input, said, err, want)
			}
		}
	}
}

func BenchmarkCall(b *testing.B) {
	wasm := module(b, "count_vowels.wasm")
	k := (&kit{t: b}).load(wasm)
	t := k.plugin.Tools()[0]
	args := []byte(`{"input":"hello world, this is a text of some length, and it has vowels"}`)
	input := []byte("hello world, this is a text of some length, and it has vowels")
	if _, err := t.Call(b.Context(), host.Call{Args: args}); err != nil {
		b.Fatal(err)
	}
	b.Run("isolated", func(b *testing.B) {
		for b.Loop() {
			if _, err := t.Call(b.Context(), host.Call{Args: args}); err != nil {
				b.Fatal(err)
			}
		}
	})
	peer := oracle(b, wasm, nil, 10*time.Second)
	config := sdkhost.PluginInstanceConfig{ModuleConfig: wazero.NewModuleConfig()}
	b.Run("sdk-fresh", func(b *testing.B) {
		for b.Loop() {
			in, err := peer.Instance(b.Context(), config)
			if err != nil {
				b.Fatal(err)
			}
			if _, _, err := in.Call("count_vowels", input); err != nil {
				b.Fatal(err)
			}
			in.Close(b.Context())
		}
	})
	live, err := peer.Instance(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	defer live.Close(b.Context())
	b.Run("sdk-live", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := live.Call("count_vowels", input); err != nil {
				b.Fatal(err)
			}
		}
	})
}
