package sandbox_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/sandbox"
)

func TestKV(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	p.refused(args{Do: "kvget", A: "k"}, "no values")
	p.loader.KV = &reach.KV{Dir: t.TempDir()}
	kv := "kv 1MiB"
	p.refused(args{Do: "kvget", A: "k"}, "denied")
	p.refused(args{Do: "kvget", A: "k"}, "not found", kv)
	for _, k := range []string{"b", "a", "other"} {
		p.want(args{Do: "kvset", A: k, B: "v" + k}, "ok", kv)
	}
	p.want(args{Do: "kvget", A: "a"}, "va", kv)
	p.want(args{Do: "kvkeys"}, "a b other", kv)
	p.want(args{Do: "kvkeys", A: "o"}, "other", kv)
	p.want(args{Do: "kvdel", A: "a"}, "ok", kv)
	p.refused(args{Do: "kvdel", A: "a"}, "not found", kv)
	p.refused(args{Do: "kvset", A: "big", B: strings.Repeat("x", 2000)}, "", "kv 1KiB")
	p.refused(args{Do: "kvset", A: ""}, "1 to 512", kv)
	p.want(args{Do: "kvset", A: strings.Repeat("k", 512), B: "v"}, "ok", kv)
	p.refused(args{Do: "kvset", A: strings.Repeat("k", 513), B: "v"}, "1 to 512", kv)

	// Another plugin with the same store sees nothing of it.
	q := newProbe(t, abi.Manifest{Name: "other"})
	q.loader.KV = p.loader.KV
	q.refused(args{Do: "kvget", A: "b"}, "not found", kv)
}

func TestEnv(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	p.loader.Env = func(name string) (string, bool) { return "C.UTF-8", name == "LANG" }
	p.want(args{Do: "env", A: "LANG"}, "C.UTF-8", "env LANG")
	p.refused(args{Do: "env", A: "LANG"}, "denied")
	p.refused(args{Do: "env", A: "HOME"}, "denied", "env LANG")
}

func TestModelBudget(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	p.refused(args{Do: "model", A: "hi"}, "no model", "model 1k tokens")
	p.loader.Model = func(_ context.Context, _ policy.Rights, q sandbox.ModelRequest) (sandbox.ModelReply, error) {
		return sandbox.ModelReply{Text: q.System + "|" + q.Messages[0].Content[0].Text, TokensIn: 3, TokensOut: 4}, nil
	}
	p.want(args{Do: "model", A: "hi", B: "sys"}, "sys|hi", "model 1k tokens")
	if p.last.Tokens != 7 {
		t.Errorf("%d tokens in the receipt", p.last.Tokens)
	}
	p.refused(args{Do: "model", A: "hi", N: 5000}, "denied", "model 1k tokens")
	p.refused(args{Do: "model", A: "hi"}, "denied")
}

func TestFetchAndReceipt(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "page") }))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	grant := "net.http http://127.0.0.1:" + port + " GET"
	p := newProbe(t, abi.Manifest{Needs: append(needs[2:len(needs):len(needs)], abi.Need{Cap: abi.NetHTTP, Scope: []string{"http://127.0.0.1:" + port + " GET"}})})
	p.refused(args{Do: "fetch", A: s.URL}, "no network", grant)
	p.loader.HTTP = &reach.HTTP{}
	p.want(args{Do: "fetch", A: s.URL + "/x"}, "200 "+s.URL+"/x page", grant)
	r := p.last
	if len(r.Hosts) != 1 || !strings.Contains(r.Hosts[0], port) || r.BytesIn != 4 || r.HostCalls["elf:net.http"] != 1 || r.Fuel == 0 || r.Memory == 0 || r.Wall == 0 {
		t.Errorf("receipt %+v", r)
	}
	p.refused(args{Do: "fetch", A: s.URL + "/x", B: "POST"}, "denied", grant)
	p.refused(args{Do: "fetch", A: s.URL}, "denied")
	if len(p.last.Denied) == 0 {
		t.Error("no denial in the receipt")
	}
}

func TestToolCall(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	var got host.Call
	p.loader.Invoke = func(_ context.Context, c host.Call) abi.Result {
		got = c
		return abi.Text("answer")
	}
	p.want(args{Do: "tool", A: "Read", B: `{"path":"a"}`}, "answer", "tool.call Read")
	if got.Tool != "Read" || got.Caller.Plugin != "probe" || got.Caller.Depth != 1 || string(got.Args) != `{"path":"a"}` {
		t.Errorf("%+v", got)
	}
	if err := got.Rights.Grants.Check(policy.Use{Cap: abi.FSRead, Target: "/ws/a"}); err == nil {
		t.Error("the tool got a right that the plugin does not have")
	}
	p.refused(args{Do: "tool", A: "Write", B: `{}`}, "denied", "tool.call Read")
}

func TestExecNeedsAKernelSandbox(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	p.loader.Runner = &reach.Runner{}
	p.refused(args{Do: "exec", List: []string{"git", "log"}}, "kernel sandbox", "exec git log *")
}

func TestMemoryLimit(t *testing.T) {
	p := newProbe(t, abi.Manifest{Limits: abi.Limits{Memory: 32 << 20}})
	if _, err := p.try(args{Do: "grow", N: 100}); err == nil {
		t.Error("100 MiB in 32")
	}
	if p.last.Memory > 32<<20 {
		t.Errorf("%d bytes", p.last.Memory)
	}
	p.want(args{Do: "grow", N: 4}, fmt.Sprint(4<<20))
}

// What a manifest asks for, its module may have from the start, and no more.
func TestMemoryAtTheStart(t *testing.T) {
	wasm := tiny{data: "\x00ok", pages: 1500}.bytes()
	if err := firstCall(t, wasm, abi.Manifest{Limits: abi.Limits{Memory: 128 << 20}}); err != nil {
		t.Error(err)
	}
	if err := firstCall(t, wasm, abi.Manifest{Limits: abi.Limits{Memory: 80 << 20}}); err == nil || !strings.Contains(err.Error(), "1500, at most 1280") {
		t.Error(err)
	}
}

func TestOutputLimit(t *testing.T) {
	p := newProbe(t, abi.Manifest{Limits: abi.Limits{Output: 1000}})
	p.want(args{Do: "big", N: 1000}, strings.Repeat("x", 1000))
	if _, err := p.try(args{Do: "big", N: 1001}); err == nil || !strings.Contains(err.Error(), "output") {
		t.Errorf("%v", err)
	}
}
