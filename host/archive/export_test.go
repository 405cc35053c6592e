package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/store"
)

var update = flag.Bool("update", false, "write the golden files anew")

// sample is a transcript with one of everything.
func sample() *Transcript {
	at := func(s int) time.Time { return time.Date(2026, 3, 4, 5, 6, s, 0, time.UTC) }
	user, minutes, note := model.User(abi.TextBlock("Fix the `build`.")), model.User(abi.TextBlock("So far: nothing.")), model.User(abi.TextBlock("[Go on.]"))
	draft := abi.TextBlock("And now")
	hello, bye := abi.TextBlock("I look at it."), abi.TextBlock("Done.\n\n```go\nx := 1\n```")
	c1, c2, c3 := call("a", "Read", `{"path":"go.mod"}`), call("b", "Bash", "{\"command\":\"echo '```'\"}"), call("c", "WebFetch", `{"url":"https://x.example"}`)
	answer := model.Message{Role: model.RoleAssistant, Blocks: []model.Block{
		{Thinking: &model.Thinking{Text: "Hm.\nWhere?"}}, {Content: &hello}, {Call: &c1}, {Call: &c2}, {Call: &c3},
	}}
	last := model.Message{Role: model.RoleAssistant, Blocks: []model.Block{{Content: &bye}}}
	result := func(id, name, text string, bad bool) *model.CallResult {
		r := &model.CallResult{ID: id, Name: name, Result: abi.Text(text)}
		r.IsError = bad
		return r
	}
	t := &Transcript{
		Info: Info{ID: "ses_1", Origin: "/home/x/p", Title: "Fix the build", Model: "test/m1", Created: at(0), Updated: at(9), Records: 11},
		Records: []agent.Record{
			{Kind: agent.RecordMessage, Message: &user},
			{Kind: agent.RecordMessage, Message: &answer, Model: "m1", Stop: model.StopCalls, Step: 1, Usage: &agent.Usage{Steps: 1}},
			{Kind: agent.RecordStart, Call: &c1, Step: 1, Looks: true},
			{Kind: agent.RecordStart, Call: &c2, Step: 1},
			{Kind: agent.RecordResult, Result: result("b", "Bash", "```\n````", false), Outcome: agent.Done, Step: 1},
			{Kind: agent.RecordResult, Result: result("a", "Read", "module x\n", false), Outcome: agent.Done, Step: 1},
			{Kind: agent.RecordResult, Result: result("c", "WebFetch", "It was interrupted.", true), Outcome: agent.Unknown, Step: 1,
				Receipts: []abi.Receipt{{Plugin: "webfetch", Tool: "WebFetch", Fuel: 12, Wall: 1500 * time.Microsecond, Hosts: []string{"GET https://x.example:443"}}}},
			{Kind: agent.RecordRun, Run: &agent.RunState{ID: "run_1", Session: "ses_2", Name: "helper", Status: agent.Broken, Error: "no luck"}},
			{Kind: agent.RecordMessage, Message: &note, Own: true, Step: 1},
			{Kind: agent.RecordCompact, Message: &minutes, Keep: 1, Step: 1},
			{Kind: agent.RecordMessage, Message: &last, Model: "m1", Stop: model.StopEnd, Step: 2},
		},
		Notes: []store.Note{{Time: at(2), Kind: noteApproval, Call: "b", Body: json.RawMessage(`{"tool":"Bash","allowed":true,"by":"person","rule":"Bash(echo:*)"}`)}},
		Draft: &model.Message{Role: model.RoleAssistant, Blocks: []model.Block{{Content: &draft}}},
	}
	for i := range t.Records {
		t.Records[i].Seq, t.Records[i].Time = int64(i+1), at(i)
	}
	return t
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s is now\n%s", name, got)
	}
}

func TestExportsAreAsTheyWere(t *testing.T) {
	var md, lines, tail bytes.Buffer
	must(t, sample().WriteMarkdown(&md))
	must(t, sample().WriteJSONL(&lines))
	must(t, sample().WriteTail(&tail, 2))
	golden(t, "session.md", md.Bytes())
	golden(t, "session.jsonl", lines.Bytes())
	golden(t, "tail.md", tail.Bytes())
}

func TestJSONLComesBack(t *testing.T) {
	var lines bytes.Buffer
	must(t, sample().WriteJSONL(&lines))
	back, err := ReadJSONL(&lines)
	must(t, err)
	if a, b := jsonOf(back), jsonOf(sample()); a != b || !reflect.DeepEqual(back.Info, sample().Info) {
		t.Errorf("got %s\nwant %s", a, b)
	}
	for in, want := range map[string]string{
		"":                          "no export",
		"{}":                        "no export",
		"nonsense":                  "line 1",
		`{"type":"session","v":99}`: "newer",
		"\n\n{\"type\":\"record\",\"seq\":\"x\"}": "line 3",
	} {
		if _, err := ReadJSONL(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func FuzzReadJSONL(f *testing.F) {
	var lines bytes.Buffer
	_ = sample().WriteJSONL(&lines)
	f.Add(lines.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		tr, err := ReadJSONL(bytes.NewReader(b))
		if err != nil {
			return
		}
		var out bytes.Buffer
		must(t, tr.WriteMarkdown(&out))
		_, _ = tr.Replay(context.Background())
	})
}
