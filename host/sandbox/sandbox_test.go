package sandbox_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/compile"
)

// work holds what the tests of one run share: built guests and their code.
var work string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case compile.Verb:
			os.Exit(compile.Child(os.Args[2:], os.Stdin, os.Stderr))
		case reach.SandboxVerb:
			os.Exit(reach.SandboxMain(os.Args[2:]))
		}
	}
	dir, err := os.MkdirTemp("", "sandbox-test-")
	if err != nil {
		panic(err)
	}
	work = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var guests sync.Map // name → func() ([]byte, error)

// guest builds testdata/<name>, once a run.
func guest(t testing.TB, name string) []byte {
	t.Helper()
	once, _ := guests.LoadOrStore(name, sync.OnceValues(func() ([]byte, error) {
		out := filepath.Join(work, name+".wasm")
		cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", out, "./testdata/"+name)
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
		if b, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, b)
		}
		return os.ReadFile(out)
	}))
	b, err := once.(func() ([]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// needs asks for everything, so that the grants of a test decide.
var needs = []abi.Need{
	{Cap: abi.FSRead, Scope: []string{"/ws/**"}}, {Cap: abi.FSWrite, Scope: []string{"/ws/**"}},
	{Cap: abi.NetHTTP, Scope: []string{"public GET,POST"}},
	{Cap: abi.KV, Scope: []string{"1MiB"}}, {Cap: abi.Model, Scope: []string{"100k tokens"}},
	{Cap: abi.Secret, Scope: []string{"token@api.example"}}, {Cap: abi.Env, Scope: []string{"LANG"}},
	{Cap: abi.Exec, Scope: []string{"git log *"}}, {Cap: abi.ToolCall, Scope: []string{"Read", "probe"}},
	{Cap: abi.ClockFine},
}

func pkgOf(wasm []byte, m abi.Manifest) sandbox.Package {
	sum := sha256.Sum256(wasm)
	m.ABI = abi.Version
	if m.Name == "" {
		m.Name = "probe"
	}
	if m.Needs == nil {
		m.Needs = needs
	}
	return sandbox.Package{Manifest: m, Digest: hex.EncodeToString(sum[:]), Source: host.Plugin,
		Wasm: func() ([]byte, error) { return wasm, nil }}
}

var probeDecl = []abi.ToolDecl{{Name: "probe", Description: "Does what it is told.", Input: json.RawMessage(`{"type":"object"}`)}}

// self is the test program, which is a compiler too.
func self(t testing.TB) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// load loads a module with one tool named probe, and closes it with the test.
func load(t testing.TB, l *sandbox.Loader, wasm []byte, m abi.Manifest) *sandbox.Plugin {
	t.Helper()
	if l.Dir == "" {
		l.Dir = filepath.Join(work, "cache")
	}
	l.Compiler = self(t)
	if m.Tools == nil {
		m.Tools = probeDecl
	}
	p, err := l.Load(t.Context(), pkgOf(wasm, m))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(context.Background()) })
	return p
}

// probe is a loaded probe guest with a workspace.
type probe struct {
	t      testing.TB
	plugin *sandbox.Plugin
	loader *sandbox.Loader
	dir    string // the workspace
	logs   []sandbox.LogLine
	last   abi.Receipt
	mu     sync.Mutex
}

// newProbe gives the calls all the time of a busy machine, where the manifest
// does not say how much they have.
func newProbe(t testing.TB, m abi.Manifest) *probe {
	t.Helper()
	if m.Limits.Time == 0 {
		m.Limits.Time = 5 * time.Minute
	}
	p := &probe{t: t, dir: t.TempDir()}
	tree, err := reach.NewTree(reach.Mount{Name: "/ws", Dir: p.dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	p.loader = &sandbox.Loader{
		Tree: func(host.Caller) *reach.Tree { return tree },
		Log: func(l sandbox.LogLine) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.logs = append(p.logs, l)
		},
	}
	p.plugin = load(t, p.loader, guest(t, "probe"), m)
	return p
}

type args struct {
	Do   string   `json:"do"`
	A    string   `json:"a,omitempty"`
	B    string   `json:"b,omitempty"`
	N    int      `json:"n,omitempty"`
	List []string `json:"list,omitempty"`
}

// try calls the guest under the grants, written "fs.read /ws/**".
func (p *probe) try(a args, grants ...string) (abi.Result, error) {
	p.t.Helper()
	return p.call(p.t.Context(), a, rights(p.t, grants...))
}

func (p *probe) call(ctx context.Context, a args, r policy.Rights) (abi.Result, error) {
	b, err := json.Marshal(a)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.plugin.Tools()[0].Call(ctx, host.Call{ID: "c1", Tool: "probe", Args: b, Rights: r,
		Receipt: func(r abi.Receipt) { p.mu.Lock(); p.last = r; p.mu.Unlock() }})
}

// stop calls the guest and goes away while it is at work.
func (p *probe) stop(a args, grants ...string) error {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := p.call(ctx, a, rights(p.t, grants...))
	return err
}

// alive wants an answer of a guest whose calls have so little time that on a
// busy machine not every one of them comes to its end.
func (p *probe) alive() {
	p.t.Helper()
	var r abi.Result
	err := error(abi.ErrDeadline)
	for i := 0; i < 100 && errors.Is(err, abi.ErrDeadline); i++ {
		r, err = p.try(args{Do: "echo", A: "alive"})
	}
	if err != nil || r.Text() != "alive" {
		p.t.Errorf("it answers %q, %v", r.Text(), err)
	}
}

// want calls the guest and expects a text.
func (p *probe) want(a args, text string, grants ...string) {
	p.t.Helper()
	if got := p.get(a, grants...); got != text {
		p.t.Errorf("%+v: %q, want %q", a, got, text)
	}
}

// get calls the guest and expects an answer.
func (p *probe) get(a args, grants ...string) string {
	p.t.Helper()
	r, err := p.try(a, grants...)
	if err != nil {
		p.t.Fatalf("%+v: %v", a, err)
	}
	if r.IsError {
		return "ERROR " + r.Text()
	}
	return r.Text()
}

// refused calls the guest and expects an error of the tool that has the text.
func (p *probe) refused(a args, text string, grants ...string) {
	p.t.Helper()
	got := p.get(a, grants...)
	if !strings.HasPrefix(got, "ERROR ") || !strings.Contains(got, text) {
		p.t.Errorf("%+v: %q, want an error with %q", a, got, text)
	}
}

func rights(t testing.TB, grants ...string) policy.Rights {
	t.Helper()
	var list []policy.Grant
	for _, g := range grants {
		pg, err := policy.ParseGrant(g)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, pg)
	}
	g, err := policy.New("grants", list...)
	if err != nil {
		t.Fatal(err)
	}
	return policy.Rights{Grants: g}
}

func TestEcho(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	p.want(args{Do: "echo", A: "héllo"}, "héllo")
	p.want(args{Do: "echo", A: strings.Repeat("x", 1<<20)}, strings.Repeat("x", 1<<20))
}

func TestDescribe(t *testing.T) {
	wasm := guest(t, "probe")
	l := &sandbox.Loader{Dir: filepath.Join(work, "cache"), Compiler: self(t)}
	pkg := pkgOf(wasm, abi.Manifest{})
	p, err := l.Load(t.Context(), pkg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(t.Context())
	if s := p.Tools()[0].Spec(); s.Name != "probe" || !json.Valid(s.Input) || s.Origin.Name != "probe" || s.Origin.Source != host.Plugin {
		t.Errorf("spec %+v", s)
	}
	// The second time nothing is read: the description was kept.
	pkg.Wasm = func() ([]byte, error) { t.Error("the module was read"); return wasm, nil }
	again, err := l.Load(t.Context(), pkg)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Tools()) != 1 {
		t.Error("no tools")
	}
}

// A description that was cut off, or is of something else, is asked for again.
func TestDamagedDescription(t *testing.T) {
	l := &sandbox.Loader{Dir: t.TempDir(), Compiler: self(t)}
	pkg := pkgOf(guest(t, "probe"), abi.Manifest{})
	file := filepath.Join(l.Dir, pkg.Digest+".describe.json")
	for _, kept := range []string{"", `{"abi":"elf/1","tools":[{"na`, `{"abi":"elf/9"}`} {
		if err := os.WriteFile(file, []byte(kept), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := l.Load(t.Context(), pkg)
		if err != nil {
			t.Errorf("%q: %v", kept, err)
			continue
		}
		if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), `"probe"`) {
			t.Errorf("%q was not mended: %q, %v", kept, b, err)
		}
		p.Close(t.Context())
	}
}

// flipFiles changes a byte in the middle of every file that was kept.
func flipFiles(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.elf"))
	if err != nil || len(files) == 0 {
		t.Fatal("nothing was kept")
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(f, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
