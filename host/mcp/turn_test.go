package mcp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
)

// A turn that ends soon keeps the right to read; one that takes long, or says
// that it waits, gives it to another, once.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var passed atomic.Int64
		u := turn{pass: func() { passed.Add(1) }}
		defer u.stop()
		for range 100 {
			if n := u.begin(); !u.end(n) {
				t.Fatal("the right of a short turn is gone")
			}
			time.Sleep(longTurn / 10)
		}
		n := u.begin()
		time.Sleep(3 * longTurn)
		if u.end(n) || passed.Load() != 1 {
			t.Errorf("a long turn keeps the right; it was passed %d times", passed.Load())
		}
		n = u.begin()
		u.yield()
		u.yield()
		if u.end(n) || passed.Load() != 2 {
			t.Errorf("a turn that waits keeps the right; it was passed %d times", passed.Load())
		}
		time.Sleep(time.Minute) // the timer has ended
		n = u.begin()
		time.Sleep(3 * longTurn)
		if u.end(n) || passed.Load() != 3 {
			t.Errorf("after a rest, a long turn keeps the right; it was passed %d times", passed.Load())
		}
	})
}

// One goroutine's turn is not ended by another's.
func TestTurnOfAnother(t *testing.T) {
	u := turn{pass: func() {}}
	defer u.stop()
	old := u.begin()
	u.yield()
	if n := u.begin(); u.end(old) || !u.end(n) {
		t.Error("the turns were taken for each other")
	}
}

// dialogue speaks with a bridge, a line at a time.
type dialogue struct {
	t   *testing.T
	in  *io.PipeWriter
	out *bufio.Reader
}

func speak(t *testing.T, b *Bridge) *dialogue {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Serve(ctx, in, out) }()
	t.Cleanup(func() { cancel(); toServer.Close(); fromServer.Close(); <-done })
	l := &dialogue{t, toServer, bufio.NewReader(fromServer)}
	l.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	l.hear(`"id":0`)
	l.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return l
}

func (l *dialogue) say(text string) {
	l.t.Helper()
	if _, err := io.WriteString(l.in, text+"\n"); err != nil {
		l.t.Fatal(err)
	}
}

func (l *dialogue) hear(part string) string {
	l.t.Helper()
	line, err := l.out.ReadString('\n')
	if err != nil || !strings.Contains(line, part) {
		l.t.Fatalf("%q, %v; it should have %s", line, err, part)
	}
	return line
}

// While a call runs, the client is heard: its pings are answered, its
// cancellation is carried out.
func TestServeReadsOnBesideACall(t *testing.T) {
	ended := make(chan error, 1)
	b, _ := bridge(t, tool{"Grep", host.KindThink, func(ctx context.Context, _ host.Call) (abi.Result, error) {
		<-ctx.Done()
		ended <- ctx.Err()
		return abi.Result{}, ctx.Err()
	}})
	l := speak(t, b)
	for i := range 3 { // the first begins the timer, the others find it
		id := 10 * (i + 1)
		l.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"Grep","arguments":{}}}`, id))
		l.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id+1))
		l.hear(fmt.Sprintf(`"id":%d`, id+1))
		l.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
		if err := <-ended; err == nil {
			t.Error("the call was not cancelled")
		}
		l.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"Read","arguments":{}}}`, id+2))
		l.hear(fmt.Sprintf(`"id":%d`, id+2))
	}
}

// The answer goes before what a call leaves to do, and all of that is done
// before the next request.
func TestTheAnswerGoesFirst(t *testing.T) {
	answered := make(chan struct{})
	var cleaned atomic.Int64
	var early atomic.Bool
	var first sync.Once
	b, _ := bridge(t, tool{"Glob", host.KindThink, func(_ context.Context, c host.Call) (abi.Result, error) {
		was := cleaned.Load()
		c.Later(func() {
			first.Do(func() {
				select {
				case <-answered:
				case <-time.After(10 * time.Second):
					early.Store(true)
				}
			})
			cleaned.Add(1)
		})
		return abi.Text(fmt.Sprintf("after %d", was)), nil
	}})
	l := speak(t, b)
	call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"Glob","arguments":{}}}`
	l.say(fmt.Sprintf(call, 1))
	l.hear("after 0")
	close(answered)
	for i := range 5 {
		for cleaned.Load() < int64(i+1) {
			time.Sleep(time.Millisecond)
		}
		l.say(fmt.Sprintf(call, i+2))
		l.hear(fmt.Sprintf("after %d", i+1))
	}
	if early.Load() {
		t.Error("the cleaning went before the answer")
	}
}

// What comes after the end is done at once: a tool that was left behind.
func TestLaterThanLater(t *testing.T) {
	var l later
	n := 0
	l.add(func() { n++ })
	l.run()
	l.add(func() { n += 10 })
	l.run()
	if n != 11 {
		t.Error(n)
	}
}
