package mcp

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
)

// sample is one line of Prometheus' text format, and its labels as they stand.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

var (
	metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*`)
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*`)
)

// parseMetrics is the text format 0.0.4, read more strictly than Prometheus
// reads it: each family begins with its HELP and its TYPE, comes once, and has
// every series once; a counter is named as one.
func parseMetrics(page string) (all []sample, err error) {
	if !strings.HasSuffix(page, "\n") {
		return nil, fmt.Errorf("the last line has no end")
	}
	types, series := map[string]string{}, map[string]bool{}
	family, kind := "", ""
	for i, line := range strings.Split(strings.TrimSuffix(page, "\n"), "\n") {
		fail := func(what string) ([]sample, error) { return nil, fmt.Errorf("line %d: %s: %q", i+1, what, line) }
		if help, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, text, _ := strings.Cut(help, " ")
			if _, twice := types[name]; twice || metricName.FindString(name) != name || text == "" {
				return fail("a HELP that is none, or comes twice")
			}
			family, kind, types[name] = name, "", ""
			continue
		}
		if typed, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, k, _ := strings.Cut(typed, " ")
			if name != family || kind != "" || !slices.Contains([]string{"counter", "gauge", "summary"}, k) {
				return fail("a TYPE in the wrong place")
			}
			if (k == "counter") != strings.HasSuffix(name, "_total") {
				return fail("counters, and they alone, end in _total")
			}
			kind, types[name] = k, k
			continue
		}
		s, err := parseSample(line)
		if err != nil {
			return fail(err.Error())
		}
		own := s.name == family
		if kind == "summary" {
			own = s.name == family+"_sum" || s.name == family+"_count"
		}
		key := fmt.Sprint(s.name, s.labels)
		switch {
		case kind == "" || !own:
			return fail("a sample outside of its family")
		case series[key]:
			return fail("a series comes twice")
		case kind != "gauge" && s.value < 0:
			return fail("a count is negative")
		}
		series[key] = true
		all = append(all, s)
	}
	return all, nil
}

func parseSample(line string) (s sample, err error) {
	s.name, s.labels = metricName.FindString(line), map[string]string{}
	rest := line[len(s.name):]
	if s.name == "" {
		return s, fmt.Errorf("no name")
	}
	if inner, ok := strings.CutPrefix(rest, "{"); ok {
		for rest = inner; !strings.HasPrefix(rest, "}"); {
			name := labelName.FindString(rest)
			rest, ok = strings.CutPrefix(rest[len(name):], `="`)
			if name == "" || !ok {
				return s, fmt.Errorf("no label")
			}
			var value strings.Builder
			for {
				end := strings.IndexAny(rest, `\"`)
				if end < 0 || end+1 >= len(rest) {
					return s, fmt.Errorf("a value without an end")
				}
				value.WriteString(rest[:end])
				c, next := rest[end], rest[end+1]
				if c == '"' {
					rest = rest[end+1:]
					break
				}
				at := strings.IndexByte(`\"n`, next)
				if at < 0 {
					return s, fmt.Errorf("an escape that is none")
				}
				value.WriteByte("\\\"\n"[at])
				rest = rest[end+2:]
			}
			if _, twice := s.labels[name]; twice {
				return s, fmt.Errorf("a label comes twice")
			}
			s.labels[name] = value.String()
			rest = strings.TrimPrefix(rest, ",")
		}
		rest = rest[1:]
	}
	rest, ok := strings.CutPrefix(rest, " ")
	if !ok {
		return s, fmt.Errorf("no value")
	}
	s.value, err = strconv.ParseFloat(rest, 64)
	return s, err
}

// Whatever clients call, the page is one that Prometheus takes.
func TestMetrics(t *testing.T) {
	b, _ := bridge(t, tool{"search", host.KindSearch, func(context.Context, host.Call) (abi.Result, error) { return abi.Errorf("no"), nil }})
	s := web(t, b)
	scrape := func() []sample {
		t.Helper()
		_, page := post(t, s.URL+"/metrics", "", func(r *http.Request) { r.Method = http.MethodGet })
		all, err := parseMetrics(page)
		if err != nil {
			t.Fatalf("%v in\n%s", err, page)
		}
		return all
	}
	scrape() // with nothing in it
	c := httpClient(t, s.URL, true)
	callTool(t, c, "Read", `{}`)
	callTool(t, c, "Read", `{}`)
	callTool(t, c, "search", `{}`)
	callTool(t, c, "Write", `{}`)
	post(t, s.URL+"/mcp", "", func(r *http.Request) { r.Header.Del("Authorization") })
	// Names that a server or a plugin might bring, some of which show the same.
	for _, name := range []string{"a\"b", `a\b`, "a\nb", "a\tb", "e\u0301", "\xff", "{x=\"1\"} 2", "x\u200b", "x\u200d", strings.Repeat("y", 200) + "1", strings.Repeat("y", 200) + "2", ""} {
		b.stats.add(name, "ok", time.Millisecond)
	}
	for i := range maxSeries + 10 {
		b.stats.add(fmt.Sprint("many", i), "ok", time.Microsecond)
	}
	all := scrape()
	value := func(name string, labels ...string) float64 {
		t.Helper()
		for _, s := range all {
			hit := s.name == name && len(s.labels) == len(labels)/2
			for i := 0; hit && i < len(labels); i += 2 {
				hit = s.labels[labels[i]] == labels[i+1]
			}
			if hit {
				return s.value
			}
		}
		t.Errorf("there is no %s %q", name, labels)
		return 0
	}
	const count = "elfhost_mcp_call_seconds_count"
	for _, c := range []struct {
		tool, outcome string
		want          float64
	}{{"Read", "ok", 2}, {"search", "error", 1}, {"Write", "denied", 1}, {`a"b`, "ok", 1}, {`a\b`, "ok", 1}} {
		if got := value(count, "tool", c.tool, "outcome", c.outcome); got != c.want {
			t.Errorf("%s, %s: %v calls", c.tool, c.outcome, got)
		}
	}
	if got := value("elfhost_mcp_refused_total", "status", "401"); got != 1 {
		t.Errorf("%v refused", got)
	}
	if value("elfhost_mcp_messages_total") < 5 || value("elfhost_mcp_calls_running") != 0 {
		t.Error("the messages are not counted")
	}
	if got := value(count, "tool", "other", "outcome", "ok"); got < 10 {
		t.Errorf("%v calls beyond the series", got)
	}
}

// The names of tools that do not exist make no series of their own.
func TestUnknownToolsAreOneSeries(t *testing.T) {
	b, _ := bridge(t)
	for i := range 50 {
		b.invoke(t.Context(), request{tool: fmt.Sprint("made-up-", i), peer: &peer{}})
	}
	if got := b.stats.calls[[2]string{"(unknown)", "error"}]; len(b.stats.calls) != 1 || got == nil || got.n != 50 {
		t.Errorf("%d series", len(b.stats.calls))
	}
}

// The parser of this test refuses what Prometheus refuses.
func TestMetricsParser(t *testing.T) {
	const head = "# HELP a_total It.\n# TYPE a_total counter\n"
	for _, bad := range []string{
		head + "a_total 1", head + "a_total x\n", head + "b_total 1\n", head + "a_total{l=\"x\"y\"} 1\n", head + "a_total{l=\"\\t\"} 1\n", head + "a_total{l=\"x} 1\n",
		head + "a_total 1\na_total 2\n", head + head, "a_total 1\n", "# TYPE a_total counter\n", "# HELP a It.\n# TYPE a counter\n", head + "a_total{l=\"a\nb\"} 1\n", head + "\n",
	} {
		if got, err := parseMetrics(bad); err == nil {
			t.Errorf("%q was taken: %v", bad, got)
		}
	}
}
