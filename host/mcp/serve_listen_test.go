package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/host"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// rawLine is what of a message these tests look at.
type rawLine struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	} `json:"params"`
	Result *struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	} `json:"result"`
}

// short is a message in a few words: its method, or that it is an answer, and
// whose subscription's it is.
func short(text string) string {
	var l rawLine
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return "unreadable " + text
	}
	const key = "io.modelcontextprotocol/subscriptionId"
	if l.Result != nil {
		return strings.TrimSuffix(fmt.Sprintf("answer %s of %s", l.ID, l.Result.Meta[key]), " of ")
	}
	_, method, _ := strings.Cut(l.Method, "/")
	return method + " of " + string(l.Params.Meta[key])
}

// talk is a raw exchange: what a client sends, and what it hears in short.
type talk struct {
	t     *testing.T
	in    *io.PipeWriter
	hears <-chan string
	done  <-chan error
}

func talkTo(t *testing.T, b *Bridge) *talk {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- b.Serve(ctx, in, out)
		out.Close()
	}()
	t.Cleanup(func() { toServer.Close(); fromServer.Close(); cancel() })
	return &talk{t, toServer, shorts(fromServer), done}
}

// shorts reads messages, one a line, bare or as events.
func shorts(r io.Reader) <-chan string {
	out := make(chan string, 100)
	go func() {
		defer close(out)
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if text := strings.TrimPrefix(lines.Text(), "data: "); strings.HasPrefix(text, "{") {
				out <- short(text)
			}
		}
	}()
	return out
}

func (k *talk) says(text string) {
	k.t.Helper()
	if _, err := io.WriteString(k.in, text+"\n"); err != nil {
		k.t.Fatal(err)
	}
}

// next are the messages that come next, in any order where there are more.
func next(t *testing.T, hears <-chan string, want ...string) {
	t.Helper()
	left := map[string]int{}
	for _, w := range want {
		left[w]++
	}
	for range want {
		select {
		case got := <-hears:
			if left[got]--; left[got] < 0 {
				t.Fatalf("it hears %q, not %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("it never hears %q", want)
		}
	}
}

func request2026(id, method, params string) string {
	if params != "" {
		params = "," + params
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s%s}}`, id, method, modernMeta, params)
}

const wantsTools, wantsPrompts = `"notifications":{"toolsListChanged":true}`, `"notifications":{"promptsListChanged":true}`

func addTool(t *testing.T, reg *host.Registry, name string) {
	t.Helper()
	if err := reg.Add(tool{name, host.KindRead, text("x")}); err != nil {
		t.Fatal(err)
	}
}

// Over standard streams each subscription has its own filter and hears of what
// it asked for alone, under its own id; what changed between the list and the
// subscription is the first. Before it, nothing comes unasked.
func TestListenOverStdio(t *testing.T) {
	b, reg := bridge(t)
	k := talkTo(t, b)
	at := func() int { return b.changes.now(listTools) }
	k.says(request2026("1", "tools/list", ""))
	next(t, k.hears, "answer 1")
	n := at()
	addTool(t, reg, "Between")
	wait(t, func() bool { return at() > n })
	k.says(request2026("2", "subscriptions/listen", wantsTools))
	next(t, k.hears, "subscriptions/acknowledged of 2")
	next(t, k.hears, "tools/list_changed of 2")
	k.says(request2026(`"prompts"`, "subscriptions/listen", `"notifications":{"promptsListChanged":true,"toolsListChanged":false}`))
	next(t, k.hears, `answer "prompts" of "prompts"`, `subscriptions/acknowledged of "prompts"`) // there are none
	k.says(request2026("3", "subscriptions/listen", wantsTools))
	next(t, k.hears, "subscriptions/acknowledged of 3")
	next(t, k.hears, "tools/list_changed of 3") // it has not listed since
	addTool(t, reg, "After")
	next(t, k.hears, "tools/list_changed of 2", "tools/list_changed of 3")
	k.says(request2026("4", "tools/list", ""))
	next(t, k.hears, "answer 4")
	k.says(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	k.says(request2026("5", "subscriptions/listen", wantsTools))
	next(t, k.hears, "subscriptions/acknowledged of 5")
	addTool(t, reg, "Last")
	next(t, k.hears, "tools/list_changed of 3", "tools/list_changed of 5")
	k.in.Close()
	next(t, k.hears, "answer 3 of 3", "answer 5 of 5")
	if err := <-k.done; err != nil {
		t.Errorf("it ended with %v", err)
	}
	if s, ok := <-k.hears; ok {
		t.Errorf("then it hears %q", s)
	}
}

// A client that shook hands hears without a subscription, and has none.
func TestListenIsOfToday(t *testing.T) {
	b, reg := bridge(t)
	k := talkTo(t, b)
	k.says(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	next(t, k.hears, "answer 1")
	k.says(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	k.says(`{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{` + wantsTools + `}}`)
	next(t, k.hears, " of ") // an error
	addTool(t, reg, "New")
	next(t, k.hears, "tools/list_changed of ")
}

// Over HTTP a server cannot know what a client had, and from which server: a
// subscription begins with what may have changed. When the server stops, it says so.
func TestListenOverHTTP(t *testing.T) {
	b, reg := bridge(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Listen(ctx, l, HTTPOptions{Token: "letmein"}) }()
	defer stop()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.Addr().String()+"/mcp", strings.NewReader(request2026("7", "subscriptions/listen", wantsTools)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer letmein"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"subscriptions/listen"},
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.Header.Get("X-Accel-Buffering") != "no" {
		t.Error("a proxy may keep the events")
	}
	hears := shorts(answer.Body)
	next(t, hears, "subscriptions/acknowledged of 7")
	next(t, hears, "tools/list_changed of 7")
	addTool(t, reg, "New")
	next(t, hears, "tools/list_changed of 7")
	stop()
	next(t, hears, "answer 7 of 7")
	if s, ok := <-hears; ok {
		t.Errorf("then it hears %q", s)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// What may have been missed is what changed, or began, within a day, of what
// was asked for.
func TestWhatASubscriptionIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		age  time.Duration
		want string
	}{
		"a young server": {time.Minute, "subscriptions/acknowledged of 1 tools/list_changed of 1"},
		"an old one":     {sessionLife + time.Minute, "subscriptions/acknowledged of 1"},
	} {
		var all changes
		all.begin(listTools)
		all.begin(listPrompts)
		for i := range all.at {
			all.at[i] = time.Now().Add(-c.age)
		}
		var out strings.Builder
		s := &subscription{asking: &asking{ResponseWriter: written{&out}, q: &questions{}}, id: json.RawMessage("1"), changes: &all}
		s.say(":\n\n") // nothing goes before the acknowledgement
		for range 2 {
			if _, err := io.WriteString(s, eventHead+`{"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},`+wantsTools+`}}`+"\n\n"); err != nil {
				t.Fatal(err)
			}
			var got []string
			for m := range shorts(strings.NewReader(out.String())) {
				got = append(got, m)
			}
			if s := strings.Join(got, " "); s != c.want || strings.HasPrefix(out.String(), ":") {
				t.Errorf("%s: %q in %q", name, s, out.String())
			}
			c.want += " subscriptions/acknowledged of 1" // it is told once
		}
		s.say(":\n\n")
		if !strings.HasSuffix(out.String(), "\n\n:\n\n") {
			t.Errorf("%s: no sign of life", name)
		}
	}
}

// written is a ResponseWriter that keeps what is written.
type written struct{ *strings.Builder }

func (written) Header() http.Header { return http.Header{} }
func (written) WriteHeader(int)     {}
