package mcp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
)

// What can only be refused is noise to a client that cannot ask its person, and
// useful to one that can; both hear when that changes. It can be called, and is
// then refused with what would allow it.
func TestPowerlessTools(t *testing.T) {
	denied := tool{"Fetch", host.KindFetch, func(context.Context, host.Call) (abi.Result, error) {
		return abi.Errorf("it was refused"), nil
	}}
	_, reg := bridge(t, denied)
	var without atomic.Bool
	var mu sync.Mutex
	news := make(chan struct{})
	b := bridgeOf(t, ServeOptions{Registry: reg,
		Powerless: func(x host.Tool) bool { return without.Load() && x.Spec().Name == "Fetch" },
		Changed:   func() <-chan struct{} { mu.Lock(); defer mu.Unlock(); return news },
	})
	say := func(now bool) {
		without.Store(now)
		mu.Lock()
		defer mu.Unlock()
		close(news)
		news = make(chan struct{})
	}
	s := web(t, b)
	//lint:ignore SA1019 the older era of the protocol is what this measures
	legacy := client.WithLegacyProtocolOnly()
	asks := client.WithElicitationHandler(&deciding{})
	type seat struct {
		name string
		c    *client.Client
		can  bool
		told *atomic.Int64
	}
	var all []seat
	for _, can := range []bool{true, false} {
		var opts []client.ClientOption
		if can {
			opts = append(opts, asks)
		}
		for name, c := range map[string]*client.Client{
			"stdio": serveStdio(t, b, append(opts, legacy)...), "HTTP": httpClient(t, s.URL, true, opts...), "stateless HTTP": httpClient(t, s.URL, false, opts...),
		} {
			told := new(atomic.Int64)
			c.OnNotification(func(n mcp.JSONRPCNotification) {
				if n.Method == mcp.MethodNotificationToolsListChanged {
					told.Add(1)
				}
			})
			all = append(all, seat{fmt.Sprintf("%s, asks: %v", name, can), c, can, told})
			if name == "stdio" { // one at a time: mcp-go knows them by one name
				check := func(now bool) {
					t.Helper()
					n := told.Load()
					say(now)
					wait(t, func() bool { return told.Load() > n })
					if got := sees(t, c); got == (now && !can) {
						t.Errorf("stdio, asks: %v: with nothing to do it by: %v, it is listed: %v", can, now, got)
					}
				}
				check(true)
				check(false)
				_ = c.Close()
				all = all[:len(all)-1]
			}
		}
	}
	for _, now := range []bool{true, false} {
		n := b.changes.now(listTools)
		say(now)
		wait(t, func() bool { return b.changes.now(listTools) > n })
		for _, a := range all {
			if got := sees(t, a.c); got == (now && !a.can) {
				t.Errorf("%s: with nothing to do it by: %v, it is listed: %v", a.name, now, got)
			}
			if r := callTool(t, a.c, "Fetch", `{}`); !strings.Contains(textOf(r), "elfhost grant add Fetch") && !strings.Contains(textOf(r), "refused") {
				t.Errorf("%s: %s", a.name, textOf(r))
			}
		}
	}
}

func sees(t *testing.T, c *client.Client) bool {
	t.Helper()
	list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
	if err != nil || len(list.Tools) < 2 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, x := range list.Tools {
		if x.Name == "Fetch" {
			return true
		}
	}
	return false
}

// In plan mode, and where nobody is there, asking helps nobody; what the mode
// does not offer is not listed at all. What a view does not show is not told.
func TestListedTools(t *testing.T) {
	ask := &Asker{Show: func(host.Ask) (Question, bool) { return Question{}, false }}
	for name, c := range map[string]struct {
		gate *host.Gate
		want string
	}{
		"ask": {&host.Gate{Approver: ask}, "Fetch Read Write"}, "nobody": {&host.Gate{}, "Read Write"},
		"plan": {&host.Gate{Mode: host.ModePlan, Approver: ask}, "Read"}, "auto": {&host.Gate{Mode: host.ModeAuto, Approver: ask}, "Read Write"},
	} {
		reg := host.New(host.Options{Gate: c.gate})
		if err := reg.Add(tool{"Read", host.KindRead, text("x")}, tool{"Write", host.KindEdit, text("x")}, tool{"Fetch", host.KindFetch, text("x")}); err != nil {
			t.Fatal(err)
		}
		b := bridgeOf(t, ServeOptions{Registry: reg.Filter(func(s host.Spec) bool { return s.Name != "Other" }), Powerless: func(x host.Tool) bool { return x.Spec().Name == "Fetch" }})
		list, err := httpClient(t, web(t, b).URL, false, client.WithElicitationHandler(&deciding{})).ListTools(t.Context(), mcp.ListToolsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range list.Tools {
			got = append(got, x.Name)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s", name, s)
		}
		n := b.changes.now(listTools)
		if b.show(); b.changes.now(listTools) != n {
			t.Errorf("%s: the same tools are told as others", name)
		}
	}
}
