package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
)

func TestUnknownToolNamesTheOthers(t *testing.T) {
	r := registry(t, Options{}, builtin("Read"), builtin("ListDir"), builtin("list_skills"), &fake{spec: Spec{Name: "mcp__github__list_issues", Origin: Origin{Source: MCP}}})
	for name, want := range map[string]string{
		"read": "Did you mean Read?", "ReadFile": "Available tools: Read, ListDir", "list_dir": "Did you mean ListDir?",
		"list-skills": "Did you mean list_skills?", "list_issues": "Did you mean mcp__github__list_issues?", "zzzzzzzz": "\"zzzzzzzz\". Available tools: Read, ListDir, list_skills, mcp__github__list_issues.",
		strings.Repeat("x", 5000): "Available", "\xff": "Available",
	} {
		refusedWith(t, r, name, `{}`, want)
	}
	refusedWith(t, New(Options{}), "Read", `{}`, "No tools are available")
}

func TestCoercionIsTold(t *testing.T) {
	f := builtin("Read")
	f.spec.Input = json.RawMessage(pathSchema)
	var args string
	f.call = func(_ context.Context, c Call) (abi.Result, error) {
		args = string(c.Args)
		return abi.Text("text"), nil
	}
	r := registry(t, Options{}, f)
	res := call(t, r, "Read", `{"path":"a","limit":"3"}`)
	if res.IsError || args != `{"limit":3,"path":"a"}` || len(res.Content) != 2 || res.Content[0].Text != "text" ||
		res.Content[1].Text != "[Note: `limit` was the string \"3\" and was read as the number 3.]" {
		t.Errorf("args %s, result %+v", args, res)
	}
	args = ""
	refusedWith(t, r, "Read", `{"path": "a`, "byte 11")
	refusedWith(t, r, "Read", `{"limit":1}`, "The required parameter `path` is missing.")
	refusedWith(t, r, "Read", `{"path":"safe","PATH":"../c"}`, "differ by case alone")
	refusedWith(t, r, "Read", `{"path":5}`, "`path`: expected string, but got number.")
	if args != "" {
		t.Errorf("the tool was run with %s", args)
	}
}

func TestBadSchemaIsFoundAtTheFirstCall(t *testing.T) {
	f := builtin("Read")
	f.spec.Input = json.RawMessage(`{"$ref":"file:///etc/passwd"}`)
	refusedWith(t, registry(t, Options{}, f), "Read", `{}`, "not local")
}

func TestErrorsAndPanics(t *testing.T) {
	for want, f := range map[string]func(context.Context, Call) (abi.Result, error){
		"The tool Read failed: disk full.":            func(context.Context, Call) (abi.Result, error) { return abi.Result{}, errors.New("disk full") },
		"partly\nThe tool Read failed: then this.":    func(context.Context, Call) (abi.Result, error) { return abi.Text("partly"), errors.New("then this") },
		"failed inside and did not finish (panic: x)": func(context.Context, Call) (abi.Result, error) { panic("x") },
		"index out of range":                          func(_ context.Context, c Call) (abi.Result, error) { return abi.Text(string(c.Args[1000])), nil },
		"told by the tool":                            func(context.Context, Call) (abi.Result, error) { return abi.Errorf("told by the tool"), nil },
		"refused a right": func(context.Context, Call) (abi.Result, error) {
			return abi.Result{}, fmt.Errorf("opening: %w", abi.ErrDenied)
		},
	} {
		tool := builtin("Read")
		tool.call = f
		refusedWith(t, registry(t, Options{}, tool), "Read", `{}`, want)
	}
}

// TestL02CancelText: a call that was cancelled while it ran is told so, not
// that it was rejected, and one that had not begun is told that.
func TestL02CancelText(t *testing.T) {
	write, read := builtin("Notify"), builtin("Read")
	read.spec.Kind = KindRead
	started := make(chan struct{})
	write.call = func(ctx context.Context, _ Call) (abi.Result, error) {
		close(started)
		<-ctx.Done()
		return abi.Result{}, fmt.Errorf("running: %w", ctx.Err())
	}
	late := overdue{t.Context(), make(chan struct{})}
	read.call = func(ctx context.Context, _ Call) (abi.Result, error) {
		close(late.past)
		<-ctx.Done()
		return abi.Result{}, ctx.Err()
	}
	r := registry(t, Options{}, write, read)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	res := r.Invoke(ctx, Call{Tool: "Notify"})
	if !res.IsError || !strings.Contains(res.Text(), "interrupted while it ran. It may have had effects") || lastLine(res) != RetryHint {
		t.Errorf("%q", res.Text())
	}
	if res := r.Invoke(ctx, Call{Tool: "Notify"}); !strings.Contains(res.Text(), "before it began. Nothing was done") {
		t.Errorf("%q", res.Text())
	}
	if res := r.Invoke(late, Call{Tool: "Read"}); !strings.Contains(res.Text(), "ran out of time. It changes nothing") {
		t.Errorf("%q", res.Text())
	}
}

// overdue is a context whose deadline passes when past is closed: by the clock
// it might pass before the call begins.
type overdue struct {
	context.Context
	past chan struct{}
}

func (o overdue) Done() <-chan struct{} { return o.past }

func (o overdue) Err() error {
	select {
	case <-o.past:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestStubbornTool: a tool that does not mind its context holds nobody up, and
// what it reports afterwards goes nowhere.
func TestStubbornTool(t *testing.T) { synctest.Test(t, stubbornTool) }

func stubbornTool(t *testing.T) {
	f := builtin("Notify")
	release := make(chan struct{})
	ended := make(chan struct{})
	f.call = func(_ context.Context, c Call) (abi.Result, error) {
		defer close(ended)
		<-release
		c.Receipt(abi.Receipt{})
		c.Progress(abi.Progress{})
		return abi.Text("late"), nil
	}
	r := registry(t, Options{}, f)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	start := time.Now()
	res := r.Invoke(ctx, Call{Tool: "Notify", Receipt: func(abi.Receipt) { t.Error("a late receipt") }, Progress: func(abi.Progress) { t.Error("late progress") }})
	if took := time.Since(start); !res.IsError || took != grace+10*time.Millisecond {
		t.Errorf("%q after %v", res.Text(), took)
	}
	close(release)
	<-ended
}

func TestClip(t *testing.T) {
	var kept string
	spill := func(_ context.Context, session, id, text string) (string, error) {
		kept = text
		return "/out/" + session + "/" + id + ".txt", nil
	}
	long := builtin("Read")
	text := strings.Repeat("я", 40_000) // two bytes each
	long.call = func(context.Context, Call) (abi.Result, error) {
		return abi.Result{Content: []abi.Content{abi.TextBlock("x" + text), {Type: abi.TypeImage, Data: []byte{1}}, abi.TextBlock("end")}}, nil
	}
	res := call(t, registry(t, Options{Spill: spill}, long), "Read", `{}`)
	first := res.Content[0].Text
	if res.IsError || !utf8.ValidString(first) || len(first) > DefaultMaxOutput+300 || len(first) < DefaultMaxOutput ||
		!strings.Contains(first, "\n(truncated) The output has 80005 bytes, of which the first 51200 are shown. The whole is in /out/s1/c1.txt") {
		t.Errorf("clipped: %d bytes, …%q", len(first), first[len(first)-200:])
	}
	if kept != "x"+text+"\nend" || len(res.Content) != 2 || res.Content[1].Type != abi.TypeImage {
		t.Errorf("kept %d bytes, %d blocks", len(kept), len(res.Content))
	}
	for limit, want := range map[int]int{10: 9, 100_000: 80_001, -1: 80_001} {
		long.spec.MaxOutput = limit
		res := call(t, registry(t, Options{}, long), "Read", `{}`)
		if got, _, _ := strings.Cut(res.Content[0].Text, "\n"); len(got) != want {
			t.Errorf("limit %d: %d bytes", limit, len(got))
		}
	}
	failing := func(context.Context, string, string, string) (string, error) { return "", errors.New("disk full") }
	long.spec.MaxOutput = 0
	if res := call(t, registry(t, Options{Spill: failing}, long), "Read", `{}`); !strings.Contains(res.Text(), "could not be kept") {
		t.Error("a failed spill is not told")
	}
}

// TestM14ManyBlocks: thousands of small blocks share the limit of one result.
func TestM14ManyBlocks(t *testing.T) {
	f := builtin("Read")
	f.call = func(context.Context, Call) (abi.Result, error) {
		var res abi.Result
		for range 65_000 {
			res.Content = append(res.Content, abi.TextBlock("x"))
		}
		return res, nil
	}
	res := call(t, registry(t, Options{}, f), "Read", `{}`)
	if len(res.Content) > 2 || len(res.Text()) > DefaultMaxOutput+300 || !strings.Contains(res.Text(), "(truncated)") {
		t.Errorf("%d blocks, %d bytes", len(res.Content), len(res.Text()))
	}
}

func TestHostileResults(t *testing.T) {
	f := builtin("Read")
	var give abi.Result
	f.call = func(context.Context, Call) (abi.Result, error) { return give, nil }
	r := registry(t, Options{}, f)
	give = abi.Text("a\xff\xfeb")
	if res := call(t, r, "Read", `{}`); res.Text() != "a\uFFFDb" || give.Content[0].Text != "a\xff\xfeb" {
		t.Errorf("%q", res.Text())
	}
	give = abi.Result{Structured: json.RawMessage(`{"a":`)}
	if res := call(t, r, "Read", `{}`); !res.IsError || res.Structured != nil {
		t.Errorf("%+v", res)
	}
	give = abi.Result{Structured: json.RawMessage(`{"a":1}`)}
	if res := call(t, r, "Read", `{}`); res.Text() != `{"a":1}` {
		t.Errorf("%+v", res)
	}
	give = abi.Result{Content: []abi.Content{{Type: abi.TypeImage, Data: make([]byte, maxBinary+1)}}}
	if res := call(t, r, "Read", `{}`); !strings.Contains(res.Text(), "left out") {
		t.Errorf("%d bytes pass", len(res.Content[0].Data))
	}
	give = abi.Result{}
	if res := call(t, r, "Read", `{}`); res.Content == nil {
		t.Error("nil content")
	}
}

// TestM08StructuredDoesNotHideAnError: a failure stays one, and structured
// content that breaks the tool's own schema makes one.
func TestM08StructuredDoesNotHideAnError(t *testing.T) {
	f := &fake{spec: Spec{Name: "mcp__db__q", Origin: Origin{Source: MCP, Name: "db"}, Output: json.RawMessage(`{"type":"object","properties":{"answer":{"type":"integer"}}}`)}}
	var give abi.Result
	f.call = func(context.Context, Call) (abi.Result, error) { return give, nil }
	r := registry(t, Options{Gate: &Gate{Mode: ModeAuto}}, f)
	give = abi.Result{IsError: true, Content: []abi.Content{abi.TextBlock("db refused")}, Structured: json.RawMessage(`{"answer":42}`)}
	refusedWith(t, r, "mcp__db__q", `{}`, "db refused")
	give = abi.Result{Structured: json.RawMessage(`{"answer":"x"}`)}
	refusedWith(t, r, "mcp__db__q", `{}`, "does not fit the output schema")
	give = abi.Result{Structured: json.RawMessage(`{"answer":42}`)}
	allowed(t, r, "mcp__db__q", `{}`)
}

func TestDepthIsBounded(t *testing.T) {
	f := plugin("acme", "again")
	r := New(Options{Gate: &Gate{Mode: ModeAuto}})
	calls := 0
	var last abi.Result
	f.call = func(ctx context.Context, c Call) (abi.Result, error) {
		calls++
		last = r.Invoke(ctx, Call{Tool: "again", Caller: Caller{Plugin: "acme"}})
		return abi.Text("x"), nil
	}
	if err := r.Add(f); err != nil {
		t.Fatal(err)
	}
	call(t, r, "again", `{}`)
	if calls != defaultDepth+1 {
		t.Errorf("%d calls", calls)
	}
	res := r.Invoke(t.Context(), Call{Tool: "again", Caller: Caller{Plugin: "acme", Depth: 9}})
	if !res.IsError || !strings.Contains(res.Text(), "4 deep") || last.Text() == "" {
		t.Errorf("%q", res.Text())
	}
}

func BenchmarkInvoke(b *testing.B) {
	f := builtin("Read")
	f.spec.Input = json.RawMessage(pathSchema)
	r := registry(b, Options{}, f)
	c := Call{Tool: "Read", Args: json.RawMessage(`{"path":"host/policy/grants.go","limit":200}`)}
	for b.Loop() {
		if res := r.Invoke(b.Context(), c); res.IsError {
			b.Fatal(res.Text())
		}
	}
}

// interruptible is a tool that says so of itself.
type interruptible struct {
	fake
	yes bool
}

func (i *interruptible) Interruptible() bool { return i.yes }

// TestInterruptible: such a call runs on its caller's goroutine, and fails as
// others do.
func TestInterruptible(t *testing.T) {
	for _, yes := range []bool{true, false} {
		i := &interruptible{*builtin("Read"), yes}
		caller, runner := goroutine(), ""
		i.call = func(context.Context, Call) (abi.Result, error) {
			runner = goroutine()
			return abi.Text("ok"), nil
		}
		r := registry(t, Options{}, i)
		if call(t, r, "Read", `{}`); (runner == caller) != yes {
			t.Errorf("interruptible %v: it ran on %s, called from %s", yes, runner, caller)
		}
		i.call = func(context.Context, Call) (abi.Result, error) { panic("boom") }
		if res := call(t, r, "Read", `{}`); !res.IsError || !strings.Contains(res.Text(), "failed inside and did not finish (panic: boom)") {
			t.Errorf("%q", res.Text())
		}
		ctx, cancel := context.WithCancel(t.Context())
		i.call = func(ctx context.Context, _ Call) (abi.Result, error) { cancel(); return abi.Result{}, ctx.Err() }
		if res := r.Invoke(ctx, Call{Tool: "Read"}); !strings.Contains(res.Text(), "was interrupted while it ran") {
			t.Errorf("%q", res.Text())
		}
	}
}

// goroutine names the one that calls it.
func goroutine() string {
	var b [64]byte
	name, _, _ := strings.Cut(string(b[:runtime.Stack(b[:], false)]), " [")
	return name
}

// TestReceiptLater: a receipt that comes with what is left to do is not lost.
func TestReceiptLater(t *testing.T) {
	f := builtin("Read")
	f.call = func(_ context.Context, c Call) (abi.Result, error) {
		c.Later(func() { c.Receipt(abi.Receipt{Tool: "Read"}) })
		return abi.Text("ok"), nil
	}
	r := registry(t, Options{}, f)
	var left []func()
	var got []abi.Receipt
	r.Invoke(t.Context(), Call{Tool: "Read", Later: func(f func()) { left = append(left, f) }, Receipt: func(rc abi.Receipt) { got = append(got, rc) }})
	if len(left) != 1 || len(got) != 0 {
		t.Fatal(len(left), got)
	}
	if left[0](); len(got) != 1 {
		t.Error("the receipt is lost")
	}
}

// TestPanicLater: what panics behind an answer ends nobody.
func TestPanicLater(t *testing.T) {
	f := builtin("Read")
	f.call = func(_ context.Context, c Call) (abi.Result, error) {
		c.Later(func() { panic("boom") })
		return abi.Text("ok"), nil
	}
	var log strings.Builder
	r := registry(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, f)
	res := r.Invoke(t.Context(), Call{Tool: "Read", Later: func(f func()) { f() }})
	if res.IsError || !strings.Contains(log.String(), "boom") {
		t.Errorf("%q, log %q", res.Text(), log.String())
	}
}
