package sandbox_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/sandbox"
)

// swapper keeps exchanging the folder /ws/real and a link of that name to a
// folder outside, which it returns, until the test ends or stop is called.
func swapper(t *testing.T, p *probe) (outside string, stop func()) {
	t.Helper()
	p.file("real/f", "inside")
	outside = t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "f"), []byte("CANARY"), 0o644); err != nil {
		t.Fatal(err)
	}
	real, away, link := filepath.Join(p.dir, "real"), filepath.Join(p.dir, "away"), filepath.Join(p.dir, "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Skip("this system makes no links:", err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			os.Rename(real, away)
			os.Rename(link, real)
			runtime.Gosched()
			os.Rename(real, link)
			os.Rename(away, real)
			time.Sleep(50 * time.Microsecond)
		}
	})
	stop = sync.OnceFunc(func() { close(done); wg.Wait() })
	t.Cleanup(stop)
	return outside, stop
}

var patient = abi.Manifest{Limits: abi.Limits{HostCalls: 10_000_000, Time: 5 * time.Minute}}

func (p *probe) loop(do, path string, n int, grants ...string) map[string]int {
	p.t.Helper()
	var count map[string]int
	if err := json.Unmarshal([]byte(p.get(args{Do: "loop", A: path, B: do, N: n}, grants...)), &count); err != nil {
		p.t.Fatal(err)
	}
	return count
}

func TestFS11TOCTOUDirSwap(t *testing.T) {
	p := newProbe(t, patient)
	swapper(t, p)
	n := 20_000
	if testing.Short() {
		n = 2_000
	}
	count := p.loop("read", "/ws/real/f", n, readWS)
	for i := 0; count["inside"] == 0 && i < 50; i++ { // on a busy machine it may be away all the while
		count = p.loop("read", "/ws/real/f", n, readWS)
	}
	if count["inside"] == 0 || count["inside"]+count["error"] != n {
		t.Errorf("the reads gave %v", count)
	}
}

func TestFS12TOCTOUWrite(t *testing.T) {
	p := newProbe(t, patient)
	outside, stop := swapper(t, p)
	n := 5_000
	if testing.Short() {
		n = 500
	}
	count := p.loop("write", "/ws/real/g", n, readWS, writeWS)
	for i := 0; count["ok"] == 0 && i < 50; i++ {
		count = p.loop("write", "/ws/real/g", n, readWS, writeWS)
	}
	stop()
	if count["ok"] == 0 || count["ok"]+count["error"] != n {
		t.Errorf("the writes gave %v", count)
	}
	list, err := os.ReadDir(outside)
	if b, _ := os.ReadFile(filepath.Join(outside, "f")); err != nil || len(list) != 1 || string(b) != "CANARY" {
		t.Errorf("outside there is %v, %q, %v", list, b, err)
	}
}

func TestFS13HardLink(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	if err := os.Link(canary(t, p), filepath.Join(p.dir, "h")); err != nil {
		t.Skip("this system makes no hard links:", err)
	}
	p.want(args{Do: "read", A: "/ws/h"}, "CANARY", readWS)
	if len(p.last.Files) != 1 {
		t.Errorf("the receipt: %v", p.last.Files)
	}
	tree := p.loader.Tree(host.Caller{})
	tree.DenyMultilink = true
	defer func() { tree.DenyMultilink = false }()
	if got := p.secretless(args{Do: "read", A: "/ws/h"}, readWS); !strings.HasPrefix(got, "ERROR") {
		t.Errorf("with deny_multilink: %q", got)
	}
	if got := p.get(args{Do: "append", A: "/ws/h", B: "x"}, readWS, writeWS); !strings.HasPrefix(got, "ERROR") {
		t.Errorf("a write with deny_multilink: %q", got)
	}
}

func TestFS20ProcSelf(t *testing.T) {
	l := &sandbox.Loader{Compiler: self(t)}
	for _, scope := range []string{"/", "/**", "/*"} {
		pkg := pkgOf(replies("\x00one"), abi.Manifest{Tools: probeDecl, Needs: []abi.Need{{Cap: abi.FSRead, Scope: []string{scope}}}})
		if p, err := l.Load(t.Context(), pkg); err == nil {
			p.Close(t.Context())
			t.Errorf("a manifest may ask for %q", scope)
		}
	}
	if runtime.GOOS != "linux" {
		return
	}
	// A person who mounts the whole machine still gives no /proc.
	p := newProbe(t, abi.Manifest{})
	tree, err := reach.NewTree(reach.Mount{Name: "/ws", Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	p.loader.Tree = func(host.Caller) *reach.Tree { return tree }
	for _, path := range []string{"/ws/proc/self/environ", "/ws/sys/kernel/mm/ksm/run", "/ws/dev/null"} {
		if got := p.get(args{Do: "read", A: path}, readWS); !strings.HasPrefix(got, "ERROR") {
			t.Errorf("%s: %q", path, got)
		}
	}
	if got := p.get(args{Do: "list", A: "/ws/proc"}, readWS); !strings.HasPrefix(got, "ERROR") {
		t.Errorf("/proc: %.100q", got)
	}
}

// A file that is none keeps no call waiting, and no goroutine behind it.
func TestFS21To22NoRegularFile(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	special(t, p.dir)
	p.want(args{Do: "echo", A: "warm"}, "warm")
	before := runtime.NumGoroutine()
	for _, name := range []string{"p", "z"} {
		if _, err := os.Lstat(filepath.Join(p.dir, name)); errors.Is(err, os.ErrNotExist) {
			t.Logf("%s cannot be made here", name)
			continue
		}
		for _, do := range []string{"read", "read1", "append", "write"} {
			// One that is opened for good would hang for ever.
			if got := p.get(args{Do: do, A: "/ws/" + name, B: "x"}, readWS, writeWS); !strings.HasPrefix(got, "ERROR") && do != "write" {
				t.Errorf("%s %s: %q", do, name, got)
			}
			if do == "append" { // a write may replace it by a file
				continue
			}
		}
	}
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before+2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

func TestFS27OwnConfigAbsent(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	for _, name := range []string{".elfhost/policy.json", ".elfhost/policy.toml", ".mcp.json", ".git/hooks/pre-commit"} {
		p.get(args{Do: "mkdir", A: "/ws/" + filepath.Dir(name)}, readWS, writeWS)
		for _, do := range []string{"write", "append"} {
			p.refused(args{Do: do, A: "/ws/" + name, B: "evil"}, "", readWS, writeWS)
		}
		p.file("innocent", "evil")
		p.refused(args{Do: "rename", A: "/ws/innocent", B: "/ws/" + name}, "", readWS, writeWS)
		if _, err := os.Stat(filepath.Join(p.dir, name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

// What one call does to its descriptors, its time and its memory changes
// nothing for the next, which is served by the same instance.
func TestABI10TheNextCallIsUntouched(t *testing.T) {
	p := newProbe(t, abi.Manifest{Limits: abi.Limits{Parallel: 1}})
	p.file("a", "text")
	random := map[string]bool{}
	for _, bad := range []args{{Do: "keep", A: "/ws/a"}, {Do: "closefd", N: 3}, {Do: "closefd", N: 1}, {Do: "sleep", N: 3_600_000}, {Do: "spin"},
		{Do: "exit", N: 3}, {Do: "panic", A: "boom"}, {Do: "remember", A: "token"}, {Do: "grow", N: 20}} {
		if bad.Do == "sleep" || bad.Do == "spin" {
			p.stop(bad, readWS)
		} else {
			p.try(bad, readWS)
		}
		p.want(args{Do: "read", A: "/ws/a"}, "text", readWS)
		p.want(args{Do: "recall"}, "")
		p.want(args{Do: "list", A: "/"}, "ws", readWS)
		p.refused(args{Do: "kept", N: 4}, "ad file", readWS)
		r := p.get(args{Do: "random"})
		if random[r] {
			t.Errorf("after %s: random bytes of another call", bad.Do)
		}
		random[r] = true
	}
}
