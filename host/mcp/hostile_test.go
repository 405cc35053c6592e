package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"
)

func init() {
	// A server that announces new tools all the time, each time others, until its
	// input ends. It says on standard error how often it was asked for them.
	programs["restless"] = func() int {
		listed := 0
		every, _ := time.ParseDuration(os.Getenv("FAKE_EVERY"))
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			var q fakeRequest
			_ = json.Unmarshal(in.Bytes(), &q)
			switch q.Method {
			case "initialize":
				say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"restless","version":"1"}}}`, q.ID)
			case "tools/list":
				if listed++; listed == 1 {
					go func() {
						for {
							say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
							time.Sleep(every)
						}
					}()
				}
				say(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s,%s]}}`, q.ID, fakeTool("echo"), fakeTool(fmt.Sprintf("new%d", listed)))
				fmt.Fprintf(os.Stderr, "listed %d;\n", listed)
			}
		}
		return 0
	}
}

// A server that announces changes without end is heard all the same, ever more
// seldom, and wears nobody down with questions: they come one at a time, and a
// few of them.
func TestMC04Restless(t *testing.T) {
	var asked, at atomic.Int32
	r := newRig(t, Options{Consent: func(context.Context, Change) (bool, error) {
		if at.Add(1) > 1 {
			t.Error("two questions at once")
		}
		defer at.Add(-1)
		asked.Add(1)
		return false, nil
	}})
	r.add(t, fakeServer(t, "restless", "restless", "FAKE_EVERY=100ms"))
	began := time.Now()
	r.connect(t, "restless")
	wait(t, func() bool { return r.logged("listed 8;") })
	// 80 ms between the second and the third, then each time twice as long: 5 s.
	if took := time.Since(began); took < 4*time.Second {
		t.Errorf("eight lists in %s", took)
	}
	wait(t, func() bool { return asked.Load() >= maxUnheard && r.logged("changes its tools again and again") })
	if asked.Load() != maxUnheard {
		t.Errorf("a person was asked %d times", asked.Load())
	}
}

// Announcements that leave no pause do not put the list off for ever.
func TestMC04NoPause(t *testing.T) {
	r := newRig(t, Options{})
	r.add(t, fakeServer(t, "restless", "restless", "FAKE_EVERY=1ms"))
	r.connect(t, "restless")
	wait(t, func() bool { return r.logged("listed 3;") })
}

// What a server says of its failure is kept short, and shows what it holds.
func TestErrorsAreCleaned(t *testing.T) {
	r := newRig(t, Options{})
	r.add(t, fakeServer(t, "angry", "angry"))
	err := r.Connect(context.Background(), "angry")
	if err == nil || !strings.Contains(err.Error(), "[31mno no") || strings.Contains(err.Error(), "\x1b") || len(err.Error()) > 2*maxWords {
		t.Errorf("%.100q of %d bytes", err, len(fmt.Sprint(err)))
	}
}

// Bytes that are no UTF-8 do not come through in any part of a result.
func TestNoUTF8(t *testing.T) {
	r := newRig(t, Options{})
	r.add(t, fakeServer(t, "fake", "plain"))
	r.connect(t, "fake")
	res := r.call(context.Background(), "mcp__fake__echo", `{"do":"latin"}`)
	if res.IsError || res.Text() != "caf\uFFFD" || !utf8.Valid(res.Structured) || !strings.Contains(string(res.Structured), "caf\uFFFD") {
		t.Errorf("%q %q", res.Text(), res.Structured)
	}
}

// A prompt whose arguments cannot be shown as they are is not offered.
func TestPromptArguments(t *testing.T) {
	var raws []json.RawMessage
	for _, name := range []string{"file name", "größe", "", "a\nb", "a\x1b[31m", "a\U000E0041", strings.Repeat("x", 101)} {
		b, _ := json.Marshal(map[string]any{"name": "p" + fmt.Sprint(len(raws)), "arguments": []any{map[string]any{"name": name}}})
		raws = append(raws, b)
	}
	var got []string
	for _, p := range prompts("s", raws) {
		got = append(got, p.Name)
	}
	if fmt.Sprint(got) != "[mcp__s__p0 mcp__s__p1]" {
		t.Errorf("%q", got)
	}
}

// A server that reads nothing gets no answers to what it asks without end, and
// that is no failure of whoever writes them; a request fails.
func TestMC09AnswersUnread(t *testing.T) {
	o := newOutbox()
	fill := []byte(`{"jsonrpc":"2.0","id":1,"method":"x","params":"` + strings.Repeat("x", maxUnread) + `"}` + "\n")
	if n, err := o.Write(fill); err != nil || n != len(fill) {
		t.Fatal(n, err)
	}
	answer := []byte(`{"jsonrpc":"2.0","id":2,"result":{"method":"x"}}` + "\n")
	if n, err := o.Write(answer); err != nil || n != len(answer) || o.buf.Len() != len(fill) {
		t.Errorf("%d, %v, %d bytes wait", n, err, o.buf.Len())
	}
	if _, err := o.Write([]byte(`{"jsonrpc":"2.0","id":3,"method":"y"}` + "\n")); err == nil {
		t.Error("a request that nobody reads is no failure")
	}
}

// A server over HTTP gets so many answers in a while, and no more connections.
func TestRequestFlood(t *testing.T) {
	c := &conn{requests: limiter{most: 2, every: time.Hour}}
	for i, message := range []string{
		`{"id":1,"method":"ping"}`, `{"id":null,"method":"x"}`, `{"id":7,"result":{}}`, `{"method":"x"}`, `{"id":"1","method":"roots/list"}`, `no`,
	} {
		if c.tooMany([]byte(message)) {
			t.Errorf("%d: %s is not let through", i, message)
		}
	}
	if !c.tooMany([]byte(`{"id":3,"method":"ping"}`)) || c.tooMany([]byte(`{"id":7,"result":{}}`)) {
		t.Error("a third request is let through, or an answer is not")
	}
}

// A list that comes after the end is not taken in.
func TestNothingAfterTheEnd(t *testing.T) {
	pins := t.TempDir()
	r := newRig(t, Options{Pins: pins})
	r.add(t, fakeServer(t, "fake", "plain"))
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	l, _ := r.link("fake")
	defs, refused := defineAll("fake", []json.RawMessage{json.RawMessage(fakeTool("late"))}, l.wants)
	l.settle(defs, refused, nil, false)
	if kept, err := os.ReadDir(pins); err != nil || len(kept) > 0 || r.reg.Has("mcp__fake__late") {
		t.Errorf("%v, %v", kept, err)
	}
}
