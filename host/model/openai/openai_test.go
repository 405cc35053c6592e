// Over 500 lines: what each kind of server says stands beside what is made of it.

package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/sashabaranov/go-openai"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/internal/replay"
)

func open(t *testing.T, o Options, id string) model.Model {
	t.Helper()
	m, err := New(o).Open(id)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var (
	weather = model.Tool{Name: "weather", Description: "Get weather information for a location", Input: json.RawMessage(
		`{"type":"object","properties":{"location":{"type":"string","description":"the city"}},"required":["location"]}`)}
	numbers = json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer","description":"first number"},"b":{"type":"integer","description":"second number"}},"required":["a","b"]}`)
	both    = []model.Tool{{Name: "add", Description: "Add two numbers", Input: numbers}, {Name: "multiply", Description: "Multiply two numbers", Input: numbers}}
)

func user1(s string) []model.Message { return []model.Message{model.User(abi.TextBlock(s))} }

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
		file, model, name string
		api               API
		req               model.Request
		text, think       string
		calls             []model.Call
		results           []string
		end               string
		usage             model.Usage
	}{
		{file: "openai-chat/simple_streaming.yaml", model: "gpt-4o", api: Chat, req: model.Request{System: "You are a helpful assistant", Messages: user1("Say hi in Portuguese")}, text: "Olá!"},
		{file: "openai-chat/tool_streaming.yaml", model: "gpt-4o", api: Chat,
			req:   model.Request{System: "You are a helpful assistant", Tools: []model.Tool{weather}, Messages: user1("What's the weather in Florence,Italy?")},
			calls: []model.Call{{Name: "weather", Args: `{"location":"Florence, Italy"}`}}, results: []string{"40 C"}, end: "40", usage: model.Usage{Input: 61, Output: 16}},
		{file: "openai-chat/multi_tool_streaming.yaml", model: "gpt-4o", api: Chat,
			req:   model.Request{System: "You are a helpful assistant. Always use both add and multiply at the same time.", Tools: both, Messages: user1("Add and multiply the number 2 and 3")},
			calls: []model.Call{{Name: "add", Args: `{"a": 2, "b": 3}`}, {Name: "multiply", Args: `{"a": 2, "b": 3}`}}, results: []string{"5", "6"}, end: "6", usage: model.Usage{Input: 106, Output: 50}},
		{file: "openai-compatible/simple_streaming.yaml", model: "grok-code-fast-1", name: "xai", api: Chat, req: model.Request{System: "You are a helpful assistant", Messages: user1("Say hi in Portuguese")}, text: "Ol", think: "Portuguese"},
		{file: "openai-compatible/tool_streaming.yaml", model: "grok-code-fast-1", name: "xai", api: Chat,
			req:   model.Request{System: "You are a helpful assistant", Tools: []model.Tool{weather}, Messages: user1("What's the weather in Florence,Italy?")},
			think: "The user asked for the weather", calls: []model.Call{{Name: "weather", Args: `{"location":"Florence,Italy"}`}}, results: []string{"40 C"}, end: "40"},
		{file: "openai-compatible/multi_tool_streaming.yaml", model: "grok-code-fast-1", name: "xai", api: Chat,
			req:   model.Request{System: "You are a helpful assistant. Always use both add and multiply at the same time.", Tools: both, Messages: user1("Add and multiply the number 2 and 3")},
			calls: []model.Call{{Name: "add", Args: `{"a":2,"b":3}`}, {Name: "multiply", Args: `{"a":2,"b":3}`}}, results: []string{"5", "6"}, end: "6",
			usage: model.Usage{Input: 274, CacheRead: 192, Output: 334, Reasoning: 266}},
		{file: "openai-responses/simple_streaming.yaml", model: "gpt-4o", api: Responses, req: model.Request{System: "You are a helpful assistant", Messages: user1("Say hi in Portuguese")}, text: "Olá!"},
		{file: "openai-responses/tool_streaming.yaml", model: "gpt-4o", api: Responses,
			req:   model.Request{System: "You are a helpful assistant", Tools: []model.Tool{weather}, Messages: user1("What's the weather in Florence,Italy?")},
			calls: []model.Call{{Name: "weather", Args: `{"location":"Florence, Italy"}`}}, results: []string{"40 C"}, end: "The current temperature in Florence, Italy is 40°C."},
		{file: "openai-responses/multi_tool_streaming.yaml", model: "gpt-4o", api: Responses,
			req:   model.Request{System: "You are a helpful assistant. Always use both add and multiply at the same time.", Tools: both, Messages: user1("Add and multiply the number 2 and 3")},
			calls: []model.Call{{Name: "add", Args: `{"a":2,"b":3}`}, {Name: "multiply", Args: `{"a":2,"b":3}`}}, results: []string{"5", "6"}, end: "6"},
		{file: "openai-responses-thinking/thinking-streaming.yaml", model: "gpt-5", api: Responses,
			req:   model.Request{System: "You are a helpful assistant", Effort: model.EffortHigh, Tools: []model.Tool{weather}, Messages: user1("What's the weather in Florence, Italy?")},
			think: "**Getting weather info**", calls: []model.Call{{Name: "weather", Args: `{"location":"Florence, Italy"}`}}, results: []string{"40 C"}, end: "40°C (104°F)"},
	} {
		t.Run(c.file, func(t *testing.T) {
			recorded := replay.Load(t, c.file)
			srv := replay.Serve(t, recorded)
			m := open(t, Options{Name: c.name, Key: "sk-test-key-123456789", BaseURL: srv.URL, API: c.api}, c.model)
			first, err := replay.Ask(t, m, c.req)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(first.Text, c.text) || !strings.Contains(first.Thinking, c.think) {
				t.Errorf("text %q, thinking %q", first.Text, first.Thinking)
			}
			if c.usage.Input > 0 && first.Usage != c.usage || first.Usage.Total() == 0 {
				t.Errorf("usage %+v", first.Usage)
			}
			calls := first.Message.Calls()
			if len(calls) != len(c.calls) {
				t.Fatalf("calls %+v", calls)
			}
			for i := range calls {
				if calls[i].ID == "" || calls[i].Name != c.calls[i].Name || calls[i].Args != c.calls[i].Args {
					t.Errorf("call %d: %+v", i, calls[i])
				}
			}
			alike(t, c.api, recorded[0].Request.Body, srv.Requests()[0])
			if len(calls) == 0 {
				if first.Stop != model.StopEnd {
					t.Errorf("stop %q", first.Stop)
				}
				return
			}
			if first.Stop != model.StopCalls {
				t.Errorf("stop %q", first.Stop)
			}
			c.req.Messages = append(c.req.Messages, first.Message, answers(calls, c.results...))
			second, err := replay.Ask(t, m, c.req)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(second.Text, c.end) || second.Stop != model.StopEnd {
				t.Errorf("text %q, stop %q", second.Text, second.Stop)
			}
			alike(t, c.api, recorded[1].Request.Body, srv.Requests()[1])
		})
	}
}

// alike compares the conversation and the tools with the recorded request.
// The recorder put the system prompt into the input, and reasoning nowhere.
func alike(t *testing.T, api API, recorded string, ours map[string]any) {
	t.Helper()
	theirs := decode(t, recorded)
	what := "messages"
	if api == Responses {
		what = "input"
		system := theirs["input"].([]any)[0].(map[string]any)
		if system["content"] != ours["instructions"] {
			t.Errorf("instructions %v", ours["instructions"])
		}
		theirs["input"] = theirs["input"].([]any)[1:]
		var kept []any
		for _, it := range ours["input"].([]any) {
			if it.(map[string]any)["type"] == "reasoning" {
				if it.(map[string]any)["encrypted_content"] == nil || it.(map[string]any)["id"] != nil {
					t.Errorf("reasoning goes back as %v", it)
				}
				continue
			}
			kept = append(kept, it)
		}
		ours["input"] = kept
	}
	for _, key := range []string{what, "tools"} {
		if d := cmp.Diff(loose(theirs[key]), loose(ours[key])); d != "" {
			t.Errorf("%s differ from the recorded ones (-recorded +ours):\n%s", key, d)
		}
	}
	if theirs["include"] != nil && cmp.Diff(theirs["include"], ours["include"]) != "" || ours["stream"] != true {
		t.Errorf("include %v, stream %v", ours["include"], ours["stream"])
	}
}

// loose forgets fields that say what is the default anyway.
func loose(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			if k != "strict" {
				out[k] = loose(x)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, x := range v {
			out = append(out, loose(x))
		}
		return out
	}
	return v
}

func TestReplayWebSearch(t *testing.T) {
	recorded := replay.Load(t, "openai-websearch/stream.yaml")
	srv := replay.Serve(t, append(recorded, recorded...))
	m := open(t, Options{Key: "k", BaseURL: srv.URL, API: Responses}, "gpt-4.1")
	req := model.Request{System: "You are a helpful assistant", Search: &model.Search{}, Messages: user1("What is the current population of Tokyo? Cite your source.")}
	got, err := replay.Ask(t, m, req)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Searches) != 1 || got.Searches[0] != "current population of Tokyo 2024" || got.Usage.Searches != 1 || !strings.Contains(got.Text, "14,328,115") {
		t.Errorf("searches %q, usage %+v, text %q", got.Searches, got.Usage, got.Text)
	}
	req.Messages = append(req.Messages, got.Message, user1("And Osaka?")[0])
	if _, err := replay.Ask(t, m, req); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, it := range srv.Requests()[1]["input"].([]any) {
		if k, ok := it.(map[string]any)["type"].(string); ok {
			kinds = append(kinds, k)
		}
	}
	if strings.Join(kinds, " ") != "web_search_call message" {
		t.Errorf("sent back: %v", kinds)
	}
}

func data(lines ...string) string { return "data: " + strings.Join(lines, "\n\ndata: ") + "\n\n" }

func askOne(t *testing.T, o Options, x replay.Exchange) (*replay.Answer, error) {
	t.Helper()
	o.BaseURL, o.Key = replay.Serve(t, []replay.Exchange{x}).URL, "sk-test-key-123456789"
	return replay.Ask(t, open(t, o, "m"), model.Request{Messages: user1("go")})
}

func TestOddChatStreams(t *testing.T) {
	const text = `{"choices":[{"index":0,"delta":{"content":"Hal"}}]}`
	fin := func(r string) string { return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + r + `"}]}` }
	tool := func(rest string) string { return `{"choices":[{"index":0,"delta":{"tool_calls":[` + rest + `]}}]}` }
	for name, c := range map[string]struct {
		body  string
		code  model.Code
		stop  model.StopReason
		calls []string
		text  string
		think string
	}{
		"cut":                        {body: data(text), code: model.ErrTruncated, text: "Hal"},
		"done, but not finished":     {body: data(text, "[DONE]"), code: model.ErrTruncated, text: "Hal"},
		"cut in a line":              {body: data(text) + `data: {"cho`, code: model.ErrTruncated, text: "Hal"},
		"finished, no done":          {body: data(text, fin("stop")), stop: model.StopEnd, text: "Hal"},
		"error behind a comment":     {body: ": OPENROUTER PROCESSING\n\n" + data(text, `{"error":{"code":429,"message":"slow down"}}`), code: model.ErrRateLimit, text: "Hal"},
		"error object with choices":  {body: data(`{"id":"x","error":{"message":"Provider overloaded","code":503},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}`), code: model.ErrOverload},
		"error in plain words":       {body: data(`{"error":"model runner has unexpectedly stopped"}`), code: model.ErrServer},
		"not json":                   {body: data(`{oops`), code: model.ErrMalformed},
		"many comments":              {body: strings.Repeat(": ping\n\n", 2000) + data(text, fin("stop")), stop: model.StopEnd, text: "Hal"},
		"length":                     {body: data(text, fin("length")), stop: model.StopLength, text: "Hal"},
		"filter":                     {body: data(fin("content_filter")), stop: model.StopRefusal},
		"refusal":                    {body: data(`{"choices":[{"index":0,"delta":{"refusal":"I can't"}}]}`, fin("stop")), stop: model.StopRefusal},
		"another reason":             {body: data(text, fin("bored")), stop: model.StopOther, text: "Hal"},
		"no arguments":               {body: data(tool(`{"index":0,"id":"a","function":{"name":"now","arguments":""}}`), fin("tool_calls")), stop: model.StopCalls, calls: []string{"a now "}},
		"cut arguments":              {body: data(tool(`{"index":0,"id":"a","function":{"name":"r","arguments":"{\"path\": \"a"}}`), fin("length")), stop: model.StopLength, calls: []string{`a r {"path": "a`}},
		"says stop, means calls":     {body: data(tool(`{"index":0,"id":"a","function":{"name":"r","arguments":"{}"}}`), fin("stop")), stop: model.StopCalls, calls: []string{"a r {}"}},
		"all with index 0":           {body: data(tool(`{"index":0,"id":"a","function":{"name":"r","arguments":"{}"}}`), tool(`{"index":0,"id":"b","function":{"name":"s","arguments":"{}"}}`), fin("stop")), stop: model.StopCalls, calls: []string{"a r {}", "b s {}"}},
		"no index":                   {body: data(tool(`{"id":"a","function":{"name":"r","arguments":"{\"x\":"}},{"id":"a","function":{"arguments":"1}"}},{"id":"b","function":{"name":"s","arguments":"{}"}}`), fin("stop")), stop: model.StopCalls, calls: []string{`a r {"x":1}`, "b s {}"}},
		"no id":                      {body: data(tool(`{"function":{"name":"r","arguments":"{}"}},{"function":{"name":"r","arguments":"{}"}}`), fin("stop")), stop: model.StopCalls, calls: []string{"call_1_1 r {}", "call_1_2 r {}"}},
		"arguments are an object":    {body: data(tool(`{"index":0,"id":"a","function":{"name":"r","arguments":{"x":1}}}`), fin("stop")), stop: model.StopCalls, calls: []string{`a r {"x":1}`}},
		"name repeated":              {body: data(tool(`{"index":0,"id":"a","function":{"name":"r","arguments":"{"}}`), tool(`{"index":0,"id":"a","function":{"name":"r","arguments":"}"}}`), fin("stop")), stop: model.StopCalls, calls: []string{"a r {}"}},
		"interleaved":                {body: data(tool(`{"index":0,"id":"a","function":{"name":"r","arguments":"{"}},{"index":1,"id":"b","function":{"name":"s","arguments":"{"}}`), tool(`{"index":1,"function":{"arguments":"}"}},{"index":0,"function":{"arguments":"}"}}`), fin("tool_calls")), stop: model.StopCalls, calls: []string{"a r {}", "b s {}"}},
		"reasoning":                  {body: data(`{"choices":[{"delta":{"reasoning":"hm"}}]}`, text, fin("stop")), stop: model.StopEnd, text: "Hal", think: "hm"},
		"both names for reasoning":   {body: data(`{"choices":[{"delta":{"reasoning":"hm","reasoning_content":"hm"}}]}`, text, fin("stop")), stop: model.StopEnd, text: "Hal", think: "hm"},
		"parts of content":           {body: data(`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"Hal"}]}}]}`, fin("stop")), stop: model.StopEnd, text: "Hal", think: "hm"},
		"a second choice is ignored": {body: data(`{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"Hal"}}]}`, fin("stop")), stop: model.StopEnd, text: "Hal"},
		"sources":                    {body: data(text, `{"choices":[{"delta":{},"finish_reason":"stop"}],"citations":["https://a.example"]}`), stop: model.StopEnd, text: "Hal\n\nSources:\n[1] https://a.example"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := askOne(t, Options{Name: "vendor"}, replay.Stream(c.body))
			if c.code != "" {
				if !errors.Is(err, c.code) {
					t.Errorf("%v, want %q", err, c.code)
				}
				if m, _ := got.Partial(); m.Text() != c.text {
					t.Errorf("left over %q", m.Text())
				}
				return
			}
			if err != nil || got.Stop != c.stop || got.Text != c.text || got.Thinking != c.think {
				t.Fatalf("stop %q, text %q, thinking %q, %v", got.Stop, got.Text, got.Thinking, err)
			}
			var calls []string
			for _, c := range got.Message.Calls() {
				calls = append(calls, c.ID+" "+c.Name+" "+c.Args)
			}
			if d := cmp.Diff(c.calls, calls); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestOddResponseStreams(t *testing.T) {
	const text = `{"type":"response.output_text.delta","delta":"Hal"}`
	for name, c := range map[string]struct {
		body string
		code model.Code
		stop model.StopReason
		args []string
	}{
		"cut":             {body: data(text), code: model.ErrTruncated},
		"failed":          {body: data(text, `{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"slow"}}}`), code: model.ErrRateLimit},
		"failed, window":  {body: data(`{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"too long"}}}`), code: model.ErrWindow},
		"error":           {body: data(`{"type":"error","code":"server_error","message":"oops"}`), code: model.ErrServer},
		"length":          {body: data(`{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}`), stop: model.StopLength},
		"filter":          {body: data(`{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}`), stop: model.StopRefusal},
		"refusal":         {body: data(`{"type":"response.refusal.delta","delta":"No."}`, `{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"refusal","refusal":"No."}]}}`, `{"type":"response.completed","response":{}}`), stop: model.StopRefusal},
		"cut arguments":   {body: data(`{"type":"response.output_item.done","item":{"type":"function_call","call_id":"a","name":"r","arguments":"{\"path\": \"a","status":"incomplete"}}`, `{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}`), stop: model.StopLength, args: []string{`{"path": "a`}},
		"unknown of both": {body: data(`{"type":"response.shiny"}`, `{"type":"response.output_item.done","item":{"type":"shiny"}}`, `{"type":"response.completed","response":{}}`), stop: model.StopEnd},
		"item of nothing": {body: data(`{"type":"response.output_item.done","item":7}`), code: model.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := askOne(t, Options{API: Responses}, replay.Stream(c.body))
			if c.code != "" {
				if !errors.Is(err, c.code) {
					t.Errorf("%v, want %q", err, c.code)
				}
				return
			}
			var args []string
			for _, c := range got.Message.Calls() {
				args = append(args, c.Args)
			}
			if err != nil || got.Stop != c.stop || cmp.Diff(c.args, args) != "" {
				t.Errorf("stop %q, arguments %q, %v", got.Stop, args, err)
			}
		})
	}
}

func TestRefusedRequest(t *testing.T) {
	for _, api := range []API{Chat, Responses} {
		x := replay.Refusal(429, `{"error":{"message":"Rate limit reached for sk-test-key-123456789","type":"tokens","code":"rate_limit_exceeded"}}`)
		x.Response.Headers["Retry-After"] = []string{"3"}
		_, err := askOne(t, Options{API: api}, x)
		var e *model.Error
		if !errors.As(err, &e) || e.Code != model.ErrRateLimit || e.RetryAfter.Seconds() != 3 || strings.Contains(err.Error(), "test-key") {
			t.Errorf("%s: %v", api, err)
		}
	}
}

func TestVendorsOwnFields(t *testing.T) {
	done := replay.Stream(data(`{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"a"}]}}]}`,
		`{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"b","signature":"s"}],"tool_calls":[{"index":0,"id":"c","function":{"name":"t","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`))
	srv := replay.Serve(t, []replay.Exchange{done, done, done})
	req := model.Request{Messages: user1("go"), Effort: model.EffortHigh, Search: &model.Search{Allowed: []string{"a.example"}}}
	router := open(t, Options{Name: "openrouter", BaseURL: srv.URL, Extra: map[string]any{"provider": map[string]any{"order": []string{"x"}}}}, "m")
	got, err := replay.Ask(t, router, req)
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, got.Message, answers(got.Message.Calls(), "x"))
	if _, err := replay.Ask(t, router, req); err != nil {
		t.Fatal(err)
	}
	if _, err := replay.Ask(t, open(t, Options{Name: "xai", BaseURL: srv.URL}, "m"), req); err != nil {
		t.Fatal(err)
	}
	r := srv.Requests()
	if r[0]["reasoning"].(map[string]any)["effort"] != "high" || r[0]["plugins"] == nil || r[0]["provider"] == nil || r[0]["reasoning_effort"] != nil {
		t.Errorf("openrouter: %v", r[0])
	}
	want := []any{map[string]any{"type": "reasoning.text", "index": 0.0, "text": "ab", "signature": "s"}}
	if d := cmp.Diff(want, r[1]["messages"].([]any)[1].(map[string]any)["reasoning_details"]); d != "" {
		t.Errorf("reasoning goes back changed: %s", d)
	}
	if r[2]["messages"].([]any)[1].(map[string]any)["reasoning_details"] != nil {
		t.Error("one vendor's reasoning goes to another")
	}
	if r[2]["reasoning_effort"] != "high" || r[2]["search_parameters"] != nil { // xAI answers 410 to it
		t.Errorf("xai: %v", r[2])
	}
}

// xAI's Responses API has a dialect: the system prompt is a message, reasoning
// goes back with its identifiers, searches do not.
func TestXAIResponses(t *testing.T) {
	first := replay.Stream(data(
		`{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","status":"completed","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"secret"}}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"go"}}}`,
		`{"type":"response.output_text.delta","output_index":2,"item_id":"msg_1","delta":"a moment"}`,
		`{"type":"response.output_item.done","output_index":2,"item":{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"a moment","annotations":[]}]}}`,
		`{"type":"response.output_item.added","output_index":3,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"weather","arguments":""}}`,
		`{"type":"response.output_item.done","output_index":3,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"weather","arguments":"{}"}}`,
		`{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":3}}}}`,
	))
	second := replay.Stream(data(`{"type":"response.done","response":{"status":"completed"}}`))
	srv := replay.Serve(t, []replay.Exchange{first, second})
	if New(Options{Name: "xai"}).opt.API != Responses {
		t.Error("xAI itself is not asked through its Responses API")
	}
	m := open(t, Options{Name: "xai", BaseURL: srv.URL, API: Responses}, "grok-4.7")
	req := model.Request{System: "be brief", CacheKey: "k", Effort: model.EffortHigh, Messages: user1("go"), Search: &model.Search{Blocked: []string{"b.example"}}}
	got, err := replay.Ask(t, m, req)
	if err != nil {
		t.Fatal(err)
	}
	if got.Stop != model.StopCalls || got.Text != "a moment" && got.Message.Text() != "a moment" || got.Usage.Searches != 1 || got.Usage.CacheRead != 4 {
		t.Errorf("%+v", got)
	}
	req.Messages = append(req.Messages, got.Message, answers(got.Message.Calls(), "40 C"))
	if _, err := replay.Ask(t, m, req); err != nil {
		t.Fatal(err)
	}
	r := srv.Requests()
	if r[0]["instructions"] != nil || r[0]["store"] != false || r[0]["prompt_cache_key"] != "k" || r[0]["reasoning"].(map[string]any)["effort"] != "high" {
		t.Errorf("%v", r[0])
	}
	if d := cmp.Diff([]any{map[string]any{"type": "web_search", "filters": map[string]any{"excluded_domains": []any{"b.example"}}}}, r[0]["tools"]); d != "" {
		t.Errorf("search: %s", d)
	}
	want := []any{
		map[string]any{"role": "system", "content": "be brief"},
		map[string]any{"role": "user", "content": []any{map[string]any{"type": "input_text", "text": "go"}}},
		map[string]any{"id": "rs_1", "type": "reasoning", "status": "completed", "summary": []any{map[string]any{"type": "summary_text", "text": "hm"}}, "encrypted_content": "secret"},
		map[string]any{"role": "assistant", "content": "a moment"},
		map[string]any{"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"},
		map[string]any{"type": "function_call_output", "call_id": "call_1", "output": "40 C"},
	}
	if d := cmp.Diff(want, r[1]["input"]); d != "" {
		t.Errorf("what goes back: %s", d)
	}
	if r := mustRequest(New(Options{Name: "xai"}), "grok-4", model.EffortHigh); r.Reasoning != nil {
		t.Error("a model that takes no effort is given one")
	}
}

func mustRequest(p *Provider, id string, e model.Effort) sdk.CreateResponseRequest {
	return (&responses{p: p, id: id}).request(model.Request{Effort: e, Messages: user1("go")})
}

func TestSearches(t *testing.T) {
	for id, want := range map[string]bool{
		"gpt-5.6": true, "gpt-4o": true, "gpt-4.1-nano": false, "gpt-4": false, "o3": true, "grok-4.7": true, "grok-4": true, "grok-3": false, "grok-code-fast-1": false, "llama": false,
	} {
		if Searches(id) != want {
			t.Errorf("%s: %v", id, !want)
		}
	}
}

func TestImagesAndErrorsInChat(t *testing.T) {
	srv := replay.Serve(t, []replay.Exchange{replay.Stream(data(`{"choices":[{"delta":{},"finish_reason":"stop"}]}`))})
	c := model.Call{ID: "a", Name: "Shot", Args: `{"x"`}
	png := abi.Content{Type: abi.TypeImage, MIMEType: "image/png", Data: []byte("png")}
	_, err := replay.Ask(t, open(t, Options{Name: "ollama", BaseURL: srv.URL}, "m"), model.Request{MaxTokens: 77, Messages: []model.Message{
		model.User(abi.TextBlock("look"), png),
		{Role: model.RoleAssistant, Blocks: []model.Block{{Call: &c}}},
		{Role: model.RoleTool, Blocks: []model.Block{{Result: &model.CallResult{ID: "a", Name: "Shot", Result: abi.Result{IsError: true, Content: []abi.Content{png}}}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := srv.Requests()[0]
	m := got["messages"].([]any)
	if got["max_tokens"] != 77.0 || len(m) != 4 {
		t.Fatalf("%v", got)
	}
	if u := m[0].(map[string]any)["content"].([]any)[1].(map[string]any)["image_url"].(map[string]any)["url"]; u != "data:image/png;base64,cG5n" {
		t.Errorf("image %v", u)
	}
	args := m[1].(map[string]any)["tool_calls"].([]any)[0].(map[string]any)["function"].(map[string]any)["arguments"].(string)
	if !json.Valid([]byte(args)) || !strings.Contains(args, "malformed") {
		t.Errorf("arguments %s", args)
	}
	if s := m[2].(map[string]any)["content"].(string); s != "Error: (no output)" {
		t.Errorf("result %q", s)
	}
	if m[3].(map[string]any)["role"] != "user" {
		t.Errorf("the image follows as %v", m[3])
	}
	if srv.Headers()[0].Get("Authorization") != "" && srv.Headers()[0].Get("Authorization") != "Bearer " {
		t.Errorf("a key was sent: %q", srv.Headers()[0].Get("Authorization"))
	}
}

func TestDetect(t *testing.T) {
	ollama := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"object":"list","data":[{"id":"qwen3:8b","object":"model","owned_by":"library"}]}`))
	}))
	defer ollama.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>my app</html>")) }))
	defer page.Close()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"status":"ok"}`)) }))
	defer other.Close()
	found := detect(t.Context(), nil, []Vendor{
		{Name: "gone", BaseURL: "http://127.0.0.1:1/v1", Local: true},
		{Name: "llamacpp", BaseURL: page.URL + "/v1", Local: true},
		{Name: "other", BaseURL: other.URL + "/v1", Local: true},
		{Name: "remote", BaseURL: ollama.URL + "/v1"},
		{Name: "ollama", BaseURL: ollama.URL + "/v1", Local: true},
	})
	if len(found) != 1 || found[0].Vendor.Name != "ollama" || found[0].Models[0].ID != "qwen3:8b" {
		t.Errorf("found %+v", found)
	}
}

func FuzzChat(f *testing.F) {
	f.Add([]byte(`{"choices":[{"delta":{"content":"a","tool_calls":[{"index":0,"id":"x","function":{"name":"n","arguments":"{}"}}]},"finish_reason":"stop"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		a := chatAnswer{out: out{yield: func(model.Event, error) bool { return true }}}
		for _, line := range strings.Split(string(raw), "\n") {
			_ = a.take([]byte(line))
		}
		_ = a.end()
	})
}

func FuzzResponses(f *testing.F) {
	f.Add([]byte(`{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"a"}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		a := responsesAnswer{out: out{yield: func(model.Event, error) bool { return true }}, m: &responses{p: New(Options{})}}
		for _, line := range strings.Split(string(raw), "\n") {
			_ = a.take([]byte(line))
		}
	})
}
