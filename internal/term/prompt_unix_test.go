//go:build unix

package term

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
)

// screen is the person's side of a pty: what was shown so far, and keys.
type screen struct {
	ptm *os.File
	mu  sync.Mutex
	buf bytes.Buffer
}

func newScreen(t *testing.T) (*screen, *os.File) {
	t.Helper()
	ptm, pts, err := pty.Open()
	if err != nil {
		t.Skipf("no pty on this machine: %v", err)
	}
	s := &screen{ptm: ptm}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := ptm.Read(b)
			s.mu.Lock()
			s.buf.Write(b[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { pts.Close(); ptm.Close() })
	return s, pts
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func (s *screen) wait(t *testing.T, want string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if strings.Contains(s.text(), want) {
			return
		}
	}
	t.Fatalf("never saw %q in:\n%s", want, s.text())
}

func (s *screen) keys(text string) { _, _ = io.WriteString(s.ptm, text) }

func bash(cmd string) host.Ask {
	args, _ := json.Marshal(map[string]string{"command": cmd})
	return host.Ask{
		Call: host.Call{Tool: "Bash", Args: args},
		Spec: host.Spec{Name: "Bash", Kind: host.KindExecute, Origin: host.Origin{Source: host.Builtin}},
		Why:  "asked by the model in step 4", Now: "granted: none",
		Rules: []host.Rule{{Pattern: "Bash(git status:*)"}},
	}
}

type outcome struct {
	a   host.Answer
	err error
}

func ask(t *testing.T, ctx context.Context, p *Prompt, a host.Ask) chan outcome {
	t.Helper()
	ch := make(chan outcome, 1)
	go func() {
		ans, err := p.Approve(ctx, a)
		ch <- outcome{ans, err}
	}()
	return ch
}

func TestQuestionInATerminal(t *testing.T) {
	for _, c := range []struct {
		name, keys string
		want       host.Answer
	}{
		{"enter is no", "\r", host.Answer{}},
		{"once", "1\r", host.Answer{Allow: true, Scope: host.Once}},
		{"session", "2\r", host.Answer{Allow: true, Scope: host.Session, Rule: host.Rule{Pattern: "Bash(git status:*)"}}},
		{"project", "3\r", host.Answer{Allow: true, Scope: host.Project, Rule: host.Rule{Pattern: "Bash(git status:*)"}}},
		{"letters are ignored", "y\ryes\r", host.Answer{}},
		{"out of range asks again", "9\r4\r", host.Answer{}},
		{"backspace", "1\x7f4\r", host.Answer{}},
		{"with a reason", "5\rсперва тесты\r", host.Answer{Reason: "сперва тесты"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, pts := newScreen(t)
			p, ready := listening(pts, 30*time.Millisecond)
			got := ask(t, context.Background(), p, bash("git status"))
			s.wait(t, "answer [1-5, default 4]: ")
			<-ready
			s.keys(c.keys)
			o := <-got
			if o.err != nil || o.a != c.want {
				t.Fatalf("answer %+v, %v; want %+v\n%s", o.a, o.err, c.want, s.text())
			}
			if strings.ContainsRune(s.text(), 0x1b) {
				t.Errorf("plain mode wrote an escape byte: %q", s.text())
			}
		})
	}
}

// A key that was typed before the question could be read, or is in flight when
// it appears, must not answer it.
func TestQuestionIgnoresKeysTypedAhead(t *testing.T) {
	for quiet := 150 * time.Millisecond; quiet < time.Minute; quiet *= 4 {
		s, pts := newScreen(t)
		p, ready := listening(pts, quiet)
		s.keys("1\r1\r")
		got := ask(t, context.Background(), p, bash("rm -rf build"))
		s.wait(t, "answer")
		s.keys("1\r") // in flight: within the quiet period
		if len(ready) > 0 {
			continue // on a busy machine it came too late for that
		}
		<-ready
		s.keys("\r")
		if o := <-got; o.a.Allow || o.err != nil {
			t.Fatalf("answered by a key typed ahead: %+v, %v", o.a, o.err)
		}
		return
	}
	t.Fatal("no key came within a quiet period")
}

// listening is a prompt that tells when the quiet period is over.
func listening(pts *os.File, quiet time.Duration) (*Prompt, chan struct{}) {
	ready := make(chan struct{}, 10)
	return &Prompt{In: pts, Out: pts, Quiet: quiet, MaxQuiet: 100 * quiet, listens: func() { ready <- struct{}{} }}, ready
}

func TestQuestionEndsWithItsContext(t *testing.T) {
	s, pts := newScreen(t)
	ctx, cancel := context.WithCancel(context.Background())
	got := ask(t, ctx, &Prompt{In: pts, Out: pts, Quiet: time.Millisecond}, bash("x"))
	s.wait(t, "answer")
	cancel()
	if o := <-got; !errors.Is(o.err, context.Canceled) || o.a.Allow {
		t.Fatalf("got %+v, %v", o.a, o.err)
	}
}

func TestQuestionInterrupted(t *testing.T) {
	s, pts := newScreen(t)
	got := ask(t, context.Background(), &Prompt{In: pts, Out: pts, Quiet: time.Millisecond}, bash("x"))
	s.wait(t, "answer")
	s.keys("\x03")
	if o := <-got; !errors.Is(o.err, ErrInterrupt) {
		t.Fatalf("got %+v, %v", o.a, o.err)
	}
}

func TestQuestionExpires(t *testing.T) {
	_, pts := newScreen(t)
	got := ask(t, context.Background(), &Prompt{In: pts, Out: pts, Quiet: time.Millisecond, Expire: 60 * time.Millisecond}, bash("x"))
	if o := <-got; o.a.Allow || o.err != nil {
		t.Fatalf("got %+v, %v", o.a, o.err)
	}
}

// TestTUI03: what is too long to read is refused; what is long is folded, and
// cannot be allowed before it was shown.
func TestTUI03(t *testing.T) {
	s, pts := newScreen(t)
	p, ready := listening(pts, time.Millisecond)
	if o := <-ask(t, context.Background(), p, bash(strings.Repeat("a", 200_000))); o.a.Allow || !errors.Is(o.err, errLong) {
		t.Fatalf("a 200 kB command: %+v", o)
	}
	got := ask(t, context.Background(), p, bash("echo start\n"+strings.Repeat("\n", 3_000)+"rm -rf ~"))
	s.wait(t, "show the 2")
	if strings.Contains(s.text(), "allow once") {
		t.Fatal("offered to allow what was not shown")
	}
	s.wait(t, "rm -rf ~") // the tail is visible
	<-ready
	s.keys("1\r")
	s.wait(t, "allow once")
	<-ready
	s.keys("1\r")
	if o := <-got; !o.a.Allow {
		t.Fatalf("got %+v", o)
	}
}

// The text of a choice is the rule that its answer carries.
func TestChoiceTextEqualsItsRule(t *testing.T) {
	g := &policy.Grant{Cap: abi.NetHTTP, Scope: []string{"https://api.github.com/** GET"}}
	a := host.Ask{Spec: host.Spec{Name: "fetch"}, Use: &policy.Use{Cap: abi.NetHTTP, Verb: "GET", Target: "https://api.github.com/x"},
		Rules: []host.Rule{{Plugin: "fetch", Grant: g}, {Pattern: "Bash(ls:*)"}}}
	q, _ := Ask(a, false)
	seen := 0
	for _, c := range q.Choices {
		if c.Answer.Scope == host.Session || c.Answer.Scope == host.Project {
			seen++
			if !strings.Contains(c.Text, "allow "+RuleText(c.Answer.Rule)+" ") {
				t.Errorf("choice %q does not show its rule %+v", c.Text, c.Answer.Rule)
			}
		}
	}
	if seen != 4 {
		t.Errorf("%d lasting choices", seen)
	}
}

func TestFormInATerminal(t *testing.T) {
	number := func(text string) (any, error) {
		if text != "7" {
			return nil, errors.New("it is not seven")
		}
		return 7, nil
	}
	plain := func(text string) (any, error) { return text, nil }
	fields := []Field{
		{Name: "n", Label: "n\u202e", Required: true, Read: number},
		{Name: "colour", Label: "colour", Choices: []string{"red", "blue"}, Default: "2", Read: plain},
		{Name: "note", Label: "note", Read: plain},
	}
	fill := func(keys ...string) (map[string]any, bool, string, error) {
		s, pts := newScreen(t)
		p, ready := listening(pts, 30*time.Millisecond)
		type result struct {
			v   map[string]any
			ok  bool
			err error
		}
		done := make(chan result, 1)
		go func() {
			v, ok, err := p.Fill(context.Background(), bash("form"), fields)
			done <- result{v, ok, err}
		}()
		s.wait(t, "answer [1-5")
		<-ready
		for i := 0; i < len(keys); i += 2 {
			s.keys(keys[i])
			if keys[i+1] != "" {
				s.wait(t, keys[i+1])
			}
		}
		r := <-done
		return r.v, r.ok, s.text(), r.err
	}
	v, ok, text, err := fill("1\r", "n<U+202E>: ", "six\r", "not seven", "7\r", "2  blue [Enter: 2]: ", "\r", "note [Enter: leave it out]: ", "\r", "")
	if err != nil || !ok || v["n"] != 7 || v["colour"] != "2" || len(v) != 2 {
		t.Errorf("%v %v %v\n%s", v, ok, err, text)
	}
	if v, ok, _, err := fill("\r", ""); ok || err != nil || v != nil {
		t.Errorf("a no: %v %v %v", v, ok, err)
	}
	if _, ok, _, err := fill("1\r", ": ", "\r", "needs an answer", "\x03", ""); ok || err == nil {
		t.Errorf("an interrupt: %v %v", ok, err)
	}
}
