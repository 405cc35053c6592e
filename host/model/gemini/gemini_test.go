package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"log"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/internal/replay"
)

func open(t *testing.T, url, id string) model.Model {
	t.Helper()
	p, err := New(Options{Key: "AIzaTestKey123456789", BaseURL: url})
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var (
	weather = model.Tool{Name: "weather", Description: "Get weather information for a location", Input: json.RawMessage(
		`{"type":"OBJECT","properties":{"location":{"type":"STRING","description":"the city"}},"required":["location"]}`)}
	numbers = json.RawMessage(`{"type":"OBJECT","properties":{"a":{"type":"INTEGER","description":"first number"},"b":{"type":"INTEGER","description":"second number"}},"required":["a","b"]}`)
)

func user(s string) []model.Message { return []model.Message{model.User(abi.TextBlock(s))} }

func TestReplay(t *testing.T) {
	for _, c := range []struct {
		file    string
		req     model.Request
		text    string
		think   string
		calls   []string
		results []string
		end     string
		usage   model.Usage
	}{
		{file: "google/simple_streaming.yaml", req: model.Request{System: "You are a helpful assistant", MaxTokens: 4000, Messages: user("Say hi in Portuguese")}, text: "Olá!", usage: model.Usage{Input: 11, Output: 23, Reasoning: 21}},
		{file: "google/tool_streaming.yaml", req: model.Request{System: "You are a helpful assistant", MaxTokens: 4000, Tools: []model.Tool{weather}, Messages: user("What's the weather in Florence,Italy?")},
			calls: []string{`weather {"location": "Florence,Italy"}`}, results: []string{"40 C"}, end: "The weather in Florence,Italy is 40 C.", usage: model.Usage{Input: 54, Output: 58, Reasoning: 43}},
		{file: "google/multi_tool_streaming.yaml", req: model.Request{System: "You are a helpful assistant. Always use both add and multiply at the same time.", MaxTokens: 4000,
			Tools:    []model.Tool{{Name: "add", Description: "Add two numbers", Input: numbers}, {Name: "multiply", Description: "Multiply two numbers", Input: numbers}},
			Messages: user("Add and multiply the number 2 and 3")},
			calls: []string{`add {"b": 3,"a": 2}`, `multiply {"a": 2,"b": 3}`}, results: []string{"5", "6"}, end: "6", usage: model.Usage{Input: 121, Output: 74, Reasoning: 38}},
		{file: "google-thinking/thinking-streaming.yaml", req: model.Request{System: "You are a helpful assistant", Effort: model.EffortLow, Tools: []model.Tool{weather}, Messages: user("What's the weather in Florence, Italy?")},
			think: "**Determining the Weather Inquiry**", calls: []string{`weather {"location": "Florence, Italy"}`}, results: []string{"40 C"}, end: "40 C"},
	} {
		t.Run(c.file, func(t *testing.T) {
			recorded := replay.Load(t, c.file)
			srv := replay.Serve(t, recorded)
			m := open(t, srv.URL, "gemini-2.5-flash")
			first, err := replay.Ask(t, m, c.req)
			if err != nil {
				t.Fatal(err)
			}
			if first.Text != c.text || !strings.Contains(first.Thinking, c.think) {
				t.Errorf("text %q, thinking %q", first.Text, first.Thinking)
			}
			if c.usage.Input > 0 && first.Usage != c.usage || first.Usage.Total() == 0 {
				t.Errorf("usage %+v", first.Usage)
			}
			alike(t, recorded[0], srv, 0)
			var calls []string
			answers := model.Message{Role: model.RoleTool}
			for i, k := range first.Message.Calls() {
				calls = append(calls, k.Name+" "+k.Args)
				answers.Blocks = append(answers.Blocks, model.Block{Result: &model.CallResult{ID: k.ID, Name: k.Name, Result: abi.Text(c.results[i])}})
			}
			if d := cmp.Diff(c.calls, calls); d != "" {
				t.Fatal(d)
			}
			if len(calls) == 0 {
				return
			}
			if first.Stop != model.StopCalls {
				t.Errorf("stop %q", first.Stop)
			}
			c.req.Messages = append(c.req.Messages, first.Message, answers)
			second, err := replay.Ask(t, m, c.req)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(second.Text, c.end) || second.Stop != model.StopEnd {
				t.Errorf("text %q, stop %q", second.Text, second.Stop)
			}
			alike(t, recorded[1], srv, 1)
		})
	}
}

// alike compares the conversation and the tools with the recorded request;
// identifiers of calls are ours to choose.
func alike(t *testing.T, recorded replay.Exchange, srv *replay.Server, n int) {
	t.Helper()
	var theirs map[string]any
	if err := json.Unmarshal([]byte(recorded.Request.Body), &theirs); err != nil {
		t.Fatal(err)
	}
	ours := srv.Requests()[n]
	for _, key := range []string{"contents", "tools", "systemInstruction"} {
		if d := cmp.Diff(loose(theirs[key]), loose(ours[key])); d != "" {
			t.Errorf("%s differ from the recorded ones (-recorded +ours):\n%s", key, d)
		}
	}
	if !strings.HasSuffix(recorded.Request.URL, srv.Paths()[n]) {
		t.Errorf("path %s, recorded %s", srv.Paths()[n], recorded.Request.URL)
	}
}

func loose(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			if k != "id" {
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

func data(events ...string) string {
	return "data: " + strings.Join(events, "\r\n\r\ndata: ") + "\r\n\r\n"
}

func TestOddStreams(t *testing.T) {
	var logged bytes.Buffer
	defer log.SetOutput(log.Writer())
	log.SetOutput(&logged)
	const text = `{"candidates":[{"content":{"parts":[{"text":"Hal"}]}}]}`
	fin := func(r string) string { return `{"candidates":[{"content":{},"finishReason":"` + r + `"}]}` }
	for name, c := range map[string]struct {
		body string
		code model.Code
		stop model.StopReason
		text string
		args []string
	}{
		"cut":             {body: data(text), code: model.ErrTruncated, text: "Hal"},
		"cut in a line":   {body: data(text) + "data: {\"cand", code: model.ErrTruncated, text: "Hal"},
		"error, mid":      {body: data(text, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`), code: model.ErrOverload, text: "Hal"},
		"not json":        {body: data(`{oops`), code: model.ErrMalformed},
		"empty":           {body: "", code: model.ErrTruncated},
		"blocked prompt":  {body: data(`{"promptFeedback":{"blockReason":"SAFETY"}}`), stop: model.StopRefusal},
		"safety":          {body: data(text, fin("SAFETY")), stop: model.StopRefusal, text: "Hal"},
		"length":          {body: data(text, fin("MAX_TOKENS")), stop: model.StopLength, text: "Hal"},
		"malformed call":  {body: data(fin("MALFORMED_FUNCTION_CALL")), code: model.ErrServer},
		"another":         {body: data(text, fin("BORED")), stop: model.StopOther, text: "Hal"},
		"named events":    {body: "event: x\n" + data(text, fin("STOP")), stop: model.StopEnd, text: "Hal"},
		"large numbers":   {body: data(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"t","args":{"id":9007199254740993}}}]},"finishReason":"STOP"}]}`), stop: model.StopCalls, args: []string{`{"id":9007199254740993}`}},
		"no arguments":    {body: data(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"t"}}]},"finishReason":"STOP"}]}`), stop: model.StopCalls, args: []string{""}},
		"text then calls": {body: data(text, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"t","args":{}}},{"functionCall":{"name":"u","args":{}}}]},"finishReason":"STOP"}]}`), stop: model.StopCalls, text: "Hal", args: []string{"{}", "{}"}},
	} {
		t.Run(name, func(t *testing.T) {
			srv := replay.Serve(t, []replay.Exchange{replay.Stream(c.body)})
			got, err := replay.Ask(t, open(t, srv.URL, "gemini-2.5-flash"), model.Request{Messages: user("go")})
			if c.code != "" {
				if !errors.Is(err, c.code) {
					t.Errorf("%v, want %q", err, c.code)
				}
				if m, _ := got.Partial(); m.Text() != c.text {
					t.Errorf("left over %q", m.Text())
				}
				return
			}
			var args []string
			for _, k := range got.Message.Calls() {
				args = append(args, k.Args)
			}
			if err != nil || got.Stop != c.stop || got.Text != c.text || cmp.Diff(c.args, args) != "" {
				t.Errorf("stop %q, text %q, arguments %q, %v", got.Stop, got.Text, args, err)
			}
		})
	}
	if logged.Len() > 0 {
		t.Errorf("the library wrote to the logger: %s", logged.String())
	}
}

func TestRefusedRequest(t *testing.T) {
	srv := replay.Serve(t, []replay.Exchange{replay.Refusal(429, `[{"error":{"code":429,"message":"Quota exceeded for AIzaTestKey123456789","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"32s"}]}}]`)})
	_, err := replay.Ask(t, open(t, srv.URL, "gemini-2.5-flash"), model.Request{Messages: user("go")})
	var e *model.Error
	if !errors.As(err, &e) || e.Code != model.ErrRateLimit || e.RetryAfter.Seconds() != 32 || strings.Contains(err.Error(), "AIzaTest") {
		t.Errorf("%v", err)
	}
	if h := srv.Headers()[0]; h.Get("X-Goog-Api-Key") == "" || strings.Contains(srv.Paths()[0], "AIza") {
		t.Errorf("the key travels as %v, %s", h, srv.Paths()[0])
	}
	if _, err := New(Options{}); !errors.Is(err, model.ErrAuth) {
		t.Errorf("without a key: %v", err)
	}
}

func TestRequest(t *testing.T) {
	done := replay.Stream(data(`{"candidates":[{"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["a","a"]}}]}`))
	srv := replay.Serve(t, []replay.Exchange{done, done})
	c := model.Call{ID: "x", Name: "Shot", Args: `{"n":9007199254740993}`}
	png := abi.Content{Type: abi.TypeImage, MIMEType: "image/png", Data: []byte("png")}
	req := model.Request{
		Effort: model.EffortHigh, Search: &model.Search{}, Schema: json.RawMessage(`{"type":"object"}`),
		Tools: []model.Tool{{Name: "none"}, {Name: "js", Input: json.RawMessage(`{"type":"object","additionalProperties":false}`)}},
		Messages: []model.Message{user("look")[0],
			{Role: model.RoleAssistant, Blocks: []model.Block{{Thinking: &model.Thinking{Text: "hm"}}, {Call: &c}}},
			{Role: model.RoleTool, Blocks: []model.Block{{Result: &model.CallResult{ID: "x", Name: "Shot", Result: abi.Result{IsError: true, Content: []abi.Content{png}}}}}}},
	}
	got, err := replay.Ask(t, open(t, srv.URL, "gemini-3-pro-preview"), req)
	if err != nil || len(got.Searches) != 1 {
		t.Fatalf("%v %v", got.Searches, err)
	}
	if _, err := replay.Ask(t, open(t, srv.URL, "gemini-2.5-pro"), req); err != nil {
		t.Fatal(err)
	}
	three, two := srv.Requests()[0], srv.Requests()[1]
	if n := len(three["tools"].([]any)); n != 2 || len(two["tools"].([]any)) != 1 {
		t.Errorf("search beside functions: %v / %v", three["tools"], two["tools"])
	}
	results := three["contents"].([]any)[2].(map[string]any)["parts"].([]any)
	if len(results) != 2 || results[0].(map[string]any)["functionResponse"].(map[string]any)["response"].(map[string]any)["error"] != "(no output)" {
		t.Errorf("results %v", results)
	}
	config := two["generationConfig"].(map[string]any)
	if config["thinkingConfig"].(map[string]any)["thinkingBudget"] != 24576.0 || config["responseMimeType"] != "application/json" {
		t.Errorf("config %v", config)
	}
	if three["generationConfig"].(map[string]any)["thinkingConfig"].(map[string]any)["thinkingLevel"] != "HIGH" {
		t.Errorf("config %v", three["generationConfig"])
	}
}

func TestModels(t *testing.T) {
	srv := replay.Serve(t, []replay.Exchange{replay.Refusal(200, `{"models":[{"name":"models/gemini-x","displayName":"X","inputTokenLimit":1000,"outputTokenLimit":10,"supportedGenerationMethods":["generateContent"]},{"name":"models/embed","supportedGenerationMethods":["embedContent"]}]}`)})
	p, err := New(Options{Key: "k", BaseURL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Models(t.Context())
	if err != nil || cmp.Diff([]model.Info{{ID: "gemini-x", Name: "X", Window: 1000, MaxOutput: 10}}, got) != "" {
		t.Errorf("%+v %v", got, err)
	}
}

func FuzzTake(f *testing.F) {
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"text":"a","thoughtSignature":"x"}]},"finishReason":"STOP"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		a := answer{yield: func(model.Event, error) bool { return true }}
		for _, line := range strings.Split(string(raw), "\n") {
			_ = a.take([]byte(line))
		}
		_ = a.end()
	})
}

func TestSearches(t *testing.T) {
	for id, want := range map[string]bool{"gemini-3.8-flash": true, "gemini-2.5-pro": false, "gemini-flash-latest": false} {
		if Searches(id, true) != want || !Searches(id, false) {
			t.Errorf("%s", id)
		}
	}
}
