package agent

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/model/scripted"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestTalks runs each script of testdata/talks and compares the events and
// the transcript with the file beside it.
func TestTalks(t *testing.T) {
	scripts, err := filepath.Glob("testdata/talks/*.toml")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, path := range scripts {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			m, err := scripted.Parse(path, data)
			if err != nil {
				t.Fatal(err)
			}
			s := New("talk", nil)
			l := newLoop(m, look(), tool{spec: spec("Panic", false), call: func(context.Context, host.Call) (abi.Result, error) { panic("oh") }})
			events, err := drain(t, l.Run(context.Background(), s, text("Begin.")))
			mustValid(t, s)
			got := render(events, err) + "\n" + transcript(s)
			golden := strings.TrimSuffix(path, ".toml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func look() tool {
	s := spec("Look", false)
	s.Input = json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}},"required":["at"],"additionalProperties":false}`)
	return tool{spec: s, call: func(_ context.Context, c host.Call) (abi.Result, error) {
		var args struct{ At string }
		if err := json.Unmarshal(c.Args, &args); err != nil {
			return abi.Result{}, err
		}
		switch args.At {
		case "notes":
			return abi.Text("see cellar"), nil
		case "cellar":
			return abi.Text("potatoes"), nil
		}
		return abi.Errorf("Nothing is at %q.", args.At), nil
	}}
}

// render shows events as a front end could, pieces joined.
func render(events []Event, err error) string {
	var b strings.Builder
	var last Kind
	for _, e := range events {
		piece := e.Kind == KindText || e.Kind == KindThinking
		if piece && e.Kind == last {
			b.WriteString(e.Text)
			continue
		}
		if last != "" {
			b.WriteString("\n")
		}
		last = e.Kind
		fmt.Fprintf(&b, "%d %s", e.Step, e.Kind)
		if e.Call != nil {
			fmt.Fprintf(&b, " %s", e.Call.Name)
		}
		if e.Stop != "" {
			fmt.Fprintf(&b, " %s", e.Stop)
		}
		if e.Text != "" {
			fmt.Fprintf(&b, ": %s", e.Text)
		}
		if e.Result != nil {
			fmt.Fprintf(&b, " error=%v", e.Result.IsError)
		}
	}
	if err != nil {
		fmt.Fprintf(&b, "\nerror: %v", err)
	}
	return b.String() + "\n"
}

func transcript(s *Session) string {
	var b strings.Builder
	for _, m := range s.Messages() {
		fmt.Fprintf(&b, "%s:\n", m.Role)
		for _, k := range m.Blocks {
			switch {
			case k.Content != nil:
				fmt.Fprintf(&b, "  %s\n", k.Content.Text)
			case k.Thinking != nil:
				fmt.Fprintf(&b, "  (%s)\n", k.Thinking.Text)
			case k.Call != nil:
				fmt.Fprintf(&b, "  %s = %s %s\n", k.Call.ID, k.Call.Name, k.Call.Args)
			case k.Result != nil:
				fmt.Fprintf(&b, "  %s > %s\n", k.Result.ID, strings.ReplaceAll(k.Result.Text(), "\n", "\n    "))
			}
		}
	}
	return b.String()
}
