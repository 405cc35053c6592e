package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/sandbox"
)

func TestABI01OutOfBoundsPointers(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	for _, c := range [][2]uint64{{0xffffffff, 0xffff}, {0xfffffff0, 0x20}, {64<<20 - 1, 2}, {0x7fffffff, 1 << 20}} {
		p.want(args{Do: "raw", A: fmt.Sprint(c[0]), B: fmt.Sprint(c[1])}, fmt.Sprint(int32(abi.ErrFault)))
	}
	p.want(args{Do: "echo", A: "alive"}, "alive")
}

func TestABI02HugeLengths(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	for _, n := range []uint64{2 << 30, 0xffffffff, 16<<20 + 1} {
		p.want(args{Do: "raw", A: "0", B: fmt.Sprint(n)}, fmt.Sprint(int32(abi.ErrTooLarge)))
	}
}

func TestABI04RequestIsCopied(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	p.loader.KV = &reach.KV{Dir: t.TempDir()}
	kv := "kv 1MiB"
	// The reply is taken to where the request lies; the second request reads it
	// as one, and must be judged by what is there now.
	p.want(args{Do: "kvset", A: "k", B: "\x7f\x00\x00\x00 not a header"}, "ok", kv)
	got := p.get(args{Do: "alias"}, kv)
	if !strings.Contains(got, "not a header") || !strings.Contains(got, fmt.Sprint(int32(abi.ErrInvalid))) {
		t.Errorf("%q", got)
	}
}

// registry calls tools as the host's does, as far as plugins see it.
func TestABI05NoReentry(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	depth := 0
	p.loader.Invoke = func(ctx context.Context, c host.Call) abi.Result {
		depth++
		r, err := p.plugin.Tools()[0].Call(ctx, c)
		if err != nil {
			return abi.Errorf("%v", err)
		}
		return r
	}
	p.refused(args{Do: "tool", A: "probe", B: `{"do":"tool","a":"probe","b":"{}"}`}, "already in this chain", "tool.call probe")
	if depth != 1 {
		t.Errorf("%d calls", depth)
	}
}

func TestABI06HostCallFlood(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	_, err := p.try(args{Do: "flood", N: 10_000_000})
	var limit *sandbox.LimitError
	if !errors.As(err, &limit) || limit.Limit != "host calls" || !errors.Is(err, abi.ErrLimit) {
		t.Fatalf("%v", err)
	}
	if n := p.last.HostCalls["elf:io.take"]; n < 9_000 || n > 10_000 {
		t.Errorf("%d host calls in the receipt", n)
	}
	if len(p.last.Limits) == 0 || p.last.Limits[0] != "host calls" {
		t.Errorf("limits hit: %v", p.last.Limits)
	}
	p.want(args{Do: "echo", A: "alive"}, "alive")
}

// slow is a server that never answers.
func slow(t *testing.T) (url, port string) {
	stop := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	t.Cleanup(func() { close(stop); s.Close() })
	_, port, _ = net.SplitHostPort(s.Listener.Addr().String())
	return s.URL, port
}

func TestABI07BlockingHostCalls(t *testing.T) {
	url, port := slow(t)
	grant := "net.http http://127.0.0.1:" + port + " GET"
	p := newProbe(t, abi.Manifest{Limits: abi.Limits{Time: 300 * time.Millisecond},
		Needs: []abi.Need{{Cap: abi.NetHTTP, Scope: []string{"http://127.0.0.1:" + port + " GET"}}, {Cap: abi.KV, Scope: []string{"1MiB"}},
			{Cap: abi.Model, Scope: []string{"1k tokens"}}, {Cap: abi.Secret, Scope: []string{"token@a.example"}}, {Cap: abi.Env, Scope: []string{"LANG"}},
			{Cap: abi.Exec, Scope: []string{"git log *"}}, {Cap: abi.ToolCall, Scope: []string{"probe"}}}})
	p.loader.HTTP = &reach.HTTP{}
	p.alive()
	for _, a := range []args{{Do: "fetch", A: url}, {Do: "sleep", N: 3_600_000}, {Do: "spin"}, {Do: "recurse"}} {
		_, err := p.try(a, grant) // none ends by itself. How late it is, the bench measures
		if a.Do == "recurse" {
			if !errors.Is(err, abi.ErrLimit) {
				// Go catches its own stack limit first: a trap is as good.
				var trap *sandbox.TrapError
				var exit *sandbox.ExitError
				if !errors.As(err, &trap) && !errors.As(err, &exit) {
					t.Errorf("%s: %v", a.Do, err)
				}
			}
		} else if !errors.Is(err, abi.ErrDeadline) {
			t.Errorf("%s: %v", a.Do, err)
		}
		p.alive()
	}
}

func TestABI07CallerGoes(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	p.want(args{Do: "echo", A: "warm"}, "warm")
	for _, a := range []args{{Do: "spin"}, {Do: "sleep", N: 3_600_000}} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		if _, err := p.call(ctx, a, policy.Rights{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", a.Do, err)
		}
	}
}

func TestABI10NothingSurvives(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	os.WriteFile(filepath.Join(p.dir, "a"), []byte("secret"), 0o644)
	read := "fs.read /ws/**"
	seen := map[string]bool{}
	for range 3 {
		p.want(args{Do: "remember", A: "token"}, "ok")
		p.want(args{Do: "recall"}, "")
		fd, err := strconv.Atoi(p.get(args{Do: "keep", A: "/ws/a"}, read))
		if err != nil {
			t.Fatal(err)
		}
		p.refused(args{Do: "kept", N: fd}, "ad file", read)
		p.want(args{Do: "closefd", N: 3}, "ok")
		p.want(args{Do: "read", A: "/ws/a"}, "secret", read)
		p.refused(args{Do: "read", A: "/ws/a"}, "ermission")
		if r := p.get(args{Do: "random"}); seen[r] {
			t.Error("the same random bytes in two calls")
		} else {
			seen[r] = true
		}
	}
}

func TestABI11BadOutput(t *testing.T) {
	for name, c := range map[string]struct {
		reply string
		want  string // of the error, or the text
		ok    bool
	}{
		"bad UTF-8 in text": {"\x00a\xffb", "a\uFFFDb", true},
		"bad UTF-8 in JSON": {"\x02{\"content\":[{\"type\":\"text\",\"text\":\"\xff\"}]}", "UTF-8", false},
		"deep":              {"\x02" + strings.Repeat("[", 200_000), "JSON", false},
		"deep and closed":   {"\x02{\"structuredContent\":" + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + "}", "deeper", false},
		"huge number":       {"\x02{\"content\":[],\"structuredContent\":{\"n\":1e999999999}}", "out of range", false},
		"NaN":               {"\x02{\"content\":[],\"structuredContent\":{\"n\":NaN}}", "JSON", false},
		"key twice":         {"\x02{\"content\":[],\"content\":[]}", "twice", false},
		"kind 9":            {"\x09x", "kind", false},
		"unknown block":     {"\x02{\"content\":[{\"type\":\"video\"}]}", "no type", false},
		"error of the tool": {"\x01It failed.", "It failed.", true},
		"structured alone":  {"\x02{\"structuredContent\":{\"a\":1}}", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := load(t, &sandbox.Loader{}, replies(c.reply), abi.Manifest{})
			r, err := p.Tools()[0].Call(t.Context(), host.Call{Tool: "probe"})
			switch {
			case c.ok && (err != nil || r.Text() != c.want):
				t.Errorf("%q, %v", r.Text(), err)
			case !c.ok && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestABI12LogInjection(t *testing.T) {
	p := newProbe(t, abi.Manifest{Limits: abi.Limits{LogLines: 10, LogLine: 64}})
	p.want(args{Do: "log", A: "a\nelfhost: error: forged\x1b[31m\u202e\r" + strings.Repeat("x", 1000), N: 1000}, "ok")
	if len(p.logs) != 10 {
		t.Fatalf("%d lines", len(p.logs))
	}
	l := p.logs[0]
	if !strings.HasPrefix(l.Text, `a\nelfhost: error: forged\x1b[31m\u{202e}\r`) || len(l.Text) > 100 || strings.ContainsAny(l.Text, "\n\r\x1b") {
		t.Errorf("%q", l.Text)
	}
	if len(p.last.Limits) != 1 || p.last.Limits[0] != "log" {
		t.Errorf("limits hit: %v", p.last.Limits)
	}
	p.logs = nil
	p.want(args{Do: "print", A: "one\ntwo"}, "ok")
	if len(p.logs) != 2 || p.logs[1].Text != "two" || p.logs[1].Level != "stdout" {
		t.Errorf("%+v", p.logs)
	}
}

func TestABI13ClockAndRandom(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	for _, step := range strings.Fields(p.get(args{Do: "clock", N: 3})) {
		if n, _ := strconv.Atoi(step); n%int(time.Millisecond) != 0 {
			t.Errorf("the clock moved by %s ns", step)
		}
	}
	fine := false
	for _, step := range strings.Fields(p.get(args{Do: "clock", N: 20}, "clock.fine")) {
		n, _ := strconv.Atoi(step)
		fine = fine || n%int(time.Millisecond) != 0
	}
	if !fine {
		t.Error("with clock.fine the clock is coarse")
	}
	if a, b := p.get(args{Do: "random"}), p.get(args{Do: "random"}); a == b || len(a) != 32 {
		t.Errorf("%s, %s", a, b)
	}
}

func TestABI14NothingAmbient(t *testing.T) {
	t.Setenv("SECRET", "x")
	p := newProbe(t, abi.Manifest{})
	os.WriteFile(filepath.Join(p.dir, "a"), []byte("secret"), 0o644)
	p.want(args{Do: "ambient"}, "args=0 env=0 sock=57 root=0 err=<nil>")
	p.refused(args{Do: "read", A: "/etc/passwd"}, "o such file")
	p.refused(args{Do: "read", A: "/ws/a"}, "ermission")
	if want := "fs.read /ws/a"; len(p.last.Denied) != 1 || p.last.Denied[0] != want {
		t.Errorf("denied %v, want %s", p.last.Denied, want)
	}
	_, err := p.try(args{Do: "exit", N: 0})
	var exit *sandbox.ExitError
	if !errors.As(err, &exit) || exit.Code != 0 {
		t.Errorf("%v", err)
	}
	var trap *sandbox.TrapError
	if _, err = p.try(args{Do: "panic", A: "boo"}); !errors.As(err, &exit) && !errors.As(err, &trap) {
		t.Errorf("%v", err)
	}
	p.alive()
	p = newProbe(t, abi.Manifest{Limits: abi.Limits{Time: 300 * time.Millisecond}})
	if _, err = p.try(args{Do: "sleep", N: 3_600_000}); !errors.Is(err, abi.ErrDeadline) {
		t.Errorf("%v", err)
	}
	p.alive()
}

func TestABI08BulkOperations(t *testing.T) {
	// (loop (memory.fill (i32.const 0) (i32.const 0) (i32.const 64 MiB)) (br 0))
	fill := []byte{0x03, 0x40, 0x41, 0, 0x41, 0}
	fill = append(fill, constI32(64<<20)...)
	fill = append(fill, 0xfc, 0x0b, 0, 0x0c, 0, 0x0b, 0x00)
	grow := []byte{0x41}
	grow = append(append(grow[:0], constI32(1024-17)...), 0x40, 0, 0x1a)
	p := load(t, &sandbox.Loader{}, tiny{call: append(grow, fill...)}.bytes(), abi.Manifest{Limits: abi.Limits{Time: 50 * time.Millisecond}})
	if err := p.Warm(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_, err := p.Tools()[0].Call(t.Context(), host.Call{})
	if !errors.Is(err, abi.ErrDeadline) {
		t.Errorf("%v", err)
	}
	if d := time.Since(start); d > time.Minute { // uncounted, the fills of one tick take several
		t.Errorf("it took %v", d)
	}
}
