package host

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// fake is a tool made of a function.
type fake struct {
	spec  Spec
	call  func(ctx context.Context, c Call) (abi.Result, error)
	needs policy.Grants
}

func (f *fake) Spec() Spec { return f.spec }
func (f *fake) Call(ctx context.Context, c Call) (abi.Result, error) {
	if f.call == nil {
		return abi.Text("ok"), nil
	}
	return f.call(ctx, c)
}

type fakePlugin struct{ fake }

func (f *fakePlugin) Needs() policy.Grants { return f.needs }

const pathSchema = `{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"limit":{"type":"integer"},"command":{"type":"string"}}}`

func builtin(name string) *fake {
	return &fake{spec: Spec{Name: name, Origin: Origin{Source: Builtin}, Input: json.RawMessage(`{"type":"object"}`)}}
}

func bash() *fake {
	f := builtin("Bash")
	f.spec.Kind = KindExecute
	return f
}

func plugin(owner, name string) *fake {
	return &fake{spec: Spec{Name: name, Origin: Origin{Source: Plugin, Name: owner}}}
}

func registry(t testing.TB, opt Options, tools ...Tool) *Registry {
	t.Helper()
	r := New(opt)
	if err := r.Add(tools...); err != nil {
		t.Fatal(err)
	}
	return r
}

// person answers questions and keeps them.
type person struct {
	mu     sync.Mutex
	asked  []Ask
	answer func(a Ask) (Answer, error)
}

func (p *person) Approve(_ context.Context, a Ask) (Answer, error) {
	p.mu.Lock()
	p.asked = append(p.asked, a)
	answer := p.answer
	p.mu.Unlock()
	if answer == nil {
		return Answer{Allow: true, Scope: Once}, nil
	}
	return answer(a)
}

func (p *person) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

func says(scope Scope) func(Ask) (Answer, error) {
	return func(a Ask) (Answer, error) {
		ans := Answer{Allow: true, Scope: scope}
		if len(a.Rules) > 0 {
			ans.Rule = a.Rules[len(a.Rules)-1]
		}
		return ans, nil
	}
}

func refuses(a Ask) (Answer, error) { return Answer{}, nil }

func call(t testing.TB, r *Registry, tool, args string) abi.Result {
	t.Helper()
	return r.Invoke(t.Context(), Call{ID: "c1", Tool: tool, Args: json.RawMessage(args), Caller: Caller{Session: "s1"}})
}

func allowed(t testing.TB, r *Registry, tool, args string) {
	t.Helper()
	if res := call(t, r, tool, args); res.IsError {
		t.Errorf("%s %s: %s", tool, args, res.Text())
	}
}

func refusedWith(t testing.TB, r *Registry, tool, args, want string) {
	t.Helper()
	res := call(t, r, tool, args)
	if !res.IsError || !strings.Contains(res.Text(), want) || !strings.HasSuffix(res.Text(), "\n"+RetryHint) {
		t.Errorf("%s %s: %q, want %q", tool, args, res.Text(), want)
	}
}

func lastLine(res abi.Result) string {
	text := res.Text()
	return text[strings.LastIndexByte(text, '\n')+1:]
}

func layers(t testing.TB, ls ...policy.Layer) *policy.Policy {
	t.Helper()
	p, err := policy.NewPolicy(ls...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func rule(t testing.TB, effect policy.Effect, pattern, where string) policy.Rule {
	t.Helper()
	p, err := policy.ParsePattern(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return policy.Rule{Pattern: p, Effect: effect, Where: where}
}

func granted(t testing.TB, gs ...policy.Grant) policy.Grants {
	t.Helper()
	g, err := policy.New("grants", gs...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
