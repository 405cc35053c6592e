package kit_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/kit"
	"github.com/elfhost/elfhost/pdk/golden"
)

// nothing is a module with a memory that does nothing.
const nothing = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x05\x03\x01\x00\x01" +
	"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x00\x0a\x04\x01\x02\x00\x0b"

// behaves is what a plugin does in a call. The plugins of these tests do it in
// the host, so that they can do what no guest could.
type behaves func(ctx context.Context, g *sandbox.Guest) (abi.Result, error)

func plugin(t *testing.T, d abi.ToolDecl, needs []abi.Need, reach []abi.Capability, do behaves) (*kit.Bench, sandbox.Inspection) {
	t.Helper()
	if d.Name == "" {
		d.Name, d.Description, d.Input = "tool", "Does something.", json.RawMessage(`{"type":"object"}`)
	}
	sum := sha256.Sum256([]byte(nothing))
	pkg := sandbox.Package{
		Manifest: abi.Manifest{ABI: abi.Version, Name: "bad", Tools: []abi.ToolDecl{d}, Needs: needs},
		Digest:   hex.EncodeToString(sum[:]), Source: host.Plugin, Wasm: func() ([]byte, error) { return []byte(nothing), nil },
		Format: &sandbox.Format{Name: "test", Caps: reach, Init: func(context.Context, *sandbox.Guest) error { return nil },
			Call: func(ctx context.Context, g *sandbox.Guest, _ abi.ToolDecl, _ json.RawMessage) (abi.Result, error) {
				return do(ctx, g)
			}},
	}
	in, err := kit.Inspect(pkg)
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
	return b, in
}

func says(text string) behaves {
	return func(context.Context, *sandbox.Guest) (abi.Result, error) { return abi.Text(text), nil }
}

// writes writes a file, and says how that went if honest.
func writes(honest bool) behaves {
	return func(ctx context.Context, g *sandbox.Guest) (abi.Result, error) {
		if err := g.WriteFile(ctx, "/ws/out", []byte("text")); err != nil && honest {
			return abi.Errorf("It could not be written."), nil
		}
		return abi.Text("written"), nil
	}
}

// TestCheckFindsBadPlugins: each fault, in a plugin that has no other.
func TestCheckFindsBadPlugins(t *testing.T) {
	calls := 0
	schema := func(in, out string) abi.ToolDecl {
		d := abi.ToolDecl{Name: "tool", Description: "Does something.", Input: json.RawMessage(in)}
		if out != "" {
			d.Output = json.RawMessage(out)
		}
		return d
	}
	need := func(c abi.Capability, scope, reason string) []abi.Need {
		return []abi.Need{{Cap: c, Scope: []string{scope}, Reason: reason}}
	}
	files := need(abi.FSWrite, "/ws/**", "keeps it")
	fine := golden.Case{Tool: "tool", Want: text("fine")}
	written := golden.Case{Tool: "tool", Want: text("written"), Grants: []string{"fs.write /ws/**"}, Written: map[string]string{"out": "text"}}
	for _, c := range []struct {
		name  string
		decl  abi.ToolDecl
		needs []abi.Need
		reach []abi.Capability
		do    behaves
		c     golden.Case
		want  string // in the one finding; "": none
	}{
		{name: "a good one", do: says("fine"), c: fine},
		{name: "a good one that writes", needs: files, reach: []abi.Capability{abi.FSWrite}, do: writes(true), c: written},
		{name: "another answer", do: says("bad"), c: fine, want: `want "fine"`},
		{name: "an input schema that is none", decl: schema(`{"type":"nonsense"}`, ""), do: says("fine"), c: fine, want: "input schema"},
		{name: "no description", decl: abi.ToolDecl{Name: "tool", Input: json.RawMessage(`{"type":"object"}`)}, do: says("fine"), c: fine, want: "no description"},
		{name: "an error that is none", do: says("Error: no such file"), c: golden.Case{Tool: "tool", Error: true}, want: "an error is wanted"},
		{name: "an answer that does not fit", decl: schema(`{"type":"object"}`, `{"type":"object","required":["n"]}`), c: golden.Case{Tool: "tool", JSON: json.RawMessage(`{"m":1}`)},
			do: func(context.Context, *sandbox.Guest) (abi.Result, error) {
				return abi.Result{Structured: json.RawMessage(`{"m":1}`)}, nil
			}, want: `n`},
		{name: "not the same twice", c: golden.Case{Tool: "tool", Contains: "call"}, want: "the replay differs",
			do: func(context.Context, *sandbox.Guest) (abi.Result, error) {
				calls++
				return abi.Text("call" + strings.Repeat("!", calls)), nil
			}},
		{name: "deaf to cancellation", c: fine, want: "it went on for",
			do: func(context.Context, *sandbox.Guest) (abi.Result, error) {
				time.Sleep(1200 * time.Millisecond)
				return abi.Text("fine"), nil
			}},
		{name: "a need that nothing could use", needs: need(abi.NetHTTP, "https://example.org", "asks"), do: says("fine"), c: fine, want: "imports nothing of net.http"},
		{name: "a need that no case uses", needs: need(abi.KV, "1MiB", "keeps"), reach: []abi.Capability{abi.KV}, do: says("fine"), c: fine, want: "no case uses kv"},
		{name: "a need without a reason", needs: need(abi.FSWrite, "/ws/**", " "), reach: []abi.Capability{abi.FSWrite}, do: writes(true), c: written, want: "no reason"},
		{name: "a trap without rights", needs: files, reach: []abi.Capability{abi.FSWrite}, c: written, want: "handle what an operation returns",
			do: func(ctx context.Context, g *sandbox.Guest) (abi.Result, error) {
				if err := g.WriteFile(ctx, "/ws/out", []byte("text")); err != nil {
					return abi.Result{}, errors.New("the module trapped: unreachable")
				}
				return abi.Text("written"), nil
			}},
		{name: "a lie without rights", needs: files, reach: []abi.Capability{abi.FSWrite}, do: writes(false), c: written, want: "was denied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.c.Name = "one"
			b, in := plugin(t, c.decl, c.needs, c.reach, c.do)
			bad := failures(kit.Check(t.Context(), b, in, []golden.Case{c.c}))
			if (bad == "") != (c.want == "") || !strings.Contains(bad, c.want) || strings.Count(bad, "\n") > strings.Count(c.want, "\n")+1 {
				t.Errorf("found %q, want %q", bad, c.want)
			}
		})
	}
	b, in := plugin(t, abi.ToolDecl{}, nil, nil, says("fine"))
	if bad := failures(kit.Check(t.Context(), b, in, nil)); !strings.Contains(bad, golden.Dir) {
		t.Errorf("without cases: %q", bad)
	}
}

func text(s string) *string { return &s }
