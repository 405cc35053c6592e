package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/sandbox"
)

func record(t *testing.T, p *probe, a args, grants ...string) *sandbox.Recording {
	t.Helper()
	var rec, back sandbox.Recording
	if _, err := p.call(sandbox.Record(t.Context(), &rec), a, rights(t, grants...)); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	return &back
}

func TestReplay(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	p.loader.KV = &reach.KV{Dir: t.TempDir()}
	p.file("a", "first")
	for _, c := range []struct {
		a      args
		grants []string
	}{
		{args{Do: "echo", A: "x"}, nil},
		{args{Do: "read", A: "/ws/a"}, []string{readWS}},
		{args{Do: "random"}, nil},
		{args{Do: "hash"}, nil}, // walks a map: the order hangs on the generator's state
		{args{Do: "clock", N: 2}, nil},
		{args{Do: "kvset", A: "k", B: "v"}, []string{"kv 1MiB"}},
		{args{Do: "read", A: "/ws/none"}, []string{readWS}},
	} {
		t.Run(c.a.Do, func(t *testing.T) {
			rec := record(t, p, c.a, c.grants...)
			if rec.Fuel == 0 || rec.Tool != "probe" {
				t.Fatalf("%+v", rec)
			}
			p.file("a", "changed since") // nothing of the world is read again
			for range 3 {
				if err := p.plugin.Replay(t.Context(), rec); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestReplayDiffers(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	os.WriteFile(filepath.Join(p.dir, "a"), []byte("first"), 0o644)
	rec := record(t, p, args{Do: "read", A: "/ws/a"}, readWS)
	for name, spoil := range map[string]func(*sandbox.Recording){
		"result": func(r *sandbox.Recording) { r.Result = abi.Text("other") },
		"fuel":   func(r *sandbox.Recording) { r.Fuel++ },
		"args":   func(r *sandbox.Recording) { r.Args = []byte(`{"do":"read","a":"/ws/bb"}`) },
		"events": func(r *sandbox.Recording) { r.Events = r.Events[:len(r.Events)-1] },
	} {
		t.Run(name, func(t *testing.T) {
			bad := *rec
			spoil(&bad)
			var diff *sandbox.Difference
			if err := p.plugin.Replay(t.Context(), &bad); !errors.As(err, &diff) {
				t.Errorf("%v", err)
			}
		})
	}
}

// What the recorded call calls is an answer to it, and no part of the recording.
func TestRecordedToolCall(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	inner := load(t, &sandbox.Loader{}, replies("\x00inner"), abi.Manifest{Name: "inner"})
	p.loader.Invoke = func(ctx context.Context, c host.Call) abi.Result {
		r, err := inner.Tools()[0].Call(ctx, c)
		if err != nil {
			t.Error(err)
		}
		return r
	}
	rec := record(t, p, args{Do: "tool", A: "Read", B: `{"path":"a"}`}, "tool.call Read")
	if rec.Plugin != "probe" || rec.Result.Text() != "inner" || !strings.Contains(string(rec.Args), "path") {
		t.Errorf("%s %s %+v", rec.Plugin, rec.Args, rec.Result)
	}
	p.loader.Invoke = nil
	if err := p.plugin.Replay(t.Context(), rec); err != nil {
		t.Error(err)
	}
}

// A guest that is told more and more ends, and the memory of the host is spared.
func TestRecordingLimit(t *testing.T) {
	p := newProbe(t, abi.Manifest{Limits: abi.Limits{Time: time.Minute, Memory: 256 << 20}})
	p.file("a", strings.Repeat("x", 16<<20))
	p.want(args{Do: "reread", A: "/ws/a", N: 12}, "ok", readWS)
	var rec sandbox.Recording
	var limit *sandbox.LimitError
	_, err := p.call(sandbox.Record(t.Context(), &rec), args{Do: "reread", A: "/ws/a", N: 12}, rights(t, readWS))
	if !errors.As(err, &limit) || limit.Limit != "recording" {
		t.Errorf("%v", err)
	}
	p.want(args{Do: "echo", A: "x"}, "x")
}
