package anthropic

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/google/go-cmp/cmp"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/internal/replay"
)

func open(t *testing.T, s *replay.Server) model.Model {
	t.Helper()
	m, err := New(Options{Key: "sk-ant-test-key-123456789", BaseURL: s.URL}).Open("claude-sonnet-4-20250514")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var (
	weather = model.Tool{Name: "weather", Description: "Get weather information for a location", Input: json.RawMessage(
		`{"type":"object","properties":{"location":{"type":"string","description":"the city"}},"required":["location"]}`)}
	numbers = json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer","description":"first number"},"b":{"type":"integer","description":"second number"}},"required":["a","b"]}`)
)

// same compares a part of our request with the recorded one, cache marks aside.
func same(t *testing.T, what string, recorded, ours map[string]any) {
	t.Helper()
	if d := cmp.Diff(strip(recorded[what]), strip(ours[what])); d != "" {
		t.Errorf("%s differ from the recorded ones (-recorded +ours):\n%s", what, d)
	}
}

func strip(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			if k != "cache_control" && k != "caller" && k != "cache" {
				out[k] = strip(x)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, x := range v {
			out = append(out, strip(x))
		}
		return out
	}
	return v
}

func decode(t *testing.T, s string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(s), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func answers(calls []model.Call, texts ...string) model.Message {
	m := model.Message{Role: model.RoleTool}
	for i, c := range calls {
		m.Blocks = append(m.Blocks, model.Block{Result: &model.CallResult{ID: c.ID, Name: c.Name, Result: abi.Text(texts[i])}})
	}
	return m
}

func TestReplay(t *testing.T) {
	for _, c := range []struct {
		file   string
		req    model.Request
		text   string
		think  string
		calls  []model.Call
		result []string
		end    string
		usage  model.Usage
	}{
		{
			file: "anthropic/simple_streaming.yaml",
			req:  model.Request{System: "You are a helpful assistant", Messages: []model.Message{model.User(abi.TextBlock("Say hi in Portuguese"))}},
			text: "Oi!",
		},
		{
			file:  "anthropic/tool_streaming.yaml",
			req:   model.Request{System: "You are a helpful assistant", Tools: []model.Tool{weather}, Messages: []model.Message{model.User(abi.TextBlock("What's the weather in Florence,Italy?"))}},
			calls: []model.Call{{Name: "weather", Args: `{"location": "Florence,Italy"}`}}, result: []string{"40 C"}, end: "40",
		},
		{
			file: "anthropic/multi_tool_streaming.yaml",
			req: model.Request{System: "You are a helpful assistant. Always use both add and multiply at the same time.",
				Tools:    []model.Tool{{Name: "add", Description: "Add two numbers", Input: numbers}, {Name: "multiply", Description: "Multiply two numbers", Input: numbers}},
				Messages: []model.Message{model.User(abi.TextBlock("Add and multiply the number 2 and 3"))}},
			text:  "I'll add and multiply the numbers 2 and 3 for you.",
			calls: []model.Call{{Name: "add", Args: `{"a": 2, "b": 3}`}, {Name: "multiply", Args: `{"a": 2, "b": 3}`}}, result: []string{"5", "6"},
			end: "2 × 3 = 6", usage: model.Usage{Input: 502, Output: 137},
		},
		{
			file:  "anthropic-thinking/thinking-streaming.yaml",
			req:   model.Request{System: "You are a helpful assistant", Effort: model.EffortLow, Tools: []model.Tool{weather}, Messages: []model.Message{model.User(abi.TextBlock("What's the weather in Florence, Italy?"))}},
			think: "The user is asking for weather information for Florence, Italy",
			calls: []model.Call{{Name: "weather", Args: `{"location": "Florence, Italy"}`}}, result: []string{"40 C"}, end: "40",
		},
	} {
		t.Run(c.file, func(t *testing.T) {
			recorded := replay.Load(t, c.file)
			srv := replay.Serve(t, recorded)
			m := open(t, srv)
			first, err := replay.Ask(t, m, c.req)
			if err != nil {
				t.Fatal(err)
			}
			ours := srv.Requests()[0]
			same(t, "messages", decode(t, recorded[0].Request.Body), ours)
			same(t, "system", decode(t, recorded[0].Request.Body), ours)
			same(t, "tools", decode(t, recorded[0].Request.Body), ours)
			if !strings.Contains(first.Text, c.text) || !strings.Contains(first.Thinking, c.think) {
				t.Errorf("text %q, thinking %q", first.Text, first.Thinking)
			}
			calls := first.Message.Calls()
			for i := range calls {
				if calls[i].ID == "" || i >= len(c.calls) || calls[i].Name != c.calls[i].Name || calls[i].Args != c.calls[i].Args {
					t.Errorf("call %d: %+v", i, calls[i])
				}
			}
			if c.usage.Input > 0 && first.Usage != c.usage || first.Usage.Total() == 0 {
				t.Errorf("usage %+v", first.Usage)
			}
			if len(calls) != len(c.calls) {
				t.Fatalf("%d calls", len(calls))
			}
			if len(calls) == 0 {
				if first.Stop != model.StopEnd {
					t.Errorf("stop %q", first.Stop)
				}
				return
			}
			if first.Stop != model.StopCalls || first.Kinds[model.KindCallStart] != len(calls) {
				t.Errorf("stop %q, %d starts", first.Stop, first.Kinds[model.KindCallStart])
			}
			c.req.Messages = append(c.req.Messages, first.Message, answers(calls, c.result...))
			second, err := replay.Ask(t, m, c.req)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "messages", decode(t, recorded[1].Request.Body), srv.Requests()[1])
			if !strings.Contains(second.Text, c.end) || second.Stop != model.StopEnd {
				t.Errorf("text %q, stop %q", second.Text, second.Stop)
			}
		})
	}
}

func TestReplayWebSearch(t *testing.T) {
	recorded := replay.Load(t, "anthropic-websearch/stream.yaml")
	srv := replay.Serve(t, append(recorded, recorded...))
	m := open(t, srv)
	req := model.Request{System: "You are a helpful assistant", Search: &model.Search{MaxUses: 3},
		Messages: []model.Message{model.User(abi.TextBlock("What is the current population of Tokyo? Cite your source."))}}
	got, err := replay.Ask(t, m, req)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Searches) == 0 || got.Searches[0] != "Tokyo population 2026 current" || got.Stop != model.StopEnd || got.Usage.Searches == 0 {
		t.Errorf("searches %q, stop %q, usage %+v", got.Searches, got.Stop, got.Usage)
	}
	req.Messages = append(req.Messages, got.Message, model.User(abi.TextBlock("And Osaka?")))
	if _, err := replay.Ask(t, m, req); err != nil {
		t.Fatal(err)
	}
	// What the provider did by itself goes back to it word for word.
	kinds := map[string]int{}
	cited := 0
	for _, b := range srv.Requests()[1]["messages"].([]any)[1].(map[string]any)["content"].([]any) {
		block := b.(map[string]any)
		kinds[block["type"].(string)]++
		if block["citations"] != nil {
			cited++
		}
		if block["type"] == "web_search_tool_result" && !strings.Contains(recorded[0].Response.Body, block["content"].([]any)[0].(map[string]any)["encrypted_content"].(string)) {
			t.Error("the encrypted result was changed")
		}
	}
	if kinds["server_tool_use"] == 0 || kinds["server_tool_use"] != kinds["web_search_tool_result"] || cited == 0 {
		t.Errorf("sent back: %v, %d with citations", kinds, cited)
	}
}

const start = `event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"stop_reason":null,"usage":{"input_tokens":5,"output_tokens":1}}}

`
const stop = `event: message_stop
data: {"type":"message_stop"}

`

func delta(reason string) string {
	return "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" + reason + "\"},\"usage\":{\"output_tokens\":9}}\n\n"
}

func toolUse(index int, name string, parts ...string) string {
	i := string(rune('0' + index))
	s := "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":" + i + ",\"content_block\":{\"type\":\"tool_use\",\"id\":\"t" + i + "\",\"name\":\"" + name + "\",\"input\":{}}}\n\n"
	for _, p := range parts {
		b, _ := json.Marshal(p)
		s += "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":" + i + ",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":" + string(b) + "}}\n\n"
	}
	return s + "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":" + i + "}\n\n"
}

func ask(t *testing.T, x replay.Exchange) (*replay.Answer, error) {
	t.Helper()
	return replay.Ask(t, open(t, replay.Serve(t, []replay.Exchange{x})), model.Request{Messages: []model.Message{model.User(abi.TextBlock("go"))}})
}

func TestOddStreams(t *testing.T) {
	text := "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hal\"}}\n\n"
	for name, c := range map[string]struct {
		body string
		code model.Code
		stop model.StopReason
		args []string
		left string
	}{
		"cut":                 {body: start + text, code: model.ErrTruncated, left: "Hal"},
		"cut in a line":       {body: start + text + "event: content_bl", code: model.ErrTruncated, left: "Hal"},
		"overload, mid":       {body: start + text + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", code: model.ErrOverload, left: "Hal"},
		"rate limit, mid":     {body: start + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow\"}}\n\n", code: model.ErrRateLimit},
		"not json":            {body: start + "event: content_block_delta\ndata: {oops\n\n", code: model.ErrMalformed},
		"empty":               {body: "", code: model.ErrTruncated},
		"no arguments":        {body: start + toolUse(0, "now") + delta("tool_use") + stop, stop: model.StopCalls, args: []string{""}},
		"cut arguments":       {body: start + toolUse(0, "read", `{"path": "a`) + delta("max_tokens") + stop, stop: model.StopLength, args: []string{`{"path": "a`}},
		"two at once":         {body: start + toolUse(0, "a", "{", "}") + toolUse(1, "b", `{"x":`, `1}`) + delta("tool_use") + stop, stop: model.StopCalls, args: []string{"{}", `{"x":1}`}},
		"refusal":             {body: start + delta("refusal") + stop, stop: model.StopRefusal},
		"pause":               {body: start + delta("pause_turn") + stop, stop: model.StopPause},
		"a reason of tomorow": {body: start + delta("bored") + stop, stop: model.StopOther},
		"unknown events":      {body: start + "event: shiny\ndata: {\"type\":\"shiny\"}\n\n" + delta("end_turn") + stop, stop: model.StopEnd},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ask(t, replay.Stream(c.body))
			if c.code != "" {
				if !errors.Is(err, c.code) {
					t.Errorf("%v, want %q", err, c.code)
				}
				if m, _ := got.Partial(); m.Text() != c.left {
					t.Errorf("left over: %q", m.Text())
				}
				return
			}
			if err != nil || got.Stop != c.stop {
				t.Fatalf("stop %q, %v", got.Stop, err)
			}
			var args []string
			for _, c := range got.Message.Calls() {
				args = append(args, c.Args)
			}
			if cmp.Diff(c.args, args) != "" {
				t.Errorf("arguments %q", args)
			}
		})
	}
}

func TestRefusedRequests(t *testing.T) {
	got, err := ask(t, replay.Refusal(401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key sk-ant-test-key-123456789"}}`))
	if !errors.Is(err, model.ErrAuth) || strings.Contains(err.Error(), "test-key") || model.Retryable(err) {
		t.Errorf("%v %v", got, err)
	}
	if _, err := ask(t, replay.Refusal(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)); !model.Retryable(err) {
		t.Errorf("%v", err)
	}
}

func TestRequestKeepsToTheRules(t *testing.T) {
	c := model.Call{ID: "c1", Name: "bad name.x", Args: `{"path": "a`}
	srv := replay.Serve(t, []replay.Exchange{replay.Stream(start + delta("end_turn") + stop)})
	_, err := replay.Ask(t, open(t, srv), model.Request{
		System: "s", Tools: []model.Tool{{Name: "t"}},
		Messages: []model.Message{
			model.User(abi.TextBlock("look"), abi.Content{Type: abi.TypeImage, MIMEType: "image/png", Data: []byte("png")}),
			{Role: model.RoleAssistant, Blocks: []model.Block{
				{Thinking: &model.Thinking{Text: "another provider's"}, Native: &model.Native{Provider: "openai", Data: json.RawMessage(`{}`)}}, {Call: &c}}},
			{Role: model.RoleTool, Blocks: []model.Block{{Result: &model.CallResult{ID: "c1", Name: c.Name, Result: abi.Errorf("no")}}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := srv.Requests()[0]
	messages := got["messages"].([]any)
	said := messages[1].(map[string]any)["content"].([]any)
	if len(said) != 1 {
		t.Fatalf("the assistant said %v", said)
	}
	call := said[0].(map[string]any)
	if call["name"] != "bad_name_x" || call["input"].(map[string]any)["malformed_arguments"] != c.Args {
		t.Errorf("call %v", call)
	}
	res := messages[2].(map[string]any)["content"].([]any)[0].(map[string]any)
	if res["is_error"] != true || res["cache_control"] == nil {
		t.Errorf("result %v", res)
	}
	tool := got["tools"].([]any)[0].(map[string]any)
	if tool["cache_control"] == nil || tool["input_schema"].(map[string]any)["type"] != "object" {
		t.Errorf("tool %v", tool)
	}
	image := messages[0].(map[string]any)["content"].([]any)[1].(map[string]any)
	if image["type"] != "image" || image["cache_control"] == nil {
		t.Errorf("image %v", image)
	}
	if h := srv.Headers()[0]; h.Get("X-Api-Key") == "" || h.Get("Anthropic-Version") == "" {
		t.Errorf("headers %v", h)
	}
}

func TestThinkingByModel(t *testing.T) {
	for id, want := range map[string]bool{
		"claude-3-5-haiku-20241022": false, "claude-sonnet-4-20250514": false, "claude-opus-4-1-20250805": false, "claude-sonnet-4-5-20250929": false,
		"claude-opus-4-5": false, "claude-opus-4-6": true, "claude-sonnet-4-7-20270101": true, "claude-opus-5": true, "claude-mythos-preview": true,
	} {
		if got := (&Model{id: id}).adaptive(); got != want {
			t.Errorf("%s: adaptive %v", id, got)
		}
	}
}

// Amid tool calls that were made without thinking, or by another provider,
// the API refuses a budget for it.
func TestThinkingDoesNotBeginAmidCalls(t *testing.T) {
	c := model.Call{ID: "a", Name: "Read", Args: "{}"}
	thought := model.Block{Thinking: &model.Thinking{Text: "hm"}}
	foreign, own := thought, thought
	foreign.Native = &model.Native{Provider: "other", Data: json.RawMessage(`{"type":"thinking"}`)}
	own.Native = &model.Native{Provider: Name, Data: json.RawMessage(`{"type":"thinking","thinking":"hm","signature":"c2ln"}`)}
	for name, k := range map[string]struct {
		before []model.Block
		ended  bool // the calls are answered and done with
		thinks bool
	}{
		"without": {nil, false, false},
		"foreign": {[]model.Block{foreign}, false, false},
		"own":     {[]model.Block{own}, false, true},
		"ended":   {nil, true, true},
	} {
		done := abi.TextBlock("done")
		messages := []model.Message{
			model.User(abi.TextBlock("go")),
			{Role: model.RoleAssistant, Blocks: append(k.before, model.Block{Call: &c})},
			{Role: model.RoleTool, Blocks: []model.Block{{Result: &model.CallResult{ID: "a", Name: "Read", Result: abi.Text("x")}}}},
		}
		if k.ended {
			messages = append(messages, model.Message{Role: model.RoleAssistant, Blocks: []model.Block{{Content: &done}}}, model.User(abi.TextBlock("again")))
		}
		var p sdk.MessageNewParams
		(&Model{id: "claude-sonnet-4-5"}).think(&p, model.Request{Effort: model.EffortLow, Messages: messages})
		if got := p.Thinking.OfEnabled != nil; got != k.thinks {
			t.Errorf("%s: thinking %v", name, got)
		}
	}
}

func TestModels(t *testing.T) {
	srv := replay.Serve(t, []replay.Exchange{replay.Refusal(200, `{"data":[{"type":"model","id":"claude-x","display_name":"Claude X","created_at":"2026-01-01T00:00:00Z","max_input_tokens":200000,"max_tokens":64000}],"has_more":false,"first_id":"claude-x","last_id":"claude-x"}`)})
	got, err := New(Options{Key: "k", BaseURL: srv.URL}).Models(t.Context())
	want := []model.Info{{ID: "claude-x", Name: "Claude X", Window: 200000, MaxOutput: 64000}}
	if err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%+v %v", got, err)
	}
}
