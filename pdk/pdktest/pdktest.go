// Package pdktest runs a plugin's tools natively, under go test, with a host
// made of ordinary Go: real HTTP, a model that is a function, a workspace in a
// temporary folder. Requests take the same encoding as in a guest.
//
//	func TestHello(t *testing.T) {
//		h := pdktest.New(t)
//		r := h.Call("hello", `{"name":"Ada"}`)
//		if r.Text() != "Hello, Ada!" {
//			t.Errorf("got %q", r.Text())
//		}
//	}
//
// It grants everything that it was given and knows no limits; how a plugin
// does under a person's grants shows in elfhost call.
package pdktest

import (
	"context"
	"encoding/json"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/pdk"
)

// Host is the host of one test. Set its fields before the first call. What is
// not set is denied or unavailable, HTTP excepted.
type Host struct {
	HTTP    http.RoundTripper // nil: the real network
	Model   func(context.Context, pdk.Prompt) (pdk.Completion, error)
	Exec    func(context.Context, pdk.Command) (pdk.Finished, error)
	Tools   map[string]func(ctx context.Context, args json.RawMessage) (abi.Result, error)
	Env     map[string]string
	Secrets map[string]string // go into requests in place of their placeholders
	KV      map[string][]byte
	Dir     string // is /ws

	t    testing.TB
	mu   sync.Mutex // guards KV and what follows
	logs []string
	seen []abi.Progress
}

// New returns a host with an empty workspace and an empty store.
func New(t testing.TB) *Host {
	return &Host{t: t, Dir: t.TempDir(), KV: map[string][]byte{}}
}

// Call runs a registered tool. args is a JSON text, or a value that is encoded.
func (h *Host) Call(tool string, args any) abi.Result {
	h.t.Helper()
	var input json.RawMessage
	switch a := args.(type) {
	case string:
		input = json.RawMessage(a)
	case []byte:
		input = a
	default:
		data, err := json.Marshal(a)
		if err != nil {
			h.t.Fatalf("encoding the arguments of %q: %v", tool, err)
		}
		input = data
	}
	return pdk.Call(h.Context(), tool, input)
}

// Context returns a context in which the pdk's functions reach this host. It
// ends with the test.
func (h *Host) Context() context.Context { return pdk.WithHost(h.t.Context(), h) }

// Logs returns the lines logged so far, as "level: message".
func (h *Host) Logs() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.logs...)
}

// Progress returns the reports so far.
func (h *Host) Progress() []abi.Progress {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]abi.Progress(nil), h.seen...)
}

// Path implements [pdk.Host]: /ws is Dir, whatever else leads nowhere.
func (h *Host) Path(name string) string {
	clean := path.Clean("/" + name)
	if rest, ok := strings.CutPrefix(clean+"/", "/ws/"); ok && h.Dir != "" {
		return filepath.Join(h.Dir, filepath.FromSlash(rest))
	}
	return filepath.Join(h.Dir, "no such mount", filepath.FromSlash(clean))
}
