//go:build unix

package reach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
)

func sh(t testing.TB, command string) Program {
	t.Helper()
	return Program{Argv: []string{"/bin/sh", "-c", command}, Dir: t.TempDir()}
}

func run(t testing.TB, p Program) Exit {
	t.Helper()
	var r Runner
	e, err := r.Run(bg, give(t, "exec /bin/sh **"), p)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestRunIsChecked(t *testing.T) {
	var r Runner
	file := filepath.Join(t.TempDir(), "PWN")
	if _, err := r.Run(bg, give(t, "exec git log **"), sh(t, "touch "+file)); !errors.Is(err, denied) {
		t.Error(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it ran")
	}
	if _, err := r.Run(bg, give(t, "exec /bin/sh **"), Program{Argv: []string{"no-such-program"}, Dir: "/"}); !errors.Is(err, abi.ErrNotFound) {
		t.Error(err)
	}
	if _, err := r.Run(bg, give(t, "exec /bin/sh **"), Program{Argv: []string{"./x"}, Dir: "/"}); !errors.Is(err, abi.ErrInvalid) {
		t.Error(err)
	}
}

func TestRunExit(t *testing.T) {
	e := run(t, sh(t, "echo out; echo err >&2; exit 3"))
	if e.Code != 3 || len(e.Output) != 8 || e.Truncated || e.Total != 8 || e.Sandbox != "none" {
		t.Errorf("%+v", e)
	}
	e = run(t, sh(t, "kill -9 $$"))
	if e.Code != -1 || e.Signal != "SIGKILL" {
		t.Errorf("%+v", e)
	}
}

func TestB01BackgroundPipe(t *testing.T) {
	for _, c := range []string{"sleep 300 & echo done", "setsid sleep 300 & echo done", "sleep 300 </dev/null >/dev/null 2>&1 & echo done"} {
		began := time.Now()
		e := run(t, sh(t, c))
		if string(e.Output) != "done\n" || e.Code != 0 {
			t.Errorf("%s: %+v", c, e)
		}
		if d := time.Since(began); d > 2*time.Minute {
			t.Errorf("%s: took %v", c, d)
		}
	}
}

func TestNothingOutlivesAProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "late")
	e := run(t, sh(t, "(setsid sh -c 'sleep .5; echo > "+file+"' >/dev/null 2>&1 &); echo done"))
	if string(e.Output) != "done\n" {
		t.Errorf("%+v", e)
	}
	time.Sleep(700 * time.Millisecond)
	if _, err := os.Stat(file); err == nil && runtime.GOOS == "linux" {
		t.Error("a child in a session of its own lived on")
	}
}

func TestB02BackgroundNoisy(t *testing.T) {
	e := run(t, sh(t, "(while :; do echo x; sleep .01; done) & echo fg"))
	if !strings.Contains(string(e.Output), "fg") || len(e.Output) > 10_000 {
		t.Errorf("%d bytes: %.300s", len(e.Output), e.Output)
	}
}

func TestB04EmptyStdin(t *testing.T) {
	if e := run(t, sh(t, "cat; echo done")); string(e.Output) != "done\n" {
		t.Errorf("%+v", e)
	}
}

func TestB05StdinHeredoc(t *testing.T) {
	e := run(t, sh(t, "cat <<EOF\nhi\nEOF\nif read x; then echo got; else echo eof; fi"))
	if string(e.Output) != "hi\neof\n" {
		t.Errorf("%q", e.Output)
	}
}

func TestB07UTF8Split(t *testing.T) {
	var mu sync.Mutex
	var pieces []string
	p := sh(t, `printf 'cleanup \342'; sleep .05; printf '\200\224 end'`)
	p.Stream = func(b []byte) { mu.Lock(); pieces = append(pieces, string(b)); mu.Unlock() }
	e := run(t, p)
	if string(e.Output) != "cleanup — end" {
		t.Errorf("%q", e.Output)
	}
	for _, s := range pieces {
		if !utf8.ValidString(s) {
			t.Errorf("a piece with half a rune: %q", s)
		}
	}
}

func TestB08UTF8Interleave(t *testing.T) {
	e := run(t, sh(t, `printf '\360'; sleep .05; echo line >&2; sleep .05; printf '\237\230\200'`))
	if got := string(e.Output); got != "line\n😀" && got != "😀line\n" { // which pipe is read first, a busy machine decides
		t.Errorf("%q", got)
	}
}

func TestRunTimeout(t *testing.T) {
	p := sh(t, "trap '' TERM; echo begun; sleep 300 & wait; sleep 300")
	var e Exit
	began := time.Now()
	for p.Timeout = 100 * time.Millisecond; len(e.Output) == 0 && p.Timeout < time.Minute; p.Timeout *= 4 {
		e = run(t, p) // on a busy machine it may not come so far
	}
	if !e.TimedOut || string(e.Output) != "begun\n" || time.Since(began) > 4*time.Minute {
		t.Errorf("%+v after %v", e, time.Since(began))
	}
}

func TestRunCancelKillsTheGroup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	p := sh(t, "sh -c 'echo $$ > "+file+"; sleep 300' & sleep 300")
	var r Runner
	ctx, cancel := context.WithCancel(bg)
	j, err := r.Start(ctx, give(t, "exec /bin/sh **"), p)
	if err != nil {
		t.Fatal(err)
	}
	pid := 0
	until(t, func() bool {
		data, _ := os.ReadFile(file)
		_, err := fmt.Sscan(string(data), &pid)
		return err == nil
	})
	cancel()
	if _, err := j.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	until(t, func() bool { return !alive(pid) })
}

// until waits for what comes soon, or on a busy machine later.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}

// What a program wrote is kept, however long nobody had time to read it.
func TestRunKeepsWhatIsReadLate(t *testing.T) {
	for _, pty := range []bool{false, true} {
		p := sh(t, "printf a; sleep .1; printf 'b%01000d' 1")
		p.Pty = pty
		first := true
		p.Stream = func([]byte) {
			if first {
				first = false
				time.Sleep(10 * defaultGrace)
			}
		}
		if e := run(t, p); len(e.Output) != 1002 {
			t.Errorf("terminal %v: %d bytes of 1002", pty, len(e.Output))
		}
	}
	p := sh(t, "printf a; sleep .1; head -c 60000 /dev/zero")
	slow := &slowly{}
	p.Stdout = slow
	if run(t, p); slow.n != 60_001 {
		t.Errorf("%d bytes of 60001 went to Stdout", slow.n)
	}
}

// slowly takes its time for the first piece.
type slowly struct{ n int }

func (s *slowly) Write(b []byte) (int, error) {
	if s.n == 0 {
		time.Sleep(10 * defaultGrace)
	}
	s.n += len(b)
	return len(b), nil
}

func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil && strings.Contains(string(data), ") Z ") {
		return false
	}
	return syscall.Kill(pid, 0) == nil
}

func TestRunOutput(t *testing.T) {
	p := sh(t, "i=0; while [ $i -lt 5000 ]; do echo line-$i-é; i=$((i+1)); done")
	p.Output, p.Log = 1001, filepath.Join(t.TempDir(), "log")
	e := run(t, p)
	log, err := os.ReadFile(p.Log)
	if err != nil || int64(len(log)) != e.Total {
		t.Errorf("log of %d bytes, %d written, %v", len(log), e.Total, err)
	}
	head, tail := string(e.Output[:e.Head]), string(e.Output[e.Head:])
	if !e.Truncated || len(e.Output) > 1001 || !strings.HasPrefix(string(log), head) || !strings.HasSuffix(string(log), tail) ||
		len(head) < 490 || len(tail) < 490 || !utf8.Valid(e.Output) {
		t.Errorf("%d+%d, truncated %v", len(head), len(tail), e.Truncated)
	}
	if info, _ := os.Stat(p.Log); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	p = sh(t, "printf 12345678")
	p.Output = 8
	if e := run(t, p); e.Truncated || string(e.Output) != "12345678" {
		t.Errorf("%+v", e)
	}
}

func TestSH25OutputFlood(t *testing.T) {
	p := sh(t, "yes | head -c 2000000000")
	p.Log, p.LogCap = filepath.Join(t.TempDir(), "log"), 8<<20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	e := run(t, p)
	runtime.ReadMemStats(&after)
	if !e.LogFull || !e.Truncated || len(e.Output) > 100<<10 {
		t.Errorf("%d bytes, full %v", len(e.Output), e.LogFull)
	}
	if info, _ := os.Stat(p.Log); info.Size() != 8<<20 {
		t.Errorf("the log has %d bytes", info.Size())
	}
	if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 20<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

func TestRunCleanEnvironment(t *testing.T) {
	t.Setenv("ELF_TEST_SECRET", "hunter22")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter22")
	t.Setenv("GIT_PAGER", "touch PWN")
	e := run(t, sh(t, "env"))
	if strings.Contains(string(e.Output), "hunter22") || strings.Contains(string(e.Output), "PWN") || !strings.Contains(string(e.Output), "PATH=") {
		t.Errorf("%s", e.Output)
	}
}

func TestRunPty(t *testing.T) {
	p := sh(t, "test -t 1 && test -t 0 && stty size; printf é")
	p.Pty = true
	e := run(t, p)
	if got := string(e.Output); got != "24 80\r\né" {
		t.Errorf("%q", got)
	}
}

func TestRunStdin(t *testing.T) {
	p := sh(t, "head -c 3")
	p.Stdin = strings.NewReader(strings.Repeat("abc", 1<<20))
	if e := run(t, p); string(e.Output) != "abc" {
		t.Errorf("%+v", e)
	}
}

func TestNoTerminalToAskAt(t *testing.T) {
	if e := run(t, sh(t, "(: </dev/tty) 2>/dev/null && echo tty || echo none")); string(e.Output) != "none\n" {
		t.Errorf("%q", e.Output)
	}
}
