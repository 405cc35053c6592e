// Over 500 lines: every row is played by the same scripted server.

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/internal/shared"
)

func TestCall(t *testing.T) {
	r := newRig(t, Options{})
	r.add(t, fakeServer(t, "fake", "plain"))
	r.connect(t, "fake")
	if got := r.do(t, "mcp__fake__echo", `{"a":9007199254740993}`); got != `echo {"a":9007199254740993} #1` {
		t.Fatalf("%q", got)
	}
	st := r.Status()[0]
	if st.State != "ready" || st.Server != "fake 1" || !slices.Equal(st.Tools, []string{"mcp__fake__echo"}) {
		t.Fatalf("%+v", st)
	}
}

// Every kind of content arrives, and what cannot be read costs only itself.
func TestKinds(t *testing.T) {
	r := newRig(t, Options{})
	r.add(t, fakeServer(t, "fake", "plain"))
	r.connect(t, "fake")
	res := r.call(context.Background(), "mcp__fake__echo", `{"do":"kinds"}`)
	var kinds []string
	for _, b := range res.Content {
		kinds = append(kinds, b.Type)
	}
	want := []string{"text", "image", "audio", "resource_link", "resource", "text", "text"}
	if !slices.Equal(kinds, want) || string(res.Content[1].Data) != "hi" || res.Content[4].Resource.Text != "why" || string(res.Structured) != `{"ok":true}` {
		t.Fatalf("%v %+v", kinds, res)
	}
}

func TestM05Names(t *testing.T) {
	long := "plugin_chrome-devtools-mcp_chrome-devtools"
	a, b := strings.Repeat("a", 30)+"_one_"+strings.Repeat("z", 30), strings.Repeat("a", 30)+"_two_"+strings.Repeat("z", 30)
	ok := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	seen := map[string]bool{}
	for _, c := range [][2]string{{long, "get_console_message"}, {"s", a}, {"s", b}, {"s", "Read"}, {"s", "_x"}, {"s", "имя"}, {"s", "nаme"}, {"s", "name"}, {"s", ""}, {strings.Repeat("s", 80), "x"}} {
		n := Name(c[0], c[1])
		if !ok.MatchString(n) || seen[n] || n != Name(c[0], c[1]) {
			t.Errorf("Name(%q, %q) = %q", c[0], c[1], n)
		}
		seen[n] = true
	}
	if n := Name("github", "get_me"); n != "mcp__github__get_me" {
		t.Errorf("a plain name became %q", n)
	}
	r := newRig(t, Options{})
	s := fakeServer(t, long, "plain")
	file := filepath.Join(t.TempDir(), "tools.json")
	_ = os.WriteFile(file, []byte("["+fakeTool("get_console_message")+"]"), 0o600)
	s.Env = append(s.Env, "FAKE_TOOLS="+file)
	r.add(t, s)
	name := Name(long, "get_console_message")
	if err := r.Await(context.Background(), name); err != nil {
		t.Fatal(err)
	}
	if got := r.do(t, name, `{}`); !strings.HasPrefix(got, "get_console_message ") {
		t.Fatalf("the call went to %q", got)
	}
}

func TestMC03Shadowing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tools.json")
	var defs []string
	for _, n := range []string{"Read", "read", "mcp__a__x", "a__b", "mcp__a__b", "Rеad", "Read", "Bash"} {
		defs = append(defs, fakeTool(n))
	}
	_ = os.WriteFile(file, []byte("["+strings.Join(defs, ",")+"]"), 0o600)
	r := newRig(t, Options{})
	if err := r.reg.Add(builtin("Read"), builtin("Bash")); err != nil {
		t.Fatal(err)
	}
	r.add(t, fakeServer(t, "a", "plain"), fakeServer(t, "b", "plain", "FAKE_TOOLS="+file))
	r.connect(t, "a")
	r.connect(t, "b")
	st := r.Status()[1]
	if len(st.Tools) != 7 {
		t.Fatalf("%d tools: %v, refused %v", len(st.Tools), st.Tools, st.Refused)
	}
	for _, n := range st.Tools {
		if !strings.HasPrefix(n, "mcp__b__") {
			t.Errorf("a tool of b is called %q", n)
		}
		if s, _ := r.reg.Spec(n); s.Origin.Name != "b" || s.Safe() {
			t.Errorf("%q has origin %+v", n, s.Origin)
		}
	}
	if got := r.do(t, "Read", `{}`); got != "builtin" {
		t.Fatalf("Read is %q", got)
	}
}

// mcp__s___x would be read as a tool of the server s.
func TestServerNames(t *testing.T) {
	for _, name := range []string{"", "a__b", "s_", "a b", "ä", "a/b", "a."} {
		s := fakeServer(t, name, "plain")
		if err := NewClient(Options{}).Add(s); err == nil {
			t.Errorf("a server may be called %q", name)
		}
	}
	for _, name := range []string{"a", "_a", "a-b_c", "-"} {
		s := fakeServer(t, name, "plain")
		if err := s.check(); err != nil {
			t.Error(err)
		}
		if server, tool, ok := SplitName(Name(name, "x")); server != name || tool != "x" || !ok {
			t.Errorf("%q is read as %q %q", Name(name, "x"), server, tool)
		}
	}
}

type builtin string

func (b builtin) Spec() host.Spec {
	return host.Spec{Name: string(b), Description: "x", Input: json.RawMessage(`{"type":"object"}`), Origin: host.Origin{Source: host.Builtin}}
}
func (builtin) Call(context.Context, host.Call) (abi.Result, error) { return abi.Text("builtin"), nil }

// refs is the schema of M01 and M02.
const refs = `{"type":"object","properties":{"q":{"$ref":"#/$defs/Q"}},"$defs":{"Q":{"type":"object","properties":{"limit":{"type":"integer"},"more":{"$ref":"#/$defs/Q"}}}},"required":["q"],"additionalProperties":false}`

func TestM01M02Refs(t *testing.T) {
	d, err := define("s", json.RawMessage(`{"name":"find","inputSchema":`+refs+`}`))
	if err != nil {
		t.Fatal(err)
	}
	if string(d.Spec.Input) != refs {
		t.Fatalf("the schema became %s", d.Spec.Input)
	}
	reg := host.New(host.Options{Gate: &host.Gate{Mode: host.ModeAuto}})
	d.Spec.Name = "mcp__s__find"
	if err := reg.Add(&remote{d: d}); err != nil {
		t.Fatal(err)
	}
	for _, f := range host.Formats() {
		defs, err := reg.Definitions(f)
		if err != nil || len(defs) != 1 || f != host.FormatGemini && !strings.Contains(string(defs[0].Input), `"$defs"`) {
			t.Errorf("%s: %v %+v", f, err, defs)
		}
	}
}

func TestM04RefPath(t *testing.T) {
	const s = `{"type":"object","properties":{"body":{"anyOf":[{"type":"null"},{"type":"object","properties":{"x":{"type":"array","items":{"type":"integer"}}}}]},"y":{"$ref":"#/properties/body/anyOf/1/properties/x/items"}}}`
	d, err := define("s", json.RawMessage(`{"name":"t","inputSchema":`+s+`}`))
	if err != nil || string(d.Spec.Input) != s {
		t.Fatalf("%v %s", err, d.Spec.Input)
	}
}

func TestM07PaginationLoop(t *testing.T) {
	r := newRig(t, Options{})
	r.add(t, fakeServer(t, "loop", "loop"), fakeServer(t, "pages", "pages"))
	r.connect(t, "loop")
	r.connect(t, "pages")
	if got := r.reg.Names(); len(got) != 3 {
		t.Fatalf("%v", got)
	}
}

// A listing whose cursor is another one each time has an end all the same.
func TestM07EndlessCursors(t *testing.T) {
	r := newRig(t, Options{})
	r.add(t, fakeServer(t, "fake", "endless"))
	r.connect(t, "fake")
	if got := r.reg.Names(); len(got) != 1 {
		t.Fatalf("%v", got)
	}
	r.do(t, "mcp__fake__echo", `{}`)
}

// What a server promises of its structured content is held against it.
func TestOutputSchema(t *testing.T) {
	for schema, fits := range map[string]bool{
		`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`: true,
		`{"type":"object","properties":{"ok":{"type":"string"}}}`:                    false,
		`{"type":"object","required":["more"]}`:                                      false,
	} {
		file := filepath.Join(t.TempDir(), "tools.json")
		_ = os.WriteFile(file, []byte(`[{"name":"echo","inputSchema":{"type":"object"},"outputSchema":`+schema+`}]`), 0o600)
		r := newRig(t, Options{})
		r.add(t, fakeServer(t, "fake", "plain", "FAKE_TOOLS="+file))
		r.connect(t, "fake")
		res := r.call(context.Background(), "mcp__fake__echo", `{"do":"kinds"}`)
		if complained := strings.Contains(res.Text(), "output schema"); complained == fits || (len(res.Structured) > 0) != fits {
			t.Errorf("%s: %s %s", schema, res.Structured, res.Text())
		}
	}
}

// A tool that promises structured content and gives none has failed, in whole
// sentences, and with what it said; one that says that it failed need give none.
func TestOutputSchemaWithoutContent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tools.json")
	_ = os.WriteFile(file, []byte(`[{"name":"echo","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}},`+fakeTool("plain")+`]`), 0o600)
	r := newRig(t, Options{})
	r.add(t, fakeServer(t, "fake", "plain", "FAKE_TOOLS="+file))
	r.connect(t, "fake")
	res := r.call(context.Background(), "mcp__fake__echo", `{"do":"big","n":16}`)
	if text := res.Text(); !res.IsError || !strings.HasPrefix(text, "0123456789abcde\n") || !strings.Contains(text, "declares an output schema, and answered without structured content") {
		t.Errorf("%v %s", res.IsError, text)
	}
	if res := r.call(context.Background(), "mcp__fake__plain", `{"do":"big","n":16}`); res.IsError {
		t.Errorf("one without an output schema: %s", res.Text())
	}
	if res := r.call(context.Background(), "mcp__fake__echo", `{"do":"refuse"}`); !res.IsError || strings.Contains(res.Text(), "output schema") {
		t.Errorf("one that failed: %s", res.Text())
	}
	if res := r.call(context.Background(), "mcp__fake__echo", `{"do":"kinds"}`); res.IsError {
		t.Errorf("one that gives it: %s", res.Text())
	}
}

func TestM08IsError(t *testing.T) {
	r := newRig(t, Options{})
	r.add(t, fakeServer(t, "fake", "plain"))
	r.connect(t, "fake")
	res := r.call(context.Background(), "mcp__fake__echo", `{"do":"refuse"}`)
	if !res.IsError || !strings.HasPrefix(res.Text(), "db refused\n") {
		t.Fatalf("%+v", res)
	}
}

func TestM09Crash(t *testing.T) {
	r := newRig(t, Options{})
	r.add(t, fakeServer(t, "fake", "plain"))
	r.connect(t, "fake")
	res := r.call(context.Background(), "mcp__fake__echo", `{"do":"crash"}`)
	if !res.IsError || !strings.Contains(res.Text(), "exit status 3") || !strings.Contains(res.Text(), "segmentation fault") {
		t.Fatalf("%s", res.Text())
	}
	// The next call starts the server again; its count begins anew, so the
	// first was not sent again.
	if got := r.do(t, "mcp__fake__echo", `{}`); got != "echo {} #1" {
		t.Fatalf("%q", got)
	}
	// One that always crashes is started ever more slowly.
	for range 3 {
		r.call(context.Background(), "mcp__fake__echo", `{"do":"crash"}`)
	}
	l, _ := r.link("fake")
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil && !l.conn.isLost() {
		t.Errorf("it still stands")
	}
}

func TestBackOff(t *testing.T) {
	r := newRig(t, Options{})
	r.add(t, fakeServer(t, "bad", "exit"))
	err := r.Connect(context.Background(), "bad")
	if err == nil || !strings.Contains(err.Error(), "exit status 7") || !strings.Contains(err.Error(), "no database") {
		t.Fatalf("%v", err)
	}
	refused := false
	for try := 0; try < 10 && !refused; try++ { // the pause grows: a busy machine does not miss all of them
		err = r.Connect(context.Background(), "bad")
		refused = err != nil && strings.Contains(err.Error(), "not started again for")
	}
	if !refused {
		t.Fatalf("%v", err)
	}
	if st := r.Status()[0]; st.State != "failed" {
		t.Fatalf("%+v", st)
	}
}

// The pause doubles, up to a minute.
func TestPauses(t *testing.T) {
	l := newLink(NewClient(Options{}), Server{Name: "s"})
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		before := time.Now()
		l.failed(errors.New("no"))
		if want *= time.Second; l.retry.Sub(before) < want || time.Until(l.retry) > want {
			t.Errorf("after failure %d it waits %v, not %v", l.fails, l.retry.Sub(before), want)
		}
	}
}

func TestM11InitHang(t *testing.T) {
	r := newRig(t, Options{})
	hang := fakeServer(t, "hang", "hang")
	hang.Startup = time.Second
	ever := fakeServer(t, "ever", "hang")
	ever.Startup = time.Hour // which nothing here waits for
	r.add(t, ever, hang, fakeServer(t, "fake", "plain"))
	r.Start()
	if err := r.Await(context.Background(), "mcp__fake__echo"); err != nil {
		t.Fatal(err)
	}
	if err := r.Await(context.Background(), "mcp__hang__x"); err == nil || !strings.Contains(err.Error(), "not ready within 1s") {
		t.Fatalf("%v", err)
	}
	r.do(t, "mcp__fake__echo", `{}`)
}

func TestM12Cancel(t *testing.T) {
	r := newRig(t, Options{})
	r.add(t, fakeServer(t, "fake", "plain"))
	r.connect(t, "fake")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	answered := make(chan abi.Result)
	go func() { answered <- r.call(ctx, "mcp__fake__echo", `{"do":"never"}`) }()
	wait(t, func() bool { return r.logged("at work") })
	cancel()
	if res := <-answered; !res.IsError {
		t.Fatalf("%+v", res)
	}
	if got := r.do(t, "mcp__fake__echo", `{}`); got != "echo {} #2" {
		t.Fatalf("%q", got)
	}
	wait(t, func() bool { return r.logged("cancelled ") })
}

func TestM14Large(t *testing.T) {
	r := newRig(t, Options{})
	r.add(t, fakeServer(t, "fake", "plain"))
	r.connect(t, "fake")
	for _, args := range []string{`{"do":"big","n":65011712}`, `{"do":"parts","n":65000}`} {
		res := r.call(context.Background(), "mcp__fake__echo", args)
		n := 0
		for _, b := range res.Content {
			n += len(b.Text)
		}
		if res.IsError || n > host.DefaultMaxOutput+1000 || len(res.Content) > 300 || args[7] == 'b' && !strings.Contains(res.Text(), "/out/c1") {
			t.Errorf("%s: %d bytes in %d blocks, error %v", args, n, len(res.Content), res.IsError)
		}
	}
	r.do(t, "mcp__fake__echo", `{}`)
}

func TestM15ListChanged(t *testing.T) {
	asked := make(chan Change, 10)
	r := newRig(t, Options{Consent: func(_ context.Context, c Change) (bool, error) { asked <- c; return true, nil }})
	r.add(t, fakeServer(t, "fake", "plain"))
	r.connect(t, "fake")
	r.do(t, "mcp__fake__echo", `{"do":"grow"}`)
	change := <-asked
	if len(change.Added) != 20 || len(change.Altered) != 0 {
		t.Fatalf("%d added, %d altered", len(change.Added), len(change.Altered))
	}
	wait(t, func() bool { return r.reg.Has("mcp__fake__grown1_19") })
	r.do(t, "mcp__fake__grown1_0", `{}`)
	began := time.Now()
	r.do(t, "mcp__fake__echo", `{"do":"shrink"}`)
	// The call waits for the new list, up to a time that a busy machine may need.
	if got, took := r.reg.Names(), time.Since(began); len(got) != 1 && took < settleTime {
		t.Fatalf("removed tools are still there after %v: %v", took, got)
	}
	wait(t, func() bool { return len(r.reg.Names()) == 1 })
	if len(asked) != 0 {
		t.Errorf("a person was asked %d times more", len(asked))
	}
}

func wait(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen")
		}
	}
}

func TestMC04Quarantine(t *testing.T) {
	pins := t.TempDir()
	s := fakeServer(t, "fake", "plain")
	r := newRig(t, Options{Pins: pins})
	r.add(t, s)
	r.connect(t, "fake")
	r.do(t, "mcp__fake__echo", `{"do":"alter"}`)
	r.do(t, "mcp__fake__echo", `{"do":"grow"}`)
	if spec, _ := r.reg.Spec("mcp__fake__echo"); spec.Description != "does echo" {
		t.Fatalf("an altered text is shown: %q", spec.Description)
	}
	st := r.Status()[0]
	if len(st.Tools) != 1 || len(st.Held) != 21 {
		t.Fatalf("%+v", st)
	}
	shown, err := r.Held("fake")
	if err != nil || len(shown.Added) != 20 || len(shown.Altered) != 1 {
		t.Fatalf("%+v, %v", shown, err)
	}
	// What comes between the look and the yes is not agreed to.
	r.do(t, "mcp__fake__echo", `{"do":"grow"}`)
	if err := r.Agree(shown); !errors.Is(err, ErrChanged) || len(r.reg.Names()) != 1 {
		t.Fatalf("%v, %v", err, r.reg.Names())
	}
	shown, _ = r.Held("fake")
	if err := r.Agree(shown); err != nil {
		t.Fatal(err)
	}
	if spec, _ := r.reg.Spec("mcp__fake__echo"); !strings.Contains(spec.Description, "evil") || len(r.reg.Names()) != 41 {
		t.Fatalf("agreed to, and shown %q", spec.Description)
	}
	// A later session offers what was agreed to, before anything is started,
	// and holds what differs (the fake starts with its first text again).
	later := newRig(t, Options{Pins: pins})
	later.add(t, s)
	if spec, _ := later.reg.Spec("mcp__fake__echo"); !strings.Contains(spec.Description, "evil") || later.Status()[0].State != "idle" {
		t.Fatalf("%+v %+v", spec, later.Status())
	}
	later.do(t, "mcp__fake__echo", `{}`)
	if st := later.Status()[0]; len(st.Held) != 1 || len(st.Tools) != 1 {
		t.Fatalf("%+v", st)
	}
}

// Whatever a model is told counts, and how it is written does not.
func TestMC04WhatCounts(t *testing.T) {
	const whole = `{"name":"t","title":"T","description":"d","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`
	digest := func(def string) string {
		t.Helper()
		d, err := define("s", json.RawMessage(def))
		if err != nil {
			t.Fatal(err)
		}
		return d.Digest
	}
	same := digest(whole)
	if got := digest(strings.ReplaceAll(whole, ":", " : ")); got != same {
		t.Error("spaces count")
	}
	for old, other := range map[string]string{
		`"T"`: `"U"`, `"d"`: `"e"`, `"inputSchema":{`: `"inputSchema":{"description":"x",`, `"outputSchema":{`: `"outputSchema":{"description":"x",`,
	} {
		if got := digest(strings.Replace(whole, old, other, 1)); got == same {
			t.Errorf("%s in the place of %s does not count", other, old)
		}
	}
}

// MC-02: what was agreed to for one command holds for no other.
func TestMC02ConfigChanged(t *testing.T) {
	s := fakeServer(t, "fake", "plain")
	o := s
	o.Args = []string{"--yolo"}
	if s.Digest() == o.Digest() {
		t.Fatal("other arguments, same digest")
	}
	pins := t.TempDir()
	r := newRig(t, Options{Pins: pins})
	r.add(t, s)
	r.connect(t, "fake")
	later := newRig(t, Options{Pins: pins})
	later.add(t, o)
	if later.reg.Has("mcp__fake__echo") {
		t.Fatal("tools of another command line are offered")
	}
}

func TestMC05DescriptionPoison(t *testing.T) {
	evil := "Adds.\u202e\x1b[31m\U000E0049\U000E0067\u200b" + strings.Repeat("A", 50_000)
	raw, _ := json.Marshal(map[string]any{"name": "add", "description": evil, "inputSchema": map[string]any{
		"type": "object", "properties": map[string]any{"x": map[string]any{"type": "number", "description": "a\u200b\U000E0001b"}}}})
	d, err := define("s", raw)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Spec.Description) > maxDescription+10 || strings.ContainsAny(d.Spec.Description, "\u202e\x1b\u200b\U000E0049") {
		t.Errorf("the model is told %d bytes, %.40q", len(d.Spec.Description), d.Spec.Description)
	}
	if strings.ContainsAny(string(d.Spec.Input), "\u200b\U000E0001") || !strings.Contains(string(d.Spec.Input), `"ab"`) {
		t.Errorf("the schema is %s", d.Spec.Input)
	}
	if len(d.Flags) != 3 {
		t.Errorf("flags: %q", d.Flags)
	}
	if s, n := clean("héllo 日本 👩‍👩‍👧 اَلْعَرَبِيَّةُ"); n != 0 || s != "héllo 日本 👩‍👩‍👧 اَلْعَرَبِيَّةُ" {
		t.Errorf("ordinary text lost %d: %q", n, s)
	}
}

func TestMC06toMC08Schemas(t *testing.T) {
	var defs []string
	for i := range 17 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	bombs := map[string]string{
		"MC-06 file":  `{"type":"object","properties":{"x":{"$ref":"file:///etc/passwd"}}}`,
		"MC-06 http":  `{"type":"object","properties":{"x":{"$ref":"http://evil.test/s.json"}}}`,
		"MC-07":       `{"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{` + strings.Join(defs, ",") + `,"d17":{"type":"string"}}}`,
		"MC-08 depth": `{"type":"object","properties":{"x":` + strings.Repeat(`{"not":`, 20_000) + `{}` + strings.Repeat(`}`, 20_000) + `}}`,
		"MC-08 size":  `{"type":"object","properties":{"x":{"enum":["` + strings.Repeat("a", 5<<20) + `"]}}}`,
		"MC-08 re":    `{"type":"object","properties":{"x":{"type":"string","pattern":"(a{100}){100}"}}}`,
	}
	for name, s := range bombs {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			good := json.RawMessage(fakeTool("good"))
			d, refused := defineAll("s", []json.RawMessage{json.RawMessage(`{"name":"bad","inputSchema":` + s + `}`), good}, func(string) bool { return true })
			if len(d) != 1 || len(refused) != 1 || !strings.Contains(refused[0], "its input schema") && !strings.Contains(refused[0], "max depth") {
				t.Fatalf("%d offered, refused %.200q", len(d), refused)
			}
			if strings.Contains(refused[0], "root:") {
				t.Fatalf("bytes of a file are in the error: %s", refused[0])
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestMC09Flood(t *testing.T) {
	r := newRig(t, Options{})
	r.add(t, fakeServer(t, "flood", "flood"), fakeServer(t, "fake", "plain"), fakeServer(t, "rubbish", "rubbish"))
	r.connect(t, "fake")
	r.connect(t, "rubbish")
	r.do(t, "mcp__rubbish__echo", `{}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := r.Connect(context.Background(), "flood")
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "a line of more than") {
		t.Fatalf("%v", err)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 512<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	l, _ := r.link("fake")
	patient := l.s.Timeout
	l.s.Timeout = time.Hour // it ends when all of it was read, however long a busy machine takes
	notes := 1_000_000
	if raced {
		notes = 20_000
	}
	began := time.Now()
	if got := r.do(t, "mcp__fake__echo", fmt.Sprintf(`{"do":"notes","n":%d}`, notes)); got != "done" {
		t.Fatalf("%q", got)
	}
	r.mu.Lock()
	n := len(r.logs)
	r.mu.Unlock()
	// 100 in ten seconds, of which there are more where reading takes longer.
	if most := 1000 + 10*int(time.Since(began)/time.Second); n > most {
		t.Errorf("%d lines of log were passed on, want %d at the most", n, most)
	}
	l.s.Timeout = 300 * time.Millisecond
	if res := r.call(context.Background(), "mcp__fake__echo", `{"do":"never"}`); !res.IsError || !strings.Contains(res.Text(), "did not answer within") {
		t.Fatalf("%+v", res)
	}
	l.s.Timeout = patient
	if got := r.do(t, "mcp__fake__echo", `{"do":"twice"}`); got != "first" {
		t.Fatalf("%q", got)
	}
	if got := r.do(t, "mcp__fake__echo", `{}`); !strings.HasPrefix(got, "echo {}") {
		t.Fatalf("%q", got)
	}
}

// Progress prolongs a call's time, and is passed on.
func TestProgress(t *testing.T) {
	r := newRig(t, Options{})
	r.add(t, fakeServer(t, "fake", "plain"))
	r.connect(t, "fake")
	l, _ := r.link("fake")
	var got []abi.Progress
	var res abi.Result
	// The whole takes longer than the limit, a step half as long: on a busy
	// machine that may want a slower pace.
	for pace := 150; pace < 30_000 && len(got) < 5; pace *= 4 {
		got, l.s.Timeout = nil, time.Duration(2*pace)*time.Millisecond
		res = r.reg.Invoke(context.Background(), host.Call{ID: "c", Tool: "mcp__fake__echo", Args: json.RawMessage(fmt.Sprintf(`{"do":"progress","n":%d}`, pace)),
			Progress: func(p abi.Progress) { got = append(got, p) }})
	}
	if res.IsError || len(got) != 5 || got[4] != (abi.Progress{Message: "step", Done: 5, Total: 5}) {
		t.Fatalf("%+v %+v", res, got)
	}
}

// Progress prolongs a call ten times at the most.
func TestEndlessProgress(t *testing.T) {
	r := newRig(t, Options{})
	s := fakeServer(t, "fake", "plain")
	s.Timeout = 200 * time.Millisecond
	r.add(t, s)
	r.connect(t, "fake")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if res := r.call(ctx, "mcp__fake__echo", `{"do":"chatter"}`); !res.IsError || !strings.Contains(res.Text(), "did not answer within") {
		t.Errorf("%s", res.Text())
	}
}

func TestMC10EnvLeak(t *testing.T) {
	t.Setenv("ELFHOST_SECRET_TEST", "hunter2")
	t.Setenv("ANTHROPIC_API_KEY", "sk-ant-test")
	t.Setenv("LD_PRELOAD_TEST", "x")
	r := newRig(t, Options{})
	r.add(t, fakeServer(t, "fake", "plain", "GIVEN=yes"))
	r.connect(t, "fake")
	env := r.do(t, "mcp__fake__echo", `{"do":"env"}`)
	if strings.Contains(env, "hunter2") || strings.Contains(env, "sk-ant") || !strings.Contains(env, "GIVEN=yes") {
		t.Fatalf("%s", env)
	}
	// What nobody listed is not there, whatever it is called.
	allowed := append(reach.CleanEnv(), "FAKE_MCP=plain", "GIVEN=yes")
	for _, kv := range strings.Split(strings.SplitN(env, "\n[", 2)[0], "\n") {
		if kv != "" && !slices.Contains(allowed, kv) && !strings.HasPrefix(kv, "PWD=") && !strings.HasPrefix(kv, "ELFHOST_JOB=") {
			t.Errorf("it got %q", kv)
		}
	}
}

// A server is ended with everything that it started.
func TestCloseEndsTheGroup(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("looks at /proc")
	}
	forever := strconv.Itoa(900_000_000 + os.Getpid()) // tells it from what other tests started
	r := newRig(t, Options{})
	s := fakeServer(t, "fake", "plain")
	s.Command, s.Args = "/bin/sh", []string{"-c", "sleep " + forever + ` & exec "$0"`, os.Args[0]}
	r.add(t, s)
	r.connect(t, "fake")
	r.do(t, "mcp__fake__echo", `{}`)
	wait(t, func() bool { return running("sleep\x00" + forever) })
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	wait(t, func() bool { return !running("sleep\x00" + forever) })
}

// One that does not stop talking when its input ends does not hold up the end.
func TestCloseOfATalker(t *testing.T) {
	r := newRig(t, Options{})
	r.add(t, fakeServer(t, "fake", "wordy"))
	r.connect(t, "fake")
	began := time.Now()
	if err := r.Close(context.Background()); err != nil || time.Since(began) > time.Minute {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

func running(cmdline string) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range all {
		if b, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(b), cmdline) {
			return true
		}
	}
	return false
}

// The schemas that real servers publish are taken whole.
func TestRealSchemas(t *testing.T) {
	dir := shared.Dir(t, "data/mcp-tool-schemas")
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var list []json.RawMessage
		if json.Unmarshal(b, &list) != nil {
			var o struct {
				Tools  []json.RawMessage `json:"tools"`
				Result struct {
					Tools []json.RawMessage `json:"tools"`
				} `json:"result"`
			}
			if err := json.Unmarshal(b, &o); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			list = append(o.Tools, o.Result.Tools...)
		}
		defs, refused := defineAll("real", list, func(string) bool { return true })
		if len(list) == 0 || len(defs) != len(list) || len(refused) > 0 {
			t.Errorf("%s: %d of %d tools, refused %v", filepath.Base(f), len(defs), len(list), refused)
		}
	}
}
