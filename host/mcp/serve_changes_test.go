package mcp

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
)

const listing = `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`

// stream opens a session's stream, and gives the methods of what comes on it.
func (s *session) stream() <-chan string {
	s.t.Helper()
	r := s.send(http.MethodGet, "")
	if r.StatusCode != http.StatusOK {
		s.t.Fatalf("the stream: status %d", r.StatusCode)
	}
	out := make(chan string, 100)
	go func() {
		defer r.Body.Close()
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			if _, after, ok := strings.Cut(lines.Text(), `"method":"`); ok {
				method, _, _ := strings.Cut(after, `"`)
				out <- method
			}
		}
	}()
	return out
}

func (s *session) hears(stream <-chan string, want string) {
	s.t.Helper()
	select {
	case got := <-stream:
		if got != want {
			s.t.Errorf("it hears %q, not %q", got, want)
		}
	case <-time.After(time.Minute):
		s.t.Errorf("it never hears %q", want)
	}
}

// A change between a list and the stream is told when that opens; a stream to
// a client that missed nothing begins with what is new.
func TestWhatAStreamMissed(t *testing.T) {
	const tools, prompts = "notifications/tools/list_changed", "notifications/prompts/list_changed"
	memory := new(local)
	var reg [2]*host.Registry
	var all [2]*session
	var news [2]chan struct{}
	var offered atomic.Bool
	for i := range reg {
		reg[i] = askingRegistry(t)
		news[i] = make(chan struct{}, 1)
		b := bridgeOf(t, ServeOptions{Registry: reg[i], Shared: memory, Changed: func() <-chan struct{} { return news[i] },
			Offers: func(context.Context) (out []Prompt, _ []Resource) {
				if offered.Load() {
					out = append(out, Prompt{Name: "review"})
				}
				return out, nil
			}})
		all[i] = &session{t: t, url: web(t, b).URL}
	}
	add := func(i, n int) {
		t.Helper()
		if err := reg[i].Add(tool{fmt.Sprintf("Tool%d", n), host.KindRead, text("x")}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(s *session) int {
		t.Helper()
		var n int
		wait(t, func() bool {
			_, body := post(t, s.url+"/mcp", listing, func(r *http.Request) { r.Header.Set("Mcp-Session-Id", s.id) })
			n = strings.Count(body, `"name":"Tool`)
			return n > 0
		})
		return n
	}
	one := begin(t, all[0].url)
	other := begin(t, all[0].url)
	one.status(http.MethodPost, listing)
	add(0, 1)
	count(other) // the server has it, and the other one knows
	offered.Store(true)
	news[0] <- struct{}{}
	wait(t, func() bool {
		_, body := post(t, one.url+"/mcp", `{"jsonrpc":"2.0","id":6,"method":"prompts/list"}`, func(r *http.Request) { r.Header.Set("Mcp-Session-Id", other.id) })
		return strings.Contains(body, "review")
	})
	stream := one.stream()
	one.hears(stream, tools)
	one.hears(stream, prompts)
	quiet := other.stream() // this client has the lists as they are
	offered.Store(false)
	news[0] <- struct{}{}
	one.hears(stream, prompts)
	other.hears(quiet, prompts)
	add(0, 2)
	one.hears(stream, tools)
	other.hears(quiet, tools)

	// A server that did not begin the session can tell by what was listed there,
	// or by the session's age.
	add(1, 1)
	count(begin(t, all[1].url))
	there := &session{t: t, url: all[1].url, id: one.id}
	there.hears(there.stream(), tools)
	third := &session{t: t, url: all[1].url, id: begin(t, all[0].url).id}
	count(third)
	late := third.stream() // it has the tools as they are
	add(1, 2)
	third.hears(late, tools)
	if len(late) > 0 {
		t.Errorf("then it hears %q", <-late)
	}
}

// What a client missed is told by what it had, and by when its session was made.
func TestMissedLists(t *testing.T) {
	var c changes
	c.begin(listTools)
	c.begin(listPrompts)
	start := c.at[listTools]
	old, young := start.Add(-time.Hour), start.Add(time.Hour)
	for name, k := range map[string]struct {
		changed bool
		had     [lists]int
		made    time.Time
		want    int
	}{
		"made after the start":                     {false, [lists]int{}, young, 0},
		"made in its very second":                  {false, [lists]int{}, start, 0},
		"made before it, by another server":        {false, [lists]int{}, old, 2},
		"it listed the tools":                      {false, [lists]int{listTools: 1}, old, 1},
		"it listed them, and they changed":         {true, [lists]int{listTools: 1}, young, 1},
		"it listed them after they changed":        {true, [lists]int{listTools: 2}, old, 1},
		"made in the second in which they changed": {true, [lists]int{}, start, 1},
	} {
		c.n[listTools] = 1
		if k.changed {
			c.n[listTools] = 2
		}
		if got := c.missed(k.had, k.made); len(got) != k.want {
			t.Errorf("%s: missed %q", name, got)
		}
	}
}

// Skills and commands that come without any tool are told, too.
func TestOffersAlone(t *testing.T) {
	var with atomic.Bool
	news := make(chan struct{}, 1)
	_, reg := bridge(t)
	b := bridgeOf(t, ServeOptions{Registry: reg,
		Changed: func() <-chan struct{} { return news },
		Offers: func(context.Context) ([]Prompt, []Resource) {
			if !with.Load() {
				return nil, nil
			}
			return []Prompt{{Name: "review"}}, []Resource{{URI: "skill://review/SKILL.md", Name: "review", Read: func(context.Context) (abi.Resource, error) { return abi.Resource{}, nil }}}
		}})
	//lint:ignore SA1019 the older era of the protocol is what this measures
	c := serveStdio(t, b, client.WithLegacyProtocolOnly())
	var mu sync.Mutex
	seen := map[string]int{}
	c.OnNotification(func(n mcp.JSONRPCNotification) {
		mu.Lock()
		defer mu.Unlock()
		seen[n.Method]++
	})
	with.Store(true)
	news <- struct{}{}
	wait(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return seen[mcp.MethodNotificationPromptsListChanged] > 0 && seen[mcp.MethodNotificationResourcesListChanged] > 0
	})
	mu.Lock()
	defer mu.Unlock()
	if n := seen[mcp.MethodNotificationToolsListChanged]; n > 0 {
		t.Errorf("%d changes of the tools are told, and there are none", n)
	}
}
