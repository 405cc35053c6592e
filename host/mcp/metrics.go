package mcp

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// stats count what a bridge served. The zero value is ready.
type stats struct {
	running  atomic.Int64
	messages atomic.Int64

	mu      sync.Mutex
	calls   map[[2]string]*tally // by tool and outcome
	refused map[int]int64        // by HTTP status
}

type tally struct {
	n    int64
	took time.Duration
}

// maxSeries bounds the tools that are counted apart: clients choose the names.
const maxSeries = 2000

func (s *stats) add(tool, outcome string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[[2]string]*tally{}
	}
	tool, _ = told("", tool, 128) // here: two names that show the same are one series
	key := [2]string{tool, outcome}
	t := s.calls[key]
	if t == nil && len(s.calls) >= maxSeries {
		key[0] = "other"
		t = s.calls[key]
	}
	if t == nil {
		t = &tally{}
		s.calls[key] = t
	}
	t.n++
	t.took += took
}

func (s *stats) refuse(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = map[int]int64{}
	}
	s.refused[status]++
}

// metrics is the page in Prometheus' text format.
func (b *Bridge) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	s := &b.stats
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(w, "# HELP elfhost_mcp_messages_total Messages taken from MCP clients.\n# TYPE elfhost_mcp_messages_total counter\nelfhost_mcp_messages_total %d\n", s.messages.Load())
	fmt.Fprintf(w, "# HELP elfhost_mcp_calls_running Tool calls that run now.\n# TYPE elfhost_mcp_calls_running gauge\nelfhost_mcp_calls_running %d\n", s.running.Load())
	fmt.Fprint(w, "# HELP elfhost_mcp_refused_total HTTP requests refused before they were read.\n# TYPE elfhost_mcp_refused_total counter\n")
	for _, status := range slices.Sorted(maps.Keys(s.refused)) {
		fmt.Fprintf(w, "elfhost_mcp_refused_total{status=\"%d\"} %d\n", status, s.refused[status])
	}
	keys := slices.SortedFunc(maps.Keys(s.calls), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	fmt.Fprint(w, "# HELP elfhost_mcp_call_seconds Tool calls of MCP clients, by outcome.\n# TYPE elfhost_mcp_call_seconds summary\n")
	for _, k := range keys {
		l := fmt.Sprintf("{tool=\"%s\",outcome=\"%s\"}", label(k[0]), k[1])
		fmt.Fprintf(w, "elfhost_mcp_call_seconds_sum%s %g\nelfhost_mcp_call_seconds_count%s %d\n", l, s.calls[k].took.Seconds(), l, s.calls[k].n)
	}
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// label is a label's value as the format has it.
func label(s string) string { return escapes.Replace(s) }
