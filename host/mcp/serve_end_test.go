package mcp

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
)

// toTheEnd serves a client that writes its requests and closes its side right
// behind them, and gives what it was answered, and how long that took.
func toTheEnd(t *testing.T, b *Bridge, requests ...string) (string, time.Duration) {
	t.Helper()
	begin := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"x","version":"1"}}}`
	in := strings.Join(append([]string{begin, `{"jsonrpc":"2.0","method":"notifications/initialized"}`}, requests...), "\n") + "\n"
	var out bytes.Buffer
	began := time.Now()
	if err := b.Serve(t.Context(), struct{ io.Reader }{strings.NewReader(in)}, &out); err != nil {
		t.Error(err)
	}
	return out.String(), time.Since(began)
}

// A call that was asked for right before the end of the input is answered, also
// where a busy machine, or the tool, takes some seconds; not for ever.
func TestAnswersBehindTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sleeps := func(d time.Duration) tool {
			return tool{"Glob", host.KindThink, func(ctx context.Context, _ host.Call) (abi.Result, error) {
				select {
				case <-time.After(d):
					return abi.Text("slept"), nil
				case <-ctx.Done():
					return abi.Result{}, ctx.Err()
				}
			}}
		}
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Glob","arguments":{}}}`
		b, _ := bridge(t, sleeps(8*time.Second))
		if out, _ := toTheEnd(t, b, call); !strings.Contains(out, "slept") {
			t.Errorf("what takes 8 s is lost: %s", out)
		}
		b.Close()
		b, _ = bridge(t, sleeps(time.Hour))
		if out, took := toTheEnd(t, b, call); strings.Contains(out, "slept") || took > time.Minute {
			t.Errorf("it goes on for %v: %s", took, out)
		}
		b.Close()
	})
}

// A question that nobody can answer any more holds up nothing.
func TestQuestionsEndWithTheInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := bridge(t)
		out, took := toTheEnd(t, b, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Write","arguments":{}}}`)
		if took > 0 || !strings.Contains(out, "elicitation/create") || !strings.Contains(out, `"id":1,`) || strings.Contains(out, "written") {
			t.Errorf("after %v: %s", took, out)
		}
		b.Close()
	})
}
