package extism_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/foreign/extism"
	"github.com/elfhost/elfhost/host/foreign/internal/plugtest"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach/secret"
	"github.com/elfhost/elfhost/host/sandbox"
)

var guests sync.Map // name → func() ([]byte, error)

// guest builds testdata/<name>, once a run.
func guest(t testing.TB, name string) []byte {
	t.Helper()
	once, _ := guests.LoadOrStore(name, sync.OnceValues(func() ([]byte, error) {
		out := filepath.Join(work, name+".wasm")
		cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", out, "./testdata/"+name)
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
		if b, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, b)
		}
		return os.ReadFile(out)
	}))
	b, err := once.(func() ([]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// answer calls a tool and returns its text; IsError is written in front.
func (k *kit) answer(tool, args string, grants ...string) string {
	k.t.Helper()
	r, err := k.call(k.t.Context(), tool, args, grants...)
	if err != nil {
		k.t.Fatalf("%s: %v", tool, err)
	}
	if r.IsError {
		return "ERROR " + r.Text()
	}
	return r.Text()
}

func TestServlet(t *testing.T) {
	t.Parallel()
	k := (&kit{t: t, opt: extism.Options{Config: map[string]string{"zone": "UTC"}, Skip: []string{"secret_.*"}}}).load(guest(t, "servlet"))
	if k.opt.Kind != extism.Servlet {
		t.Errorf("it is taken for %q", k.opt.Kind)
	}
	var names []string
	for _, d := range k.plugin.Description().Tools {
		names = append(names, d.Name)
	}
	if got := strings.Join(names, " "); got != "time files_list picture broken" {
		t.Errorf("tools: %s", got)
	}
	for _, c := range []struct{ tool, args, want string }{
		{"time", `{"name":"noon"}`, "noon in UTC"},
		{"time", `{"name":"wrong"}`, "ERROR there is no time wrong"},
		{"files_list", `{}`, "a.txt"},
		{"broken", `{}`, "ERROR the disk is on fire"},
	} {
		if got := k.answer(c.tool, c.args); got != c.want {
			t.Errorf("%s: %q, want %q", c.tool, got, c.want)
		}
	}
	r, err := k.call(t.Context(), "picture", `{}`)
	if err != nil || len(r.Content) != 2 || r.Content[0].Type != abi.TypeImage || len(r.Content[0].Data) != 8 ||
		r.Content[1].Resource == nil || string(r.Content[1].Resource.Blob) != "\x01\x02\x03" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	name := extism.SecretName("vault", "me")
	k := &kit{t: t, opt: extism.Options{Secrets: []string{name}, Hosts: []string{"*"}}}
	k.loader.HTTP = plugtest.Web(t, "api.example.org", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("Authorization") == "Bearer hunter2-hunter2")
	})
	k.loader.HTTP.Secrets = &secret.Vault{Store: plugtest.Secrets{name: "hunter2-hunter2"}}
	k.loader.Model = func(_ context.Context, _ policy.Rights, q sandbox.ModelRequest) (sandbox.ModelReply, error) {
		return sandbox.ModelReply{Text: "fine, " + q.Messages[0].Content[0].Text, Model: "m", Stop: "end"}, nil
	}
	k.load(guest(t, "server"))
	if k.opt.Kind != extism.Server {
		t.Errorf("it is taken for %q", k.opt.Kind)
	}
	var names []string
	for _, d := range k.plugin.Description().Tools {
		names = append(names, d.Name)
	}
	if got := strings.Join(names, " "); got != "ask roots fetch people list_resources read_resource" {
		t.Errorf("tools: %s", got)
	}
	const model, net = "model 10k tokens", "net.http https://api.example.org"
	grant := "secret " + name + "@api.example.org"
	for _, c := range []struct {
		tool, args, want string
		grants           []string
	}{
		{"ask", `{}`, `{"content":{"type":"text","text":"fine, how are you"},"model":"m","role":"assistant","stopReason":"end"}`, []string{model}},
		{"roots", `{}`, `{"roots":[{"name":"workspace","uri":"file:///ws"}]}`, nil},
		{"people", `{}`, `{"action":"decline"}null`, nil},
		{"fetch", `{}`, "true for " + secret.Placeholder(name), []string{net, grant}},
		{"fetch", `{}`, "ERROR no secret", []string{net}},
		{"read_resource", `{"uri":"demo:one"}`, `{"contents":[{"text":"the first","uri":"demo:one"}]}`, nil},
	} {
		if got := k.answer(c.tool, c.args, c.grants...); got != c.want {
			t.Errorf("%s: %q, want %q", c.tool, got, c.want)
		}
	}
	// Where a person is there, the person answers.
	for want, reply := range map[string]func() (json.RawMessage, bool, error){
		`{"action":"accept","content":{"name":"Ada"}}null`: func() (json.RawMessage, bool, error) { return json.RawMessage(`{"name":"Ada"}`), true, nil },
		`{"action":"decline"}null`:                         func() (json.RawMessage, bool, error) { return nil, false, nil },
		`{"action":"cancel"}null`:                          func() (json.RawMessage, bool, error) { return nil, false, errors.New("nobody answers") },
	} {
		k.loader.Elicit = func(_ context.Context, from host.Origin, message string, schema json.RawMessage) (json.RawMessage, bool, error) {
			if from.Name == "" || message != "?" || !strings.Contains(string(schema), `"name"`) {
				t.Errorf("asked %+v %q %s", from, message, schema)
			}
			return reply()
		}
		if got := k.answer("people", `{}`); got != want {
			t.Errorf("people: %q, want %q", got, want)
		}
	}
	if _, err := k.call(t.Context(), "ask", `{}`); !errors.Is(err, abi.ErrDenied) {
		t.Errorf("the model without a grant: %v", err)
	}
}

func TestRecordReplay(t *testing.T) {
	t.Parallel()
	k := &kit{t: t, opt: extism.Options{Hosts: []string{"*"}}}
	answers := []string{"one", "two"}
	k.loader.HTTP = plugtest.Web(t, "extism.org", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Answer", answers[0])
		answers = answers[1:]
	})
	k.load(module(t, "http_headers.wasm"))
	var rec sandbox.Recording
	const grant = "net.http https://extism.org"
	r, err := k.call(sandbox.Record(t.Context(), &rec), "http_get", `{"input":"{\"url\":\"https://extism.org\"}"}`, grant)
	if err != nil || !strings.Contains(r.Text(), `"x-answer":"one"`) {
		t.Fatalf("%+v %v", r, err)
	}
	if err := k.plugin.Replay(t.Context(), &rec); err != nil {
		t.Error(err)
	}
	if len(answers) != 1 {
		t.Error("the replay went to the network")
	}
	for i := range rec.Events {
		if rec.Events[i].Func == "elf:net.http" {
			rec.Events[i].Request = "another"
		}
	}
	var diff *sandbox.Difference
	if err := k.plugin.Replay(t.Context(), &rec); !errors.As(err, &diff) {
		t.Errorf("a changed recording replays: %v", err)
	}
}
