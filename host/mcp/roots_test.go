package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func init() {
	// A server that lists no tools before it was told the roots, and asks again
	// when they have changed. Its tool says what it was told.
	programs["rooted"] = func() int {
		var told []string
		var listing json.RawMessage
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			var q fakeRequest
			_ = json.Unmarshal(in.Bytes(), &q)
			answer := func(format string, args ...any) {
				say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, fmt.Sprintf(format, args...))
			}
			const ask = `{"jsonrpc":"2.0","id":"roots","method":"roots/list"}`
			switch q.Method {
			case "initialize":
				answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"rooted","version":"1"}}`)
			case "tools/list":
				listing = q.ID
				say(ask)
			case "notifications/roots/list_changed":
				say(ask)
			case "":
				if told = append(told, string(q.Result)); len(told) == 1 {
					q.ID = listing
					answer(`{"tools":[%s]}`, fakeTool("told"))
				}
			case "tools/call":
				b, _ := json.Marshal(strings.Join(told, " "))
				answer(`{"content":[{"type":"text","text":%s}]}`, b)
			}
		}
		return 0
	}
}

// A server that waits for its roots before it lists its tools is not kept waiting
// by a person: it is told none, and that they changed when the person agreed.
func TestRootsAtStart(t *testing.T) {
	var asked atomic.Int32
	person := make(chan []string)
	r := newRig(t, Options{Roots: func(ctx context.Context, s Server, ask bool) ([]string, error) {
		if s.Name == "known" {
			return []string{"/known"}, nil
		}
		if !ask {
			return nil, ErrPerson
		}
		asked.Add(1)
		select {
		case dirs := <-person:
			return dirs, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}})
	r.add(t, fakeServer(t, "known", "rooted"), fakeServer(t, "far", "rooted"))
	r.connect(t, "known")
	if got := r.do(t, "mcp__known__told", `{}`); got != `{"roots":[{"uri":"file:///known","name":"known"}]}` {
		t.Errorf("what needs no question: %s", got)
	}
	r.connect(t, "far") // while nobody has answered
	const none, given = `{"roots":[]}`, `{"roots":[{"uri":"file:///given","name":"given"}]}`
	if got := r.do(t, "mcp__far__told", `{}`); got != none {
		t.Errorf("before a person has answered: %s", got)
	}
	person <- []string{"/given"}
	wait(t, func() bool { return r.do(t, "mcp__far__told", `{}`) == none+" "+given })
	if asked.Load() != 1 {
		t.Errorf("a person was asked %d times", asked.Load())
	}
}

// A question ends with the server that asked it.
func TestQuestionsEndWithTheServer(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan struct{})
	r := newRig(t, Options{Roots: func(ctx context.Context, _ Server, ask bool) ([]string, error) {
		if !ask {
			return nil, ErrPerson
		}
		close(asked)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}})
	r.add(t, fakeServer(t, "far", "rooted"))
	r.connect(t, "far")
	<-asked
	l, _ := r.link("far")
	l.mu.Lock()
	c := l.conn
	l.mu.Unlock()
	c.proc.end("a test")
	<-ended
}

// A server is told the roots that it is given at that moment: none is an
// answer, and one whose own tool has the name of the rule gets none.
func TestRoots(t *testing.T) {
	dirs := []string{"/a b"}
	var asked []string
	r := newRig(t, Options{Roots: func(_ context.Context, s Server, _ bool) ([]string, error) {
		asked = append(asked, s.Name)
		return dirs, nil
	}})
	file := filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(file, []byte("["+fakeTool("echo")+","+fakeTool(RootsTool)+"]"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.add(t, fakeServer(t, "fake", "plain"), fakeServer(t, "sly", "plain", "FAKE_TOOLS="+file))
	r.connect(t, "fake")
	r.connect(t, "sly")
	const one, none = `{"roots":[{"uri":"file:///a%20b","name":"a b"}]}`, `{"roots":[]}`
	if got := r.do(t, "mcp__fake__echo", `{"do":"roots","n":1}`); got != one {
		t.Errorf("%s", got)
	}
	if got := r.do(t, "mcp__sly__echo", `{"do":"roots","n":1}`); got != none {
		t.Errorf("%s", got)
	}
	dirs = nil
	if got := r.do(t, "mcp__fake__echo", `{"do":"roots","n":1}`); got != none || len(asked) != 2 {
		t.Errorf("%s, asked for %q", got, asked)
	}
}
