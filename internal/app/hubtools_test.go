package app_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/term"
	"github.com/elfhost/elfhost/skillhub/hub"
	"github.com/elfhost/elfhost/skillhub/pack"
)

// netModule imports elf:net and answers "hello".
const netModule = "0061736d0100000001140360017f017f60047f7f7f7f017e60027f7f017f02100107656c663a6e65740468747470000203030200010503010001072103066d656d6f7279020009656c665f616c6c6f63000108656c665f63616c6c00020a110205004180200b0900428680808080020b0b0c010041100b060068656c6c6f"

// buyer is a person with a hub, who answers questions.
type buyer struct {
	t      *testing.T
	dir    string
	paths  config.Paths
	answer func(host.Ask) (host.Answer, error)
	asked  []host.Ask
}

func (b *buyer) Approve(_ context.Context, a host.Ask) (host.Answer, error) {
	b.asked = append(b.asked, a)
	return b.answer(a)
}

func newBuyer(t *testing.T) *buyer {
	t.Helper()
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	b := &buyer{t: t, dir: dir, paths: config.Paths{Config: home, State: filepath.Join(home, "state"), Cache: filepath.Join(home, "cache"), SystemPolicy: filepath.Join(home, "none")}}
	wasm, err := hex.DecodeString(netModule)
	if err != nil {
		t.Fatal(err)
	}
	author := &hub.Author{Dir: filepath.Join(dir, "hub"), NoSync: true}
	root, err := author.Init(t.Context(), hub.InitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	c, err := pack.Folder(t.Context(), &archive, fstest.MapFS{
		"plugin.wasm": {Data: wasm, Mode: 0o644},
		"elf.toml": {Mode: 0o644, Data: []byte("abi = \"elf/1\"\nname = \"say\"\nversion = \"1.0.0\"\ndescription = \"Says hello.\"\n" +
			"[[needs]]\ncap = \"net.http\"\nscope = [\"https://a.example GET\", \"https://b.example GET\"]\nreason = \"to fetch\"\n[[tools]]\nname = \"say\"\ndescription = \"Say hello\"\n")},
	}, pack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, pack.FileName(c.Manifest))
	if err := os.WriteFile(file, archive.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := hub.ReadRelease(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := author.Publish(t.Context(), hub.PublishOptions{}, r); err != nil {
		t.Fatal(err)
	}
	a := b.open(nil)
	defer a.Close(context.Background())
	offer, err := hub.Look(t.Context(), a.HubOptions(), author.Dir, root)
	if err == nil {
		_, err = hub.Pin(t.Context(), a.HubOptions(), "acme", author.Dir, offer)
	}
	if err == nil {
		err = b.paths.UpdateHubs(func(in []config.Hub) ([]config.Hub, error) {
			return append(in, config.Hub{Name: "acme", Location: author.Dir, Root: root}), nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *buyer) open(approver host.Approver) *app.App {
	b.t.Helper()
	ws := filepath.Join(b.dir, "ws")
	if err := os.MkdirAll(ws, 0o755); err != nil {
		b.t.Fatal(err)
	}
	a, err := app.Open(b.t.Context(), app.Options{Dir: ws, Env: func(string) string { return "" }, Session: "test", Paths: &b.paths, Approver: approver})
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

// install has the model install, and says what it was told and what is there.
func (b *buyer) install(id, args string) (told string, holds []string, disabled, there bool) {
	b.t.Helper()
	a := b.open(b)
	defer a.Close(context.Background())
	res := a.Registry.Invoke(b.t.Context(), host.Call{ID: id, Tool: "skillhub_install", Args: json.RawMessage(args), Caller: host.Caller{Session: a.Session}})
	in, err := a.PackageNamed("say")
	if err != nil {
		return res.Text(), nil, false, false
	}
	if in.Disabled == "" && !a.Registry.Has("say") || in.Disabled != "" && a.Registry.Has("say") {
		b.t.Errorf("disabled %q, and its tool is there: %v", in.Disabled, a.Registry.Has("say"))
	}
	return res.Text(), in.Grants, in.Disabled != "", true
}

// TestHUB16ThePersonDecides: the question is the install screen, asked once;
// what the person chose is what the package holds.
func TestHUB16ThePersonDecides(t *testing.T) {
	all := []string{"net.http https://a.example GET", "net.http https://b.example GET"}
	for name, c := range map[string]struct {
		answer          host.Answer
		err             error
		holds           []string
		disabled, there bool
		told            string
	}{
		"everything": {host.Answer{Allow: true, Choice: 0}, nil, all, false, true, "A person gave it: net.http https://a.example GET; net.http https://b.example GET"},
		"nothing":    {host.Answer{Allow: true, Choice: 1}, nil, nil, false, true, "has none of it"},
		"no":         {host.Answer{Reason: "not today"}, nil, nil, false, false, "the person refused and says: not today"},
		"no answer":  {host.Answer{Allow: true}, errors.New("expired"), nil, false, false, "the question was not answered: expired"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuyer(t)
			b.answer = func(host.Ask) (host.Answer, error) { return c.answer, c.err }
			told, holds, disabled, there := b.install("c1", `{"skillId":"acme/say"}`)
			if there != c.there || disabled != c.disabled || strings.Join(holds, ",") != strings.Join(c.holds, ",") || !strings.Contains(told, c.told) {
				t.Errorf("there %v, disabled %v, holds %q, told %s", there, disabled, holds, told)
			}
			if len(b.asked) != 1 {
				t.Fatalf("%d questions", len(b.asked))
			}
			q, ok := term.Ask(b.asked[0], true)
			if text := q.Render(term.Style{}); !ok || !b.asked[0].Final || !strings.Contains(text, "install say 1.0.0") || !strings.Contains(text, "https://b.example") || !strings.Contains(text, "1  install it, and grant everything") {
				t.Errorf("the question is\n%s", text)
			}
		})
	}
}

// TestHUB16NobodyThere: it is verified, stored and not used, and the model is
// told the command for a person. What there is nothing to ask about is not asked.
func TestHUB16NobodyThere(t *testing.T) {
	b := newBuyer(t)
	a := b.open(nil)
	defer a.Close(context.Background())
	res := a.Registry.Invoke(t.Context(), host.Call{ID: "c1", Tool: "skillhub_install", Args: json.RawMessage(`{"skillId":"acme/say"}`)})
	in, err := a.PackageNamed("say")
	if err != nil || in.Disabled == "" || len(in.Grants) != 0 || a.Registry.Has("say") || !strings.Contains(res.Text(), "`elfhost plugin enable say`") {
		t.Errorf("%+v, %v: %s", in, err, res.Text())
	}
	b.answer = func(host.Ask) (host.Answer, error) { return host.Answer{}, errors.New("nobody is to be asked") }
	if told, _, _, _ := b.install("c2", `{"skillId":"acme/nothing"}`); len(b.asked) != 0 || !strings.Contains(told, "skillhub_search shows") {
		t.Errorf("%d questions: %s", len(b.asked), told)
	}
}

// An answer about one call gives nothing to another.
func TestHUB16AnAnswerIsForItsCall(t *testing.T) {
	b := newBuyer(t)
	b.answer = func(host.Ask) (host.Answer, error) { return host.Answer{Allow: true}, nil }
	a := b.open(b)
	defer a.Close(context.Background())
	ask := func(id string) host.Ask {
		sp, _ := a.Registry.Spec("skillhub_install")
		return host.Ask{Spec: sp, Call: host.Call{ID: id, Tool: "skillhub_install", Args: json.RawMessage(`{"skillId":"acme/say"}`)}}
	}
	if answer, err := a.Gate.Approver.Approve(t.Context(), ask("c1")); err != nil || !answer.Allow {
		t.Fatalf("%+v, %v", answer, err)
	}
	// The agreed call never comes; another does, in auto mode.
	if err := a.Gate.Switch(host.ModeAuto); err != nil {
		t.Fatal(err)
	}
	res := a.Registry.Invoke(t.Context(), host.Call{ID: "c2", Tool: "skillhub_install", Args: json.RawMessage(`{"skillId":"acme/say"}`)})
	in, err := a.PackageNamed("say")
	if err != nil || in.Disabled == "" || len(in.Grants) != 0 {
		t.Errorf("%+v, %v: %s", in, err, res.Text())
	}
}
