package ironclaw

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/textproto"
	"net/url"
	"path"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/wasi"
)

// run is a host function: its parameters and its results are on the stack.
type run func(ctx context.Context, g *sandbox.Guest, s []uint64)

// functions lists what the module imports. An import that nothing here is for
// is an error, unless it is of WASI: there it ends the call when it is used,
// since toolchains link more than tools use.
func (f *format) functions() ([]sandbox.Func, error) {
	own := map[string]run{
		"log": f.log, "now-millis": nowMillis, "workspace-read": workspaceRead, "http-request": f.httpRequest,
		"tool-invoke": toolInvoke, "secret-exists": secretExists,
	}
	var out []sandbox.Func
	for _, im := range f.report.Imports {
		if im.Module == wasi.ModuleName { // the sandbox's own; it takes the place of an adapter
			continue
		}
		fn := sandbox.Func{Module: im.Module, Name: im.Name, Params: types(im.Type.Params), Results: types(im.Type.Results)}
		name, version := interfaceName(im.Module)
		switch {
		case name == hostInterface && version == f.Version && own[im.Name] != nil:
			fn.Run, fn.Cap = own[im.Name], caps[im.Name]
		case strings.HasPrefix(name, "wasi:"):
			w, known := wasiFuncs[name+" "+im.Name]
			fn.Run, fn.Local = w.run, w.local
			if !known && strings.HasPrefix(im.Name, "[resource-drop]") {
				fn.Run, fn.Local, known = func(context.Context, *sandbox.Guest, []uint64) {}, true, true
			}
			if !known {
				fn.Run = missing(im.Module + " " + im.Name)
			} else if err := w.fits(fn); err != nil {
				return nil, fmt.Errorf("%s %s: %w", im.Module, im.Name, err)
			}
		default:
			return nil, fmt.Errorf("the tool imports %s %s, which this host does not have", clip(im.Module), clip(im.Name))
		}
		if want, ok := signatures[im.Name]; ok && name == hostInterface && im.Type.String() != want {
			return nil, fmt.Errorf("the tool imports %s as %v, and it is %s", im.Name, im.Type, want)
		}
		out = append(out, fn)
	}
	return out, nil
}

// signatures are those of the host interface, lowered.
var signatures = map[string]string{
	"log": "(i32 i32 i32) -> ()", "now-millis": "() -> (i64)", "workspace-read": "(i32 i32 i32) -> ()",
	"http-request": "(i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) -> ()",
	"tool-invoke":  "(i32 i32 i32 i32 i32) -> ()", "secret-exists": "(i32 i32) -> (i32)",
}

// caps are what the host interface reaches.
var caps = map[string]abi.Capability{
	"workspace-read": abi.FSRead, "http-request": abi.NetHTTP, "tool-invoke": abi.ToolCall, "secret-exists": abi.Secret,
}

func types(b []byte) []api.ValueType {
	return append([]api.ValueType(nil), b...)
}

// stop ends the guest.
func stop(format string, args ...any) { panic(&sandbox.Ended{Err: fmt.Errorf(format, args...)}) }

func missing(name string) run {
	return func(context.Context, *sandbox.Guest, []uint64) {
		stop("the tool uses %s of WASI 0.2, which this host does not offer: %w", name, abi.ErrUnsupported)
	}
}

// bytesAt copies what a pointer and a length name.
func bytesAt(g *sandbox.Guest, ptr, n uint64) []byte {
	b, ok := g.Memory().Copy(uint32(ptr), uint32(n))
	if !ok {
		stop("the tool passed a pointer outside its memory: %w", abi.ErrFault)
	}
	return b
}

// give puts a value's bytes into the guest's memory, for it to own.
func give(ctx context.Context, g *sandbox.Guest, b []byte) (ptr, n uint32) {
	at, err := lower(ctx, g, b)
	if err != nil {
		stop("%w", err)
	}
	return uint32(at[0]), uint32(at[1])
}

// record is a value that is written to where the guest wants it.
type record []byte

func (r record) u8(off int, v byte)    { r[off] = v }
func (r record) u32(off int, v uint32) { binary.LittleEndian.PutUint32(r[off:], v) }
func (r record) u64(off int, v uint64) { binary.LittleEndian.PutUint64(r[off:], v) }

// str writes a string or a list of bytes.
func (r record) str(ctx context.Context, g *sandbox.Guest, off int, b []byte) {
	ptr, n := give(ctx, g, b)
	r.u32(off, ptr)
	r.u32(off+4, n)
}

// option writes an option<string>: none when s is empty.
func (r record) option(ctx context.Context, g *sandbox.Guest, off int, s string) {
	if s != "" {
		r.u8(off, 1)
		r.str(ctx, g, off+4, []byte(s))
	}
}

func (r record) write(g *sandbox.Guest, ptr uint64) {
	if !g.Memory().Write(uint32(ptr), r) {
		stop("the tool passed a pointer outside its memory: %w", abi.ErrFault)
	}
}

var levels = []string{"debug", "debug", "info", "warn", "error"}

func (f *format) log(ctx context.Context, g *sandbox.Guest, s []uint64) {
	level := levels[min(uint32(s[0]), uint32(len(levels)-1))]
	// A log that is full is no reason to end a tool.
	_, _, _ = g.Do(ctx, abi.ModuleLog, "write", map[string]string{"level": level}, bytesAt(g, s[1], s[2]))
}

func nowMillis(_ context.Context, g *sandbox.Guest, s []uint64) { s[0] = uint64(now(g).UnixMilli()) }

func workspaceRead(ctx context.Context, g *sandbox.Guest, s []uint64) {
	name := string(bytesAt(g, s[0], s[1]))
	r := make(record, 12)
	if name != "" && !path.IsAbs(name) && path.Clean("/"+name) == "/"+path.Clean(name) {
		if b, err := g.ReadFile(ctx, path.Join("/ws", name), g.Limits().BytesIn); err == nil {
			r.u8(0, 1)
			r.str(ctx, g, 4, []byte(strings.ToValidUTF8(string(b), "\uFFFD")))
		}
	}
	r.write(g, s[2])
}

func toolInvoke(ctx context.Context, g *sandbox.Guest, s []uint64) {
	alias, params := string(bytesAt(g, s[0], s[1])), bytesAt(g, s[2], s[3])
	r := make(record, 12)
	_, body, err := g.Do(ctx, abi.ModuleTool, "call", map[string]string{"tool": alias}, params)
	var res abi.Result
	if err == nil {
		err = json.Unmarshal(body, &res)
	}
	switch {
	case err != nil:
		r.u8(0, 1)
		r.str(ctx, g, 4, []byte(err.Error()))
	case res.IsError:
		r.u8(0, 1)
		r.str(ctx, g, 4, []byte(res.Text()))
	case res.Structured != nil:
		r.str(ctx, g, 4, res.Structured)
	default:
		r.str(ctx, g, 4, []byte(res.Text()))
	}
	r.write(g, s[4])
}

func secretExists(ctx context.Context, g *sandbox.Guest, s []uint64) {
	name := string(bytesAt(g, s[0], s[1]))
	s[0] = 0
	if _, _, err := g.Do(ctx, abi.ModuleSecret, "placeholder", map[string]string{"name": name}, nil); err == nil {
		s[0] = 1
	}
}

// refusal is a request that failed, in IronClaw's terms.
type refusal struct {
	kind          int
	code, message string
	sent          bool
}

// Numbers of kinds.
const (
	authRequired = 0
	badInput     = 1
	tooLarge     = 2
	denied       = 4
	client       = 5
	failed       = 6
)

// httpRequest serves http-request.
func (f *format) httpRequest(ctx context.Context, g *sandbox.Guest, s []uint64) {
	ret := s[11]
	q := request{
		Method: strings.ToUpper(string(bytesAt(g, s[0], s[1]))), URL: string(bytesAt(g, s[2], s[3])), Headers: map[string][]string{},
	}
	headers := bytesAt(g, s[4], s[5])
	var body []byte
	if uint32(s[6]) == 1 {
		body = bytesAt(g, s[7], s[8])
	}
	q.TimeoutMS = 30_000
	if uint32(s[9]) == 1 {
		q.TimeoutMS = int64(uint32(s[10]))
	}
	status, head, out, no := f.request(ctx, g, q, headers, body)
	if no == nil {
		r := make(record, 24)
		binary.LittleEndian.PutUint16(r[4:], uint16(status))
		r.str(ctx, g, 8, head)
		r.str(ctx, g, 16, out)
		r.write(g, ret)
		return
	}
	if !f.typed() {
		r := make(record, 24)
		r.u8(0, 1)
		r.str(ctx, g, 4, []byte(no.message))
		r.write(g, ret)
		return
	}
	r := make(record, 36)
	r.u8(0, 1)
	r.u8(4, byte(no.kind))
	r.option(ctx, g, 8, no.code)
	r.option(ctx, g, 20, no.message)
	if no.sent {
		r.u8(32, 1)
	}
	r.write(g, ret)
}

// request is the header of elf:net.http.
type request struct {
	Method    string              `json:"method"`
	URL       string              `json:"url"`
	Headers   map[string][]string `json:"headers"`
	TimeoutMS int64               `json:"timeout_ms"`
}

func (f *format) request(ctx context.Context, g *sandbox.Guest, q request, headers, body []byte) (status int, head, out []byte, no *refusal) {
	var own map[string]string
	if len(headers) > 0 {
		if err := json.Unmarshal(headers, &own); err != nil {
			return 0, nil, nil, &refusal{kind: badInput, message: "headers-json is no JSON object of strings"}
		}
	}
	for k, v := range own {
		switch key := textproto.CanonicalMIMEHeaderKey(k); key {
		case "Host", "Content-Length", "Connection", "Accept-Encoding", "Transfer-Encoding": // the transport's
		default:
			q.Headers[key] = []string{v}
		}
	}
	if no := inject(ctx, g, g.State.(*state).credentials, &q); no != nil {
		return 0, nil, nil, no
	}
	h, b, err := g.Do(ctx, abi.ModuleNet, "http", q, body)
	if err != nil {
		return 0, nil, nil, refused(err)
	}
	var r struct {
		Status    int                 `json:"status"`
		Headers   map[string][]string `json:"headers"`
		Truncated bool                `json:"truncated"`
	}
	if err := json.Unmarshal(h, &r); err != nil {
		return 0, nil, nil, &refusal{kind: failed, message: err.Error(), sent: true}
	}
	if r.Truncated {
		return 0, nil, nil, &refusal{kind: tooLarge, message: "the response is larger than the limit", sent: true}
	}
	flat := map[string]string{}
	for name, values := range r.Headers {
		flat[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	if head, err = json.Marshal(flat); err != nil {
		head = []byte("{}")
	}
	return r.Status, head, b, nil
}

func refused(err error) *refusal {
	no := &refusal{kind: failed, message: err.Error(), sent: true}
	switch {
	case errors.Is(err, abi.ErrDenied):
		no.kind, no.sent = denied, false
	case errors.Is(err, abi.ErrInvalid):
		no.kind, no.sent = badInput, false
	case errors.Is(err, abi.ErrTooLarge):
		no.kind = tooLarge
	case errors.Is(err, abi.ErrUnavailable):
		no.kind = client
	}
	return no
}

// inject puts the placeholders of the tool's credentials into a request to
// their audience. The host fills them in after its last check.
func inject(ctx context.Context, g *sandbox.Guest, list []Credential, q *request) *refusal {
	u, err := url.Parse(q.URL)
	if err != nil {
		return &refusal{kind: badInput, message: "the URL cannot be read"}
	}
	for _, c := range list {
		if !c.Audience.holds(u) {
			continue
		}
		_, b, err := g.Do(ctx, abi.ModuleSecret, "placeholder", map[string]string{"name": c.Handle}, nil)
		if err != nil {
			if c.required() {
				return &refusal{kind: authRequired, code: c.Handle,
					message: fmt.Sprintf("the secret %q is not set or not granted for %s: %v", c.Handle, c.Audience.host(), err)}
			}
			continue
		}
		value := c.Injection.Prefix + string(b)
		switch c.Injection.Type {
		case "query":
			p := u.Query()
			p.Set(c.Injection.Name, value)
			u.RawQuery = p.Encode()
			q.URL = u.String()
		case "path":
			if c.Injection.Placeholder != "" {
				q.URL = strings.ReplaceAll(q.URL, c.Injection.Placeholder, value)
			}
		default:
			q.Headers[textproto.CanonicalMIMEHeaderKey(c.Injection.Name)] = []string{value}
		}
	}
	return nil
}

// holds reports whether a URL goes to the target.
func (t Target) holds(u *url.URL) bool {
	scheme, port := t.Scheme, ""
	if scheme == "" {
		scheme = "https"
	}
	if t.Port != 0 {
		port = fmt.Sprint(t.Port)
	}
	host := strings.EqualFold(u.Hostname(), t.host())
	if suffix, ok := strings.CutPrefix(t.host(), "*."); ok {
		host = strings.HasSuffix(strings.ToLower(u.Hostname()), "."+strings.ToLower(suffix))
	}
	return strings.EqualFold(u.Scheme, scheme) && host && u.Port() == port
}
