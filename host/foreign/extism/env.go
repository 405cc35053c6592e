package extism

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox"
)

// Levels as get_log_level counts them.
const levelInfo = 2

// functions lists what plugins may import beside WASI.
func (p *plugin) functions() []sandbox.Func {
	type types = []api.ValueType
	one, two := types{i64}, types{i64, i64}
	host := func(name string, params, results types, run func(context.Context, *sandbox.Guest, []uint64)) sandbox.Func {
		return sandbox.Func{Module: EnvModule, Name: name, Params: params, Results: results, Run: run}
	}
	request := host("http_request", two, one, p.httpRequest)
	request.Cap = abi.NetHTTP
	list := append(kernelFunctions(), request,
		host("config_get", one, one, p.configGet),
		host("var_get", one, one, p.varGet),
		host("var_set", two, nil, p.varSet),
		local("http_status_code", nil, types{i32}, func(k *kernel, s []uint64) { s[0] = uint64(uint32(k.status)) }),
		local("http_headers", nil, one, func(k *kernel, s []uint64) { s[0] = k.write(k.headers) }),
		local("get_log_level", nil, types{i32}, func(_ *kernel, s []uint64) { s[0] = levelInfo }),
	)
	for name, level := range map[string]string{"trace": "debug", "debug": "debug", "info": "info", "warn": "warn", "error": "error"} {
		list = append(list, host("log_"+name, one, nil, func(ctx context.Context, g *sandbox.Guest, s []uint64) {
			text := Read(g, s[0])
			Free(g, s[0])
			// A log that is full is no reason to end a plugin.
			_, _, _ = g.Do(ctx, abi.ModuleLog, "write", map[string]string{"level": level}, text)
		}))
	}
	// Probes of an instrumented module: nobody listens.
	for _, name := range []string{"instrument_enter", "instrument_exit", "instrument_memory_grow"} {
		list = append(list, sandbox.Func{Module: "dylibso_observe", Name: name, Params: types{i32}, Local: true,
			Run: func(context.Context, *sandbox.Guest, []uint64) {}})
	}
	if p.Kind == Server {
		list = append(list, p.serverFunctions()...)
	}
	for _, l := range p.Libraries {
		list = append(list, l.functions()...)
	}
	return append(list, p.Functions...)
}

// fail ends the guest.
func fail(format string, args ...any) { panic(&sandbox.Ended{Err: fmt.Errorf(format, args...)}) }

// room is write, and the end of a guest that has no room for an answer.
func room(g *sandbox.Guest, b []byte) uint64 {
	off := Write(g, b)
	if off == 0 && len(b) > 0 {
		fail("the plugin's memory has no room for an answer of %d bytes: %w", len(b), abi.ErrLimit)
	}
	return off
}

func (p *plugin) configGet(_ context.Context, g *sandbox.Guest, s []uint64) {
	v, ok := p.Config[string(Read(g, s[0]))]
	if !ok {
		s[0] = 0
		return
	}
	s[0] = room(g, []byte(v))
}

// request is what http_request gets.
type request struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Method  string            `json:"method"`
}

// response is the part of elf:net's answer that Extism knows.
type response struct {
	Status    int                 `json:"status"`
	Headers   map[string][]string `json:"headers"`
	Truncated bool                `json:"truncated"`
}

// ownHeaders are the transport's. Extism's hosts ignore most of them; a request
// that names one is sent without it.
var ownHeaders = []string{"Host", "Content-Length", "Connection", "Accept-Encoding", "Transfer-Encoding",
	"Te", "Trailer", "Upgrade", "Proxy-Authorization", "Proxy-Connection", "Keep-Alive"}

func (p *plugin) httpRequest(ctx context.Context, g *sandbox.Guest, s []uint64) {
	k := of(g)
	k.status, k.headers = 0, nil
	text, body := Read(g, s[0]), Read(g, s[1])
	Free(g, s[0])
	Free(g, s[1])
	var q request
	if err := json.Unmarshal(text, &q); err != nil {
		fail("the plugin's HTTP request is no acceptable JSON: %w", err)
	}
	if !p.allows(q.URL) {
		fail("HTTP request to '%s' is not allowed: the plugin's own allowed_hosts do not name the host", q.URL)
	}
	if q.Method = strings.ToUpper(q.Method); q.Method == "" {
		q.Method = http.MethodGet
	}
	headers := map[string][]string{}
	for name, v := range q.Headers {
		if key := textproto.CanonicalMIMEHeaderKey(name); !slices.Contains(ownHeaders, key) {
			headers[key] = []string{v}
		}
	}
	most := limit(p.MaxResponse, defaultResponse)
	head, out, err := g.Do(ctx, abi.ModuleNet, "http", map[string]any{
		"method": q.Method, "url": q.URL, "headers": headers, "max_bytes": max(most, 0),
	}, body)
	if errors.Is(err, abi.ErrDenied) {
		fail("HTTP request to '%s' is not allowed: %w", q.URL, err)
	}
	if err != nil {
		fail("HTTP request to '%s': %w", q.URL, err)
	}
	var r response
	if err := json.Unmarshal(head, &r); err != nil {
		fail("HTTP request to '%s': %w", q.URL, err)
	}
	if r.Truncated || int64(len(out)) > most {
		fail("the response of '%s' is larger than the plugin's limits allow: %w", q.URL, abi.ErrTooLarge)
	}
	k.status, k.headers = int32(r.Status), flat(r.Headers)
	s[0] = room(g, out)
}

// flat writes headers as Extism does: lower-case names, values joined.
func flat(h map[string][]string) []byte {
	m := map[string]string{}
	for name, values := range h {
		m[strings.ToLower(name)] = strings.Join(values, ",")
	}
	b, err := json.Marshal(m)
	if err != nil {
		return []byte("{}")
	}
	return b
}

// allows holds a URL against the plugin's own list, as Extism does: the host
// alone, without its port.
func (p *plugin) allows(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	host := u.Hostname()
	return slices.ContainsFunc(p.hosts, func(pattern string) bool {
		ok, _ := path.Match(pattern, host)
		return ok || pattern == host
	})
}
