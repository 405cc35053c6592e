package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/mcp"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/term"
)

const nameForm = `{"type":"object","required":["name"],"properties":{"name":{"type":"string","minLength":2},"token":{"type":"string"}}}`

// yes agrees to everything; typist fills in forms; remote passes them on.
type yes struct{ asked []host.Ask }

func (y *yes) Approve(_ context.Context, a host.Ask) (host.Answer, error) {
	y.asked = append(y.asked, a)
	return host.Answer{Allow: true}, nil
}

type typist struct {
	yes
	values map[string]any
	ok     bool
	err    error
}

func (p *typist) Fill(_ context.Context, a host.Ask, fields []term.Field) (map[string]any, bool, error) {
	p.asked = append(p.asked, a)
	return p.values, p.ok, p.err
}

type remote struct {
	yes
	reply mcp.Reply
	text  string
}

func (r *remote) Elicit(_ context.Context, text string, _ mcp.Elicitation) (mcp.Reply, error) {
	r.text = text
	return r.reply, nil
}

func opened(t *testing.T, by host.Approver) *app.App {
	t.Helper()
	home := t.TempDir()
	p := config.Paths{Config: home, State: filepath.Join(home, "state"), Cache: filepath.Join(home, "cache"), SystemPolicy: filepath.Join(home, "none")}
	a, err := app.Open(t.Context(), app.Options{Dir: t.TempDir(), Env: func(string) string { return "" }, Session: "test", Paths: &p, Approver: by})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(context.Background()) })
	return a
}

// A plugin's form is the person's to answer, who sees whose it is; what does
// not fit its schema is no answer.
func TestPluginAsks(t *testing.T) {
	from := host.Origin{Source: host.Plugin, Name: "greeter"}
	ada := map[string]any{"name": "Ada"}
	for name, c := range map[string]struct {
		by   host.Approver
		want string // "": declined
		fail bool
	}{
		"typed":             {by: &typist{values: ada, ok: true}, want: `{"name":"Ada"}`},
		"typed, too short":  {by: &typist{values: map[string]any{"name": "A"}, ok: true}, fail: true},
		"declined":          {by: &typist{}},
		"interrupted":       {by: &typist{ok: true, err: errors.New("interrupted")}, fail: true},
		"passed on":         {by: &remote{reply: mcp.Reply{Accept: true, Content: ada}}, want: `{"name":"Ada"}`},
		"passed on, no fit": {by: &remote{reply: mcp.Reply{Accept: true, Content: map[string]any{"name": 7}}}, fail: true},
		"nothing to type":   {by: &yes{}}, // it has no default
	} {
		t.Run(name, func(t *testing.T) {
			a := opened(t, c.by)
			got, ok, err := a.Loader.Elicit(t.Context(), from, "your name?\x1b[2J", json.RawMessage(nameForm))
			if string(got) != c.want || ok != (c.want != "") || (err != nil) != c.fail {
				t.Errorf("%s %v %v", got, ok, err)
			}
			switch by := c.by.(type) {
			case *typist:
				if len(by.asked) != 1 || !strings.Contains(by.asked[0].Why, "the plugin greeter") || !strings.Contains(strings.Join(by.asked[0].Risks, " "), "token") {
					t.Errorf("%+v", by.asked)
				}
			case *remote:
				if !strings.Contains(by.text, "the plugin greeter") || !strings.Contains(by.text, "asks for token") || !strings.Contains(by.text, "your name?") || strings.Contains(by.text, "\x1b") {
					t.Errorf("%q", by.text)
				}
			}
		})
	}
	if a := opened(t, nil); a.Loader.Elicit != nil {
		t.Error("nobody is there, and is asked")
	}
	if _, _, err := opened(t, &yes{}).Loader.Elicit(t.Context(), from, "?", json.RawMessage(`{"type":"object","properties":[]}`)); err == nil {
		t.Error("a schema that is none")
	}
}

// An answer is taken once by all servers of a folder, and what they seal with
// is not to be had from the token.
func TestSealAndAnswers(t *testing.T) {
	a, b := opened(t, nil), opened(t, nil)
	one, err := a.Seal("token")
	again, err2 := a.Seal("token")
	other, err3 := a.Seal("another")
	far, err4 := b.Seal("token")
	if err := errors.Join(err, err2, err3, err4); err != nil || one != again || one == other || one == far || len(one) != 64 {
		t.Fatal(one, again, other, far, err)
	}
	if info, err := os.Stat(filepath.Join(a.Paths.State, "mcp.key")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v %v", info, err)
	}
	soon := time.Now().Add(time.Hour)
	m, peer := a.Shared(), a.Shared()
	if _, known, err := peer.Value("ABC"); known || err != nil {
		t.Error(known, err)
	}
	for i, want := range []bool{true, false} {
		if got, err := m.Put("ABC", []byte("yes\n"), soon); got != want || err != nil {
			t.Errorf("%d: %v %v", i, got, err)
		}
	}
	if got, err := m.Put("OLD", nil, time.Now().Add(-2*time.Minute)); !got || err != nil {
		t.Error(got, err)
	}
	if got, err := peer.Put("DEF", nil, soon); !got || err != nil {
		t.Error(got, err)
	}
	if list, _ := os.ReadDir(filepath.Join(a.Paths.State, "mcp", "answers")); len(list) != 2 {
		t.Errorf("%v", list)
	}
	if got, err := peer.Put("ABC", []byte("no"), soon); got || err != nil {
		t.Error("it was forgotten", err)
	}
	if v, known, err := peer.Value("ABC"); string(v) != "yes\n" || !known || err != nil {
		t.Errorf("%q %v %v", v, known, err)
	}
	for i := range 10_000 {
		if _, err := m.Put(fmt.Sprint("many", i), nil, soon); err != nil {
			return
		}
	}
	t.Error("without a bound")
}
