package host

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// web is a plugin that makes requests and keeps what came of them.
func web(t *testing.T, needs []abi.Need, uses ...policy.Use) (*fakePlugin, *[]error) {
	t.Helper()
	n, err := policy.FromNeeds(needs)
	if err != nil {
		t.Fatal(err)
	}
	var got []error
	f := &fakePlugin{fake{spec: Spec{Name: "fetch", Origin: Origin{Source: Plugin, Name: "acme"}}, needs: n}}
	f.call = func(ctx context.Context, c Call) (abi.Result, error) {
		got = got[:0]
		for _, u := range uses {
			got = append(got, c.Rights.Check(ctx, u))
		}
		return abi.Text("done"), nil
	}
	return f, &got
}

func get(url string) policy.Use { return policy.Use{Cap: abi.NetHTTP, Verb: "GET", Target: url} }

func netGrant(scope string) policy.Grant {
	return policy.Grant{Cap: abi.NetHTTP, Scope: []string{scope}}
}

// TestEffectiveRights: needs, policy and what persons granted are met; the
// grants are asked for at each call, so that a revocation acts at once.
func TestEffectiveRights(t *testing.T) {
	f, got := web(t, []abi.Need{{Cap: abi.NetHTTP, Scope: []string{"https://a.example GET", "https://b.example GET"}}},
		get("https://a.example/x"), get("https://b.example/x"), get("https://c.example/x"), policy.Use{Cap: abi.FSRead, Target: "/ws/a"})
	var mu sync.Mutex
	given := granted(t, netGrant("https://a.example GET"), netGrant("https://c.example GET"), policy.Grant{Cap: abi.FSRead, Scope: []string{"/ws/**"}})
	g := &Gate{Mode: ModeAuto, Grants: granted(t, policy.Grant{Cap: abi.FSRead, Scope: []string{"/ws/**"}}), Granted: func(o Origin) policy.Grants {
		mu.Lock()
		defer mu.Unlock()
		if o.Name != "acme" {
			t.Errorf("asked for %+v", o)
		}
		return given
	}}
	r := registry(t, Options{Gate: g}, f)
	res := call(t, r, "fetch", `{}`)
	for i, want := range []bool{true, false, false, false} {
		if ((*got)[i] == nil) != want {
			t.Errorf("use %d: %v", i, (*got)[i])
		}
		if err := (*got)[i]; err != nil && !errors.Is(err, abi.ErrDenied) {
			t.Errorf("use %d: %v is not a denial", i, err)
		}
	}
	if res.IsError || !strings.Contains(res.Text(), "Denied: net.http GET https://b.example/x") || strings.Contains(res.Text(), "elfhost grant") {
		t.Errorf("the model reads %q", res.Text())
	}
	mu.Lock()
	given = policy.Grants{}
	mu.Unlock()
	call(t, r, "fetch", `{}`)
	if (*got)[0] == nil {
		t.Error("a revoked grant still holds")
	}
	g.Granted = nil
	call(t, r, "fetch", `{}`)
	if (*got)[0] == nil {
		t.Error("without grants something is allowed")
	}
}

// TestDecideAsksAboutTheUse: an undecided use is asked about once, remembered
// as it was shown, and reported with the command that would allow it.
func TestDecideAsksAboutTheUse(t *testing.T) {
	use := get("https://a.example/x?token=1")
	f, got := web(t, []abi.Need{{Cap: abi.NetHTTP, Scope: []string{"https://a.example GET"}}}, use, use)
	var told []Denied
	var verdicts []Verdict
	m := &mem{}
	p := &person{}
	g := &Gate{Approver: p, Memory: m, Audit: func(v Verdict) error { verdicts = append(verdicts, v); return nil },
		Granted: func(Origin) policy.Grants { return granted(t) }}
	g.state.rules = []Rule{{Pattern: "fetch", Plugin: "acme"}}
	r := registry(t, Options{Gate: g}, f)
	run := func() abi.Result {
		told, verdicts = nil, nil
		return r.Invoke(t.Context(), Call{Tool: "fetch", Denied: func(d Denied) { told = append(told, d) }})
	}
	p.answer = refuses
	run()
	if (*got)[0] == nil || p.count() != 2 || p.asked[0].Use == nil || p.asked[0].Now != "granted: none" {
		t.Fatalf("refused: %v, %d questions", (*got)[0], p.count())
	}
	if len(told) != 1 || !strings.HasPrefix(told[0].Allow, "elfhost grant add acme 'net.http https://a.example") {
		t.Errorf("the person reads %+v", told)
	}
	p.answer = nil // once
	run()
	if (*got)[0] != nil || (*got)[1] != nil || p.count() != 3 {
		t.Errorf("once: %v, %v, %d questions", (*got)[0], (*got)[1], p.count())
	}
	if last := verdicts[1]; last.By != "person" || !last.Allowed || last.Use == nil {
		t.Errorf("verdicts = %+v", verdicts)
	}
	p.answer = says(Project)
	run()
	run()
	if (*got)[0] != nil || p.count() != 4 || len(m.rules) != 1 || m.rules[0].Plugin != "acme" {
		t.Errorf("project: %v, %d questions, %+v", (*got)[0], p.count(), m.rules)
	}
	m.rules = nil // revoked
	p.answer = refuses
	run()
	if (*got)[0] == nil {
		t.Error("a revoked answer still holds")
	}
}

// TestCallerCanOnlyNarrow: rights that a caller sets are met with the gate's.
func TestCallerCanOnlyNarrow(t *testing.T) {
	read := builtin("Read")
	var err error
	read.call = func(ctx context.Context, c Call) (abi.Result, error) {
		err = c.Rights.Check(ctx, policy.Use{Cap: abi.FSRead, Target: "/ws/a"})
		return abi.Text("x"), nil
	}
	all := granted(t, policy.Grant{Cap: abi.FSRead, Scope: []string{"/ws/**"}})
	r := registry(t, Options{Gate: &Gate{Grants: all}}, read)
	for _, c := range []struct {
		rights policy.Rights
		want   bool
	}{
		{policy.Rights{}, true}, {policy.Rights{Grants: all}, true},
		{policy.Rights{Grants: granted(t, policy.Grant{Cap: abi.FSRead, Scope: []string{"/ws/b/**"}})}, false},
		{policy.Rights{Note: func(policy.Use, error) {}}, false}, // a plugin's own rights, of which it has none
	} {
		r.Invoke(t.Context(), Call{Tool: "Read", Rights: c.rights})
		if (err == nil) != c.want {
			t.Errorf("%+v: %v", c.rights, err)
		}
	}
	r = registry(t, Options{Gate: &Gate{}}, read)
	r.Invoke(t.Context(), Call{Tool: "Read", Rights: policy.Rights{Grants: all}})
	if err == nil {
		t.Error("a caller gave itself a right")
	}
}

// TestClockStandsStill: waiting for a person is not the tool's time, also in a
// call within a call.
func TestClockStandsStill(t *testing.T) { synctest.Test(t, clockStandsStill) }

func clockStandsStill(t *testing.T) {
	const wait = 60 * time.Millisecond
	g := &Gate{Approver: approverFunc(func(context.Context, Ask) (Answer, error) {
		time.Sleep(wait)
		return Answer{Allow: true, Scope: Once}, nil
	})}
	r := New(Options{Gate: g})
	var before, during, after time.Duration
	outer := builtin("Read")
	outer.call = func(ctx context.Context, c Call) (abi.Result, error) {
		before = c.Waited()
		done := make(chan struct{})
		go func() {
			defer close(done)
			time.Sleep(wait / 2)
			during = c.Waited()
		}()
		r.Invoke(ctx, Call{Tool: "Bash", Args: json.RawMessage(`{"command":"ls"}`)})
		<-done
		after = c.Waited()
		return abi.Text("x"), nil
	}
	if err := r.Add(outer, bash()); err != nil {
		t.Fatal(err)
	}
	call(t, r, "Read", `{}`)
	if before != 0 || during != wait/2 || after != wait {
		t.Errorf("waited %v, %v, %v", before, during, after)
	}
}

func TestEveryVerdictIsAudited(t *testing.T) {
	var mu sync.Mutex
	by := map[string]int{}
	g := &Gate{Approver: &person{}, Audit: func(v Verdict) error { mu.Lock(); by[v.By]++; mu.Unlock(); return nil }}
	r := registry(t, Options{Gate: g}, builtin("Read"), bash())
	for range 3 {
		call(t, r, "Read", `{}`)
	}
	call(t, r, "Bash", `{"command":"ls"}`)
	g.Approver = nil
	call(t, r, "Bash", `{"command":"ls"}`)
	if by["safe"] != 3 || by["person"] != 1 || by["nobody"] != 1 || len(by) != 3 {
		t.Errorf("verdicts = %v", by)
	}
}

// TestPolicyBoundsUses: what a policy forbids is refused inside a call too,
// with the file and line, and nobody is asked.
func TestPolicyBoundsUses(t *testing.T) {
	f, got := web(t, []abi.Need{{Cap: abi.NetHTTP, Scope: []string{"https://a.example GET"}}}, get("https://a.example/x"))
	p := &person{}
	g := &Gate{Approver: p, Granted: func(Origin) policy.Grants { return granted(t, netGrant("https://a.example GET")) },
		Policy: layers(t, policy.Layer{Kind: policy.System, File: "p.toml", Deny: []policy.Grant{{Cap: abi.NetHTTP, Scope: []string{"https://a.example"}, Where: "p.toml:4"}}})}
	if err := g.Allow(Rule{Pattern: "fetch", Plugin: "acme"}); err != nil {
		t.Fatal(err)
	}
	var told []Denied
	res := registry(t, Options{Gate: g}, f).Invoke(t.Context(), Call{Tool: "fetch", Denied: func(d Denied) { told = append(told, d) }})
	if (*got)[0] == nil || p.count() != 0 || len(told) != 1 || !told[0].Final || told[0].Where != "p.toml:4" || told[0].Allow != "" {
		t.Errorf("%v, %d questions, %+v", (*got)[0], p.count(), told)
	}
	if !strings.Contains(res.Text(), "p.toml:4") || !strings.Contains(res.Text(), "No answer can allow it") {
		t.Errorf("the model reads %q", res.Text())
	}
}

// TestQuestionSaysWhatPolicyAllows: a person who is asked for a right sees how
// much of it a policy leaves to give.
func TestQuestionSaysWhatPolicyAllows(t *testing.T) {
	f, _ := web(t, []abi.Need{{Cap: abi.NetHTTP, Scope: []string{"https://a.corp.example GET"}}}, get("https://a.corp.example/x"))
	p := &person{answer: refuses}
	g := &Gate{Approver: p, Granted: func(Origin) policy.Grants { return granted(t) },
		Policy: layers(t, policy.Layer{Kind: policy.System, File: "p.toml", Allow: []policy.Grant{{Cap: abi.NetHTTP, Scope: []string{"https://*.corp.example GET"}}}})}
	if err := g.Allow(Rule{Pattern: "fetch", Plugin: "acme"}); err != nil {
		t.Fatal(err)
	}
	call(t, registry(t, Options{Gate: g}, f), "fetch", `{}`)
	if p.count() != 1 || !strings.Contains(p.asked[0].Now, "policy allows: https://*.corp.example GET") {
		t.Errorf("%+v", p.asked)
	}
}

// TestOneAnswerForBothChecks: a request is checked before its name is resolved
// and with the address; a person is asked about it once.
func TestOneAnswerForBothChecks(t *testing.T) {
	named := get("https://a.example/x")
	dialed := named
	dialed.Addr = netip.MustParseAddr("93.184.216.34")
	inside := named
	inside.Addr = netip.MustParseAddr("10.0.0.1")
	f, got := web(t, []abi.Need{{Cap: abi.NetHTTP, Scope: []string{"https://a.example GET"}}}, named, dialed, inside)
	p := &person{}
	g := &Gate{Approver: p, Granted: func(Origin) policy.Grants { return granted(t) }}
	if err := g.Allow(Rule{Pattern: "fetch", Plugin: "acme"}); err != nil {
		t.Fatal(err)
	}
	call(t, registry(t, Options{Gate: g}, f), "fetch", `{}`)
	if (*got)[0] != nil || (*got)[1] != nil || p.count() != 1 {
		t.Errorf("%v, %v, %d questions", (*got)[0], (*got)[1], p.count())
	}
	if (*got)[2] == nil {
		t.Error("an answer about a public name reached a private address")
	}
}

// TestPOL01CeilingOfPlugins: what a policy leaves to plugins of others binds
// them, whatever was granted, and not the plugins that ship with elfhost.
func TestPOL01CeilingOfPlugins(t *testing.T) {
	p, err := policy.NewPolicy(policy.Layer{Kind: policy.System, File: "p.toml", PerPlugin: []policy.Grant{
		{Cap: abi.NetHTTP, Scope: []string{"https://a.example GET"}, Where: "p.toml:3"}, {Cap: abi.FSRead, Where: "p.toml:6"}}})
	if err != nil {
		t.Fatal(err)
	}
	uses := []policy.Use{get("https://a.example/x"), get("https://b.example/x"), {Cap: abi.FSRead, Target: "/ws/a"}}
	for _, c := range []struct {
		source Source
		want   [3]bool
	}{{Plugin, [3]bool{true, false, false}}, {Bundled, [3]bool{true, true, true}}} {
		f, got := web(t, []abi.Need{{Cap: abi.NetHTTP, Scope: []string{"public GET"}}, {Cap: abi.FSRead, Scope: []string{"/ws/**"}}}, uses...)
		f.spec.Origin.Source = c.source
		g := &Gate{Mode: ModeAuto, Policy: p, Granted: func(Origin) policy.Grants {
			return granted(t, netGrant("public GET"), policy.Grant{Cap: abi.FSRead, Scope: []string{"/ws/**"}})
		}}
		res := call(t, registry(t, Options{Gate: g}, f), "fetch", `{}`)
		for i, want := range c.want {
			if ((*got)[i] == nil) != want {
				t.Errorf("%s, %v: %v", c.source, uses[i], (*got)[i])
			}
		}
		if c.source == Plugin && !strings.Contains(res.Text(), "p.toml:3") {
			t.Errorf("the answer does not say what decided: %s", res.Text())
		}
	}
}

// A plugin that needs nothing gets nothing, whatever a file grants it, and
// nobody is asked about what it did not ask for.
func TestNoNeeds(t *testing.T) {
	f, got := web(t, nil, get("https://a.example/x"))
	looked, p := 0, &person{}
	g := &Gate{Approver: p, Granted: func(Origin) policy.Grants {
		looked++
		return granted(t, netGrant("https://a.example GET"))
	}}
	if err := g.Allow(Rule{Pattern: "fetch"}); err != nil {
		t.Fatal(err)
	}
	res := call(t, registry(t, Options{Gate: g}, f), "fetch", `{}`)
	if len(*got) != 1 || (*got)[0] == nil || looked != 0 || len(p.asked) != 0 {
		t.Errorf("%v, looked %d times, asked %d: %s", *got, looked, len(p.asked), res.Text())
	}
}
