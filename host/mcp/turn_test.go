package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
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
				case <-time.After(time.Minute):
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

// A client that keeps as many requests under way as it may is never refused:
// who is answered makes room, whatever there is left to clean.
func TestAnAnswerMakesRoom(t *testing.T) {
	hold := make(chan struct{})
	b, _ := bridge(t, tool{"Glob", host.KindThink, func(_ context.Context, c host.Call) (abi.Result, error) {
		c.Later(func() { <-hold })
		return abi.Text("ok"), nil
	}})
	l := speak(t, b)
	defer close(hold)
	for i := range maxAtOnce + maxAtOnce/2 {
		l.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"Glob","arguments":{}}}`, i+1))
		l.hear(`"text":"ok"`)
	}
}

// TestServeUnderFire: pipelined requests in pieces of any size, some cancelled
// in the same write, some slow, some with things left to do. Each that was not
// cancelled is answered once, and nothing is left running.
func TestServeUnderFire(t *testing.T) {
	var begun, cleaned atomic.Int64
	b, _ := bridge(t, tool{"Glob", host.KindThink, func(ctx context.Context, c host.Call) (abi.Result, error) {
		if n := begun.Add(1); n%7 == 0 { // longer than a turn
			select {
			case <-time.After(2 * longTurn):
			case <-ctx.Done():
				return abi.Result{}, ctx.Err()
			}
		}
		c.Later(func() { cleaned.Add(1) })
		return abi.Text("ok"), nil
	}})
	before := runtime.NumGoroutine()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- b.Serve(context.Background(), in, out) }()
	l := &dialogue{t, toServer, bufio.NewReader(fromServer)}
	l.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	l.hear(`"id":0`)
	l.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)

	rnd := rand.New(rand.NewPCG(1, 2))
	id := 0
	for range 60 {
		var batch strings.Builder
		want := map[int]bool{}                // false: cancelled, and perhaps answered before
		for range 1 + rnd.IntN(maxAtOnce/2) { // those that were cancelled may still be there
			id++
			want[id] = true
			fmt.Fprintf(&batch, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"Glob","arguments":{}}}`+"\n", id)
			if rnd.IntN(9) == 0 {
				want[id] = false
				fmt.Fprintf(&batch, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", id)
			}
		}
		id++
		last := id
		ping := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", last)
		sent := make(chan error, 1)
		go func() {
			text := batch.String()
			for len(text) > 0 {
				n := min(1+rnd.IntN(400), len(text))
				if _, err := io.WriteString(toServer, text[:n]); err != nil {
					sent <- err
					return
				}
				text = text[n:]
			}
			sent <- nil
		}()
		left := 0
		for _, w := range want {
			if w {
				left++
			}
		}
		seen := map[int]bool{}
		hear := func() int {
			line, err := l.out.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			var a struct {
				ID    int             `json:"id"`
				Error json.RawMessage `json:"error"`
			}
			if err := json.Unmarshal([]byte(line), &a); err != nil || a.Error != nil || seen[a.ID] {
				t.Fatalf("%s, %v, again: %v", line, err, seen[a.ID])
			}
			seen[a.ID] = true
			return a.ID
		}
		for left > 0 {
			if want[hear()] {
				left--
			}
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		go io.WriteString(toServer, ping)
		for hear() != last { // answers that their cancellation came too late for
		}
	}
	toServer.Close()
	go io.Copy(io.Discard, fromServer)
	if err := <-served; err != nil {
		t.Error(err)
	}
	fromServer.Close()
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if cleaned.Load() == 0 {
		t.Error("nothing was left to do")
	}
}
