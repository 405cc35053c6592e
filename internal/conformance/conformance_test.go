package conformance_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox/compile"
	"github.com/elfhost/elfhost/internal/conformance"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case compile.Verb:
			os.Exit(compile.Child(os.Args[2:], os.Stdin, os.Stderr))
		case "serve", "serve-and-die", "serve-noise":
			os.Exit(serve(os.Args[1]))
		}
	}
	os.Exit(m.Run())
}

func own(t *testing.T) *conformance.Own {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := &conformance.Own{Compiler: self, Cache: filepath.Join(os.TempDir(), "elfhost-conformance-test")}
	t.Cleanup(func() { o.Close(context.Background()) })
	return o
}

// TestOwnHost: this host passes its own suite.
func TestOwnHost(t *testing.T) {
	s, err := conformance.Default()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = s.Run(t.Context(), own(t), nil, func(o conformance.Outcome) {
		n++
		if !o.OK {
			t.Errorf("%s: %s", o.Name, o.Why)
		}
		if o.Skipped != "" {
			t.Errorf("%s is left out: %s", o.Name, o.Skipped)
		}
	})
	if err != nil || n < 100 {
		t.Errorf("%d cases, %v", n, err)
	}
}

// liar is this host with one fault.
type liar struct {
	conformance.Host
	lie func(q conformance.Request, r *conformance.Response)
}

func (l liar) Ask(ctx context.Context, q conformance.Request) (conformance.Response, error) {
	r, err := l.Host.Ask(ctx, q)
	l.lie(q, &r)
	return r, err
}

// TestBadHosts: the suite finds hosts that do not do what the contract says.
func TestBadHosts(t *testing.T) {
	s, err := conformance.Default()
	if err != nil {
		t.Fatal(err)
	}
	var before string
	for name, c := range map[string]struct {
		only string // cases that must fail
		lie  func(q conformance.Request, r *conformance.Response)
	}{
		"loads everything":   {"refused: no elf_call", func(q conformance.Request, r *conformance.Response) { r.Loaded = q.Do == "load" }},
		"refuses everything": {"the smallest plugin", func(q conformance.Request, r *conformance.Response) { r.Loaded = false }},
		"answers another text": {"the smallest plugin", func(_ conformance.Request, r *conformance.Response) {
			edit(r, func(x *abi.Result) { x.Content[0].Text += "!" })
		}},
		"errors are answers": {"text, error, content", func(_ conformance.Request, r *conformance.Response) {
			edit(r, func(x *abi.Result) { x.IsError = false })
		}},
		"loses structure": {"text, error, content", func(_ conformance.Request, r *conformance.Response) {
			edit(r, func(x *abi.Result) { x.Structured = nil })
		}},
		"traps are answers": {"a trap", func(q conformance.Request, r *conformance.Response) { answer(q, r) }},
		"limits are traps": {"a loop without an end", func(_ conformance.Request, r *conformance.Response) {
			r.Ended = strings.Replace(r.Ended, "limit", "trap", 1)
		}},
		"writes nothing": {"writing", func(_ conformance.Request, r *conformance.Response) { r.Files = nil }},
		"the same random numbers": {"random numbers", func(q conformance.Request, r *conformance.Response) {
			edit(r, func(x *abi.Result) { repeat(x, &before) })
		}},
		"offers other tools": {"elf_describe", func(_ conformance.Request, r *conformance.Response) { r.Tools = nil }},
	} {
		failed := 0
		before = ""
		err := s.Run(t.Context(), liar{own(t), c.lie}, []string{c.only}, func(o conformance.Outcome) {
			if !o.OK {
				failed++
			}
		})
		if err != nil || failed == 0 {
			t.Errorf("a host that %s passes %q: %v", name, c.only, err)
		}
	}
}

func edit(r *conformance.Response, f func(*abi.Result)) {
	if r.Result != nil && len(r.Result.Content) > 0 {
		f(r.Result)
	}
}

func answer(q conformance.Request, r *conformance.Response) {
	if q.Do == "call" {
		text := abi.Text("alive")
		r.Ended, r.Result = "", &text
	}
}

func repeat(r *abi.Result, before *string) {
	if *before == "" {
		*before = r.Content[0].Text
	}
	r.Content[0].Text = *before
}

// TestProcess: a host that is another program; one that ends in the middle
// fails the case and is started anew.
func TestProcess(t *testing.T) {
	s, err := conformance.Default()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		verb   string
		failed string
	}{{"serve", ""}, {"serve-and-die", "text, error, content"}, {"serve-noise", "the smallest plugin"}} {
		p := &conformance.Process{Command: []string{self, c.verb}}
		var failed []string
		err := s.Run(t.Context(), p, []string{"the smallest plugin", "text, error, content", "an image"}, func(o conformance.Outcome) {
			if !o.OK {
				failed = append(failed, o.Name)
			}
		})
		p.Close()
		if c.verb == "serve-noise" {
			if err == nil {
				t.Error("a host that speaks no JSON is spoken to")
			}
		} else if err != nil || strings.Join(failed, ",") != c.failed {
			t.Errorf("%s: %q, %v; want %q", c.verb, failed, err, c.failed)
		}
	}
}

// serve is a host for TestProcess.
func serve(verb string) int {
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	o := &conformance.Own{Compiler: self, Cache: filepath.Join(os.TempDir(), "elfhost-conformance-test")}
	defer o.Close(context.Background())
	var h conformance.Host = o
	switch verb {
	case "serve-noise":
		fmt.Println("hello there")
		return 0
	case "serve-and-die":
		h = liar{o, func(q conformance.Request, _ *conformance.Response) {
			if q.Tool == "content" {
				os.Exit(3)
			}
		}}
	}
	if err := conformance.Serve(context.Background(), h, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestExport: what is exported is the suite that is run, with the sources of
// its modules.
func TestExport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "suite")
	if err := conformance.Export(dir); err != nil {
		t.Fatal(err)
	}
	if err := conformance.Export(dir); err == nil {
		t.Error("a folder with something in it is written over")
	}
	s, err := conformance.Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Cases {
		c := &s.Cases[i]
		if _, err := s.Wasm(c); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if c.Module == "" {
			continue
		}
		source := filepath.Join(dir, "src", strings.TrimSuffix(c.Module, ".wasm"))
		_, errC := os.Stat(source + ".c")
		_, errWat := os.Stat(source + ".wat")
		if errC != nil && errWat != nil {
			t.Errorf("%s has no source", c.Module)
		}
	}
}

// TestModulesAreBuiltFromTheirSources compares with what clang makes, where it
// is the clang that made them.
func TestModulesAreBuiltFromTheirSources(t *testing.T) {
	out, err := exec.Command("clang", "--version").Output()
	if err != nil || !strings.Contains(string(out), "version 14.0.6") {
		t.Skip("clang 14.0.6 is not here")
	}
	sources, err := filepath.Glob("suite/src/*.c")
	if err != nil || len(sources) == 0 {
		t.Fatal(err)
	}
	for _, src := range sources {
		name := strings.TrimSuffix(filepath.Base(src), ".c") + ".wasm"
		built := filepath.Join(t.TempDir(), name)
		cmd := exec.Command("clang", "--target=wasm32-unknown-unknown", "-nostdlib", "-O1", "-fno-builtin", "-mbulk-memory", "-Wl,--no-entry", "-Wl,--strip-all", "-o", built, src)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("%v: %s", err, text)
		}
		a, _ := os.ReadFile(built)
		b, _ := os.ReadFile(filepath.Join("suite", "modules", name))
		if !bytes.Equal(a, b) {
			t.Errorf("%s is not what %s gives", name, src)
		}
	}
}
