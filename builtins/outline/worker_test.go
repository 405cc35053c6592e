package outline

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
)

// TestWorkerIsKept: one process serves a session, and a new one comes after it
// was killed.
func TestWorkerIsKept(t *testing.T) {
	needNative(t)
	d := newDesk(t, Options{})
	d.outlineOf("a.go", "package a\n")
	first := d.worker.live.cmd.Process.Pid
	d.outlineOf("b.py", "x = 1\n")
	if again := d.worker.live.cmd.Process.Pid; again != first {
		t.Fatalf("process %d, then %d", first, again)
	}
	d.worker.live.kill()
	if got := d.outlineOf("a.go", "package a\nfunc F() {}\n"); !strings.Contains(got, "function F (line 2)") {
		t.Fatalf("after the worker was killed: %s", got)
	}
	if again := d.worker.live.cmd.Process.Pid; again == first {
		t.Fatal("the killed process answered")
	}
}

// TestNothingIsStarted before a file needs a native parser.
func TestNothingIsStarted(t *testing.T) {
	d := newDesk(t, Options{})
	d.outlineOf("a.md", "# A\n")
	d.outlineOf("a.unknown", "x")
	if d.worker.live != nil {
		t.Fatal("a worker was started")
	}
}

func TestWorkerSlow(t *testing.T) {
	needNative(t)
	d := newDesk(t, Options{Timeout: 400 * time.Millisecond})
	d.outlineOf("warm.c", "int x;")
	start := time.Now()
	got := d.outlineOf("slow.cpp", strings.Repeat("a<b<(c[{", 1_000_000))
	if !strings.Contains(got, "Note: AST parse error: the parser took too long and was stopped.") {
		t.Fatal(got)
	}
	if took := time.Since(start); took > 20*time.Second { // the default is 30 s
		t.Fatalf("it took %v", took)
	}
	d.answers("b.c", "int f(void) { return 0; }", "function f")
}

func TestWorkerCancel(t *testing.T) {
	needNative(t)
	d := newDesk(t, Options{})
	d.write("slow.cpp", strings.Repeat("a<b<(c[{", 1_000_000))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := d.call(ctx, map[string]any{"path": "slow.cpp"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

func TestWorkerClosed(t *testing.T) {
	needNative(t)
	d := newDesk(t, Options{})
	d.write("slow.cpp", strings.Repeat("a<b<(c[{", 1_000_000))
	done := make(chan abi.Result)
	go func() {
		res, _ := d.call(t.Context(), map[string]any{"path": "slow.cpp"})
		done <- res
	}()
	for d.worker.running() == nil {
		time.Sleep(5 * time.Millisecond)
	}
	p := d.worker.running()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
	if p.cmd.ProcessState == nil {
		t.Fatal("the process was not reaped")
	}
}

func (w *worker) running() *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.live
}

func TestWorkerParallel(t *testing.T) {
	needNative(t)
	d := newDesk(t, Options{})
	d.write("a.py", "def f(): pass\n")
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			res, err := d.call(t.Context(), map[string]any{"path": "a.py"})
			if err != nil || !strings.Contains(res.Text(), "function f (line 1)") {
				t.Error(res.Text(), err)
			}
		})
	}
	wg.Wait()
}

// TestWorkerIsConfined tries from inside what a parser that was taken over would.
func TestWorkerIsConfined(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux confines the worker")
	}
	file := t.TempDir() + "/secret"
	if err := os.WriteFile(file, []byte("s"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command(os.Args[0], "__confined", file, l.Addr().String())
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "held\n" {
		t.Fatalf("%v\n%s", err, out)
	}
}

// confined runs in a process of its own; it tells what it could do.
func confined(file, addr string) int {
	if err := confine(); err != nil {
		os.Stdout.WriteString("confine: " + err.Error() + "\n")
		return 1
	}
	tries := map[string]func() error{
		"read a file":       func() error { _, err := os.ReadFile(file); return err },
		"list a folder":     func() error { _, err := os.ReadDir("/"); return err },
		"write a file":      func() error { return os.WriteFile(file, []byte("x"), 0o644) },
		"remove a file":     func() error { return os.Remove(file) },
		"connect":           func() error { _, err := net.Dial("tcp", addr); return err },
		"listen":            func() error { _, err := net.Listen("tcp", "127.0.0.1:0"); return err },
		"send a datagram":   func() error { _, err := net.Dial("udp", addr); return err },
		"start a program":   func() error { return exec.Command("/bin/true").Run() },
		"signal its parent": func() error { p, _ := os.FindProcess(os.Getppid()); return p.Signal(os.Kill) },
		"read the environment of its parent": func() error {
			_, err := os.ReadFile("/proc/self/environ")
			return err
		},
	}
	maps.Copy(tries, systemTries(file))
	for what, try := range tries {
		if try() == nil {
			os.Stdout.WriteString("it could " + what + "\n")
			return 1
		}
	}
	os.Stdout.WriteString("held\n")
	return 0
}

// TestServe: the worker's own side of the protocol with hostile input.
func TestServe(t *testing.T) {
	for name, in := range map[string][]byte{
		"long id":      {0xff, 0, 0, 0, 'x'},
		"cut":          {1, 0, 0, 0, 'c', 9, 0, 0, 0, 'x'},
		"huge source":  {1, 0, 0, 0, 'c', 0xff, 0xff, 0xff, 0xff, 'x'},
		"half a frame": {1, 0},
	} {
		var out bytes.Buffer
		if err := serve(&parser{}, bytes.NewReader(in), bufio.NewWriter(&out)); err == nil || out.Len() > 0 {
			t.Errorf("%s: %v, %q", name, err, out.Bytes())
		}
	}
	if err := serve(&parser{}, strings.NewReader(""), nil); err != io.EOF {
		t.Error("the end:", err)
	}
}

func needNative(t *testing.T) {
	t.Helper()
	if !native("c") {
		t.Skip("this build has no native parsers (it is without cgo)")
	}
}

func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"s":[{"l":"function","n":"f","a":1,"b":2},{"l":"x","n":"\u001b[2J","a":1,"b":1,"d":1}],"e":3}`))
	f.Add([]byte(`{"f":"why"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var framed bytes.Buffer
		if err := writeFrame(&framed, b); err != nil {
			t.Fatal(err)
		}
		back, err := readFrame(&framed, len(b))
		if err != nil || !bytes.Equal(back, b) {
			t.Fatal(err)
		}
		_, _ = readFrame(bytes.NewReader(b), 1<<20)
		r, err := decodeReply(b)
		if err != nil {
			return
		}
		p := page{file: "f", language: "l", lines: 1}
		text := p.render(r)
		if strings.ContainsAny(text, "\x1b\x00\r\u2028") {
			t.Fatalf("control characters: %q", text)
		}
		if len(r.Symbols) > 0 && strings.Count(text, "\n") > len(r.Symbols)+5 {
			t.Fatalf("a symbol takes more than a line: %q", text)
		}
	})
}
