package app_test

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/elfhost/elfhost/internal/app"
)

func TestInitialize(t *testing.T) {
	h := newHouse(t)
	h.script(say("x"))
	e := h.start()
	if _, err := e.conn.NewSession(e.ctx(), sdk.NewSessionRequest{Cwd: h.dir, McpServers: []sdk.McpServer{}}); code(err) != -32600 {
		t.Errorf("a session before initialize: %v", err)
	}
	r, err := e.conn.Initialize(e.ctx(), sdk.InitializeRequest{ProtocolVersion: 99})
	if err != nil {
		t.Fatal(err)
	}
	c := r.AgentCapabilities
	if r.ProtocolVersion != 1 || !c.LoadSession || !c.PromptCapabilities.Image || !c.PromptCapabilities.EmbeddedContext || c.PromptCapabilities.Audio ||
		!c.McpCapabilities.Http || !c.McpCapabilities.Sse || c.McpCapabilities.Acp ||
		c.SessionCapabilities.List == nil || c.SessionCapabilities.Resume == nil || c.SessionCapabilities.Close == nil || c.SessionCapabilities.Fork != nil {
		t.Errorf("it says of itself %+v", r)
	}
	if r.AuthMethods == nil || len(r.AuthMethods) != 0 || r.AgentInfo == nil || r.AgentInfo.Name != "elfhost" {
		t.Errorf("it says of itself %+v", r)
	}
	if _, err := e.conn.Authenticate(e.ctx(), sdk.AuthenticateRequest{MethodId: "x"}); code(err) != -32602 {
		t.Errorf("authenticate: %v", err)
	}
}

// TestNoKey: the whole screen that a terminal would show, as auth_required.
func TestNoKey(t *testing.T) {
	h := newHouse(t)
	h.file(filepath.Join(h.home, "config.toml"), "offline = true\n")
	e := h.start(func(a *app.Editor, _ *editor) { a.Session.Model = "" })
	e.hello(sdk.ClientCapabilities{})
	_, err := e.conn.NewSession(e.ctx(), sdk.NewSessionRequest{Cwd: h.dir, McpServers: []sdk.McpServer{}})
	if code(err) != -32000 || !strings.Contains(err.Error(), "ANTHROPIC_API_KEY") || !strings.Contains(err.Error(), "there is no model to ask") {
		t.Errorf("without a key: %v", err)
	}
}

func TestWrongSetups(t *testing.T) {
	h := newHouse(t)
	h.script(say("x"))
	e := h.start()
	e.hello(sdk.ClientCapabilities{})
	for name, p := range map[string]sdk.NewSessionRequest{
		"a relative folder":  {Cwd: "here", McpServers: []sdk.McpServer{}},
		"a missing folder":   {Cwd: filepath.Join(h.dir, "gone"), McpServers: []sdk.McpServer{}},
		"more folders":       {Cwd: h.dir, AdditionalDirectories: []string{"/tmp"}, McpServers: []sdk.McpServer{}},
		"a server over acp":  {Cwd: h.dir, McpServers: []sdk.McpServer{{Acp: &sdk.McpServerAcpInline{Type: "acp", Name: "x", Id: "y"}}}},
		"no list of servers": {Cwd: h.dir},
	} {
		if _, err := e.conn.NewSession(e.ctx(), p); code(err) != -32602 {
			t.Errorf("%s: %v", name, err)
		}
	}
	text := []sdk.ContentBlock{sdk.TextBlock("x")}
	if _, err := e.conn.Prompt(e.ctx(), sdk.PromptRequest{SessionId: "ses_nobody", Prompt: text}); code(err) != -32002 {
		t.Errorf("an unknown session: %v", err)
	}
	if _, err := e.conn.LoadSession(e.ctx(), sdk.LoadSessionRequest{SessionId: "ses_nobody", Cwd: h.dir, McpServers: []sdk.McpServer{}}); code(err) != -32002 {
		t.Errorf("an unknown session: %v", err)
	}
	if _, err := e.conn.SetSessionMode(e.ctx(), sdk.SetSessionModeRequest{SessionId: "ses_nobody", ModeId: "ask"}); code(err) != -32002 {
		t.Errorf("an unknown session: %v", err)
	}
	id := e.open()
	if _, err := e.conn.Prompt(e.ctx(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{}}); code(err) != -32602 {
		t.Errorf("an empty prompt: %v", err)
	}
	if _, err := e.conn.Prompt(e.ctx(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.AudioBlock("AAAA", "audio/wav")}}); code(err) != -32602 {
		t.Errorf("sound: %v", err)
	}
	// The beginning of a name is for people.
	e.ask(id, "x")
	if _, err := e.conn.CloseSession(e.ctx(), sdk.CloseSessionRequest{SessionId: id}); err != nil {
		t.Error(err)
	}
	if _, err := e.conn.ResumeSession(e.ctx(), sdk.ResumeSessionRequest{SessionId: id[:10], Cwd: h.dir}); code(err) != -32002 {
		t.Errorf("half a name: %v", err)
	}
	if _, err := e.conn.ResumeSession(e.ctx(), sdk.ResumeSessionRequest{SessionId: id, Cwd: t.TempDir()}); code(err) != -32002 || strings.Contains(err.Error(), "-C names") {
		t.Errorf("another folder's session: %v", err)
	}
}

// TestLoadAfterRestart: another process tells all that was said, and goes on.
func TestLoadAfterRestart(t *testing.T) {
	h := newHouse(t)
	h.file("notes.txt", "hello world\n")
	h.script("[[turn]]\nthinking = 'Let me see.'\ntext = 'Reading.'\n[[turn.call]]\ntool = 'ReadFile'\nargs = { path = 'notes.txt' }\n", say("It is a greeting."), say("Still here."))
	e := h.start()
	e.hello(sdk.ClientCapabilities{})
	id := e.open()
	e.ask(id, "what is it?")
	live := e.calls()
	if !slices.ContainsFunc(e.all(), func(u sdk.SessionNotification) bool {
		return u.Update.SessionInfoUpdate != nil && *u.Update.SessionInfoUpdate.Title == "what is it?"
	}) {
		t.Error("the session was given no title")
	}
	e.leave()

	e = h.start()
	e.hello(sdk.ClientCapabilities{})
	list, err := e.conn.ListSessions(e.ctx(), sdk.ListSessionsRequest{Cwd: &h.dir})
	if err != nil || len(list.Sessions) != 1 || list.Sessions[0].SessionId != id || list.Sessions[0].Cwd != h.dir || *list.Sessions[0].Title != "what is it?" || list.NextCursor != nil {
		t.Fatalf("the list: %+v, %v", list, err)
	}
	other := t.TempDir()
	if none, err := e.conn.ListSessions(e.ctx(), sdk.ListSessionsRequest{Cwd: &other}); err != nil || len(none.Sessions) != 0 {
		t.Errorf("of another folder: %+v, %v", none, err)
	}
	if _, err := e.conn.LoadSession(e.ctx(), sdk.LoadSessionRequest{SessionId: id, Cwd: h.dir, McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	var kinds, texts []string
	for _, u := range e.all() {
		switch u := u.Update; {
		case u.UserMessageChunk != nil:
			kinds, texts = append(kinds, "user"), append(texts, u.UserMessageChunk.Content.Text.Text)
		case u.AgentMessageChunk != nil:
			kinds, texts = append(kinds, "agent"), append(texts, u.AgentMessageChunk.Content.Text.Text)
		case u.AgentThoughtChunk != nil && !strings.HasPrefix(u.AgentThoughtChunk.Content.Text.Text, "Note:"):
			kinds, texts = append(kinds, "thought"), append(texts, u.AgentThoughtChunk.Content.Text.Text)
		case u.ToolCall != nil:
			kinds = append(kinds, "call")
		case u.ToolCallUpdate != nil:
			kinds = append(kinds, "result")
		}
	}
	if !slices.Equal(kinds, []string{"user", "thought", "agent", "call", "result", "agent"}) || !slices.Equal(texts, []string{"what is it?", "Let me see.", "Reading.", "It is a greeting."}) {
		t.Errorf("the past was told as %q, %q", kinds, texts)
	}
	if past := e.calls(); len(past) != 1 || past[0].title != live[0].title || past[0].status != "completed" || past[0].text() != live[0].text() || len(past[0].locations) != 1 {
		t.Errorf("the call was told as %+v, was %+v", past, live)
	}
	if r := e.ask(id, "and now?"); r.StopReason != sdk.StopReasonEndTurn || !strings.HasSuffix(e.said(), "Still here.") {
		t.Errorf("it went on with %q", e.said())
	}
	// Once more, while it is open here: an editor that lost its window.
	if _, err := e.conn.LoadSession(e.ctx(), sdk.LoadSessionRequest{SessionId: id, Cwd: h.dir, McpServers: []sdk.McpServer{}}); err != nil {
		t.Error(err)
	}
	if _, err := e.conn.CloseSession(e.ctx(), sdk.CloseSessionRequest{SessionId: id}); err != nil {
		t.Error(err)
	}
	told := len(e.all())
	if _, err := e.conn.ResumeSession(e.ctx(), sdk.ResumeSessionRequest{SessionId: id, Cwd: h.dir}); err != nil {
		t.Error(err)
	}
	for _, u := range e.all()[told:] {
		if u.Update.UserMessageChunk != nil || u.Update.ToolCall != nil {
			t.Error("resume told the past")
		}
	}
}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="

// TestPromptContent: pictures, links and embedded files reach the conversation.
func TestPromptContent(t *testing.T) {
	h := newHouse(t)
	h.script(say("You said: {{prompt}}"))
	e := h.start()
	e.hello(sdk.ClientCapabilities{})
	id := e.open()
	link := sdk.ResourceLinkBlock("notes.txt", "file://"+h.dir+"/notes.txt")
	_, err := e.conn.Prompt(e.ctx(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{
		sdk.TextBlock("look at"), sdk.ImageBlock(pixel, "image/jpeg"), link,
		sdk.ResourceBlock(sdk.EmbeddedResourceResource{TextResourceContents: &sdk.TextResourceContents{Uri: "file:///a.go", Text: "package a"}}),
		sdk.ResourceBlock(sdk.EmbeddedResourceResource{BlobResourceContents: &sdk.BlobResourceContents{Uri: "file:///b.png", Blob: pixel, MimeType: sdk.Ptr("image/png")}}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := e.said(); !strings.Contains(got, "From file:///a.go:\npackage a") || !strings.Contains(got, "look at") {
		t.Errorf("the model was told %q", got)
	}
	if _, err := e.conn.LoadSession(e.ctx(), sdk.LoadSessionRequest{SessionId: id, Cwd: h.dir, McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	var images, links int
	for _, u := range e.all() {
		if c := u.Update.UserMessageChunk; c != nil {
			switch {
			case c.Content.Image != nil:
				images++
				if c.Content.Image.Data != pixel || c.Content.Image.MimeType != "image/png" { // what it is, not what was said
					t.Errorf("the picture became %+v", c.Content.Image)
				}
			case c.Content.ResourceLink != nil:
				links++
			}
		}
	}
	if images != 2 || links != 1 {
		t.Errorf("%d pictures and %d links were kept", images, links)
	}
	for name, b := range map[string]sdk.ContentBlock{
		"no base64":  sdk.ImageBlock("???", "image/png"),
		"no picture": sdk.ImageBlock(base64.StdEncoding.EncodeToString([]byte("text")), "text/plain"),
		"nothing":    sdk.ImageBlock("", "image/png"),
	} {
		if _, err := e.conn.Prompt(e.ctx(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{b}}); code(err) != -32602 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestModes(t *testing.T) {
	h := newHouse(t)
	editing(h)
	e := h.start()
	e.hello(sdk.ClientCapabilities{})
	r, err := e.conn.NewSession(e.ctx(), sdk.NewSessionRequest{Cwd: h.dir, McpServers: []sdk.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	var modes []string
	for _, m := range r.Modes.AvailableModes {
		modes = append(modes, string(m.Id))
	}
	if !slices.Equal(modes, []string{"plan", "ask", "acceptEdits", "auto"}) || r.Modes.CurrentModeId != "ask" || len(r.ConfigOptions) != 3 {
		t.Errorf("the modes are %q, now %q", modes, r.Modes.CurrentModeId)
	}
	if _, err := e.conn.SetSessionMode(e.ctx(), sdk.SetSessionModeRequest{SessionId: r.SessionId, ModeId: "yolo"}); code(err) != -32602 {
		t.Errorf("an unknown mode: %v", err)
	}
	if _, err := e.conn.SetSessionMode(e.ctx(), sdk.SetSessionModeRequest{SessionId: r.SessionId, ModeId: "acceptEdits"}); err != nil {
		t.Fatal(err)
	}
	e.until("the client is told of the mode", func() bool {
		return slices.ContainsFunc(e.updates, func(u sdk.SessionNotification) bool {
			return u.Update.CurrentModeUpdate != nil && u.Update.CurrentModeUpdate.CurrentModeId == "acceptEdits"
		})
	})
	e.ask(r.SessionId, "change it")
	if len(e.questions) != 0 || h.read("notes.txt") != "hello moon\n" {
		t.Errorf("%d questions, the file says %q", len(e.questions), h.read("notes.txt"))
	}
	set, err := e.conn.SetSessionConfigOption(e.ctx(), sdk.SetSessionConfigOptionRequest{ValueId: &sdk.SetSessionConfigOptionValueId{SessionId: r.SessionId, ConfigId: "mode", Value: "plan"}})
	if err != nil || set.ConfigOptions[0].Select.CurrentValue != "plan" {
		t.Errorf("the option mode: %+v, %v", set, err)
	}
	think := func(word string) (string, error) {
		set, err := e.conn.SetSessionConfigOption(e.ctx(), sdk.SetSessionConfigOptionRequest{ValueId: &sdk.SetSessionConfigOptionValueId{SessionId: r.SessionId, ConfigId: "effort", Value: sdk.SessionConfigValueId(word)}})
		if err != nil {
			return "", err
		}
		return string(set.ConfigOptions[2].Select.CurrentValue), nil
	}
	if now := r.ConfigOptions[2].Select; now.CurrentValue != "default" || now.Category == nil || *now.Category != sdk.SessionConfigOptionCategoryThoughtLevel {
		t.Errorf("the effort at the start: %+v", now)
	}
	for _, word := range []string{"high", "default"} {
		if now, err := think(word); now != word || err != nil {
			t.Errorf("the effort is %q: %v", now, err)
		}
	}
	if _, err := think("lots"); code(err) != -32602 {
		t.Errorf("an unknown effort: %v", err)
	}
}

// TestModesOfThePolicy: what a policy forbids is not offered.
func TestModesOfThePolicy(t *testing.T) {
	h := newHouse(t)
	h.script(say("x"))
	h.file(filepath.Join(h.home, "policy.toml"), "modes = ['plan', 'ask']\n")
	e := h.start()
	e.hello(sdk.ClientCapabilities{})
	r, err := e.conn.NewSession(e.ctx(), sdk.NewSessionRequest{Cwd: h.dir, McpServers: []sdk.McpServer{}})
	if err != nil || len(r.Modes.AvailableModes) != 2 {
		t.Fatalf("offered: %+v, %v", r.Modes, err)
	}
	if _, err := e.conn.SetSessionMode(e.ctx(), sdk.SetSessionModeRequest{SessionId: r.SessionId, ModeId: "auto"}); code(err) != -32602 {
		t.Errorf("a forbidden mode: %v", err)
	}
}

func TestModels(t *testing.T) {
	h := newHouse(t)
	h.script(say("One."), say("One again."))
	two := h.file("two.toml", say("Two."))
	h.file(filepath.Join(h.home, "config.toml"), "[providers.other]\nkind = 'scripted'\nfile = '"+two+"'\nmodels = ['m']\ncontext = 100000\n[prices.\"other/m\"]\ninput = 1000\noutput = 1000\n")
	e := h.start()
	e.hello(sdk.ClientCapabilities{})
	r, err := e.conn.NewSession(e.ctx(), sdk.NewSessionRequest{Cwd: h.dir, McpServers: []sdk.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Models.CurrentModelId != "scripted/script.toml" || len(r.Models.AvailableModels) != 2 || r.Models.AvailableModels[1].ModelId != "other/m" {
		t.Errorf("the models: %+v", r.Models)
	}
	if _, err := e.conn.UnstableSetSessionModel(e.ctx(), sdk.UnstableSetSessionModelRequest{SessionId: r.SessionId, ModelId: "nobody/x"}); code(err) != -32602 {
		t.Errorf("an unknown model: %v", err)
	}
	if _, err := e.conn.UnstableSetSessionModel(e.ctx(), sdk.UnstableSetSessionModelRequest{SessionId: r.SessionId, ModelId: "other/m"}); err != nil {
		t.Fatal(err)
	}
	e.until("the new window is told", func() bool {
		return slices.ContainsFunc(e.updates, func(u sdk.SessionNotification) bool {
			return u.Update.UsageUpdate != nil && u.Update.UsageUpdate.Size == 100000
		})
	})
	e.ask(r.SessionId, "who?")
	if e.said() != "Two." {
		t.Errorf("%q answered", e.said())
	}
	var usage *sdk.SessionUsageUpdate
	for _, u := range e.all() {
		if u.Update.UsageUpdate != nil {
			usage = u.Update.UsageUpdate
		}
	}
	if usage == nil || usage.Size != 100000 || usage.Used == 0 || usage.Cost == nil || usage.Cost.Currency != "USD" || usage.Cost.Amount <= 0 {
		t.Errorf("the usage was told as %+v", usage)
	}
}

// TestCommands: what can be typed after a slash is told, and carried out.
func TestCommands(t *testing.T) {
	h := newHouse(t)
	h.script(say("You said: {{prompt}}"), say("You said: {{prompt}}"), say("x"))
	h.file(filepath.Join(h.home, "commands", "greet.md"), "---\ndescription: Greets\nargument-hint: WHOM\n---\nSay hello to $ARGUMENTS.\n")
	e := h.start()
	e.hello(sdk.ClientCapabilities{})
	id := e.open()
	var list []sdk.AvailableCommand
	e.until("the commands are told", func() bool {
		for _, u := range e.updates { // with the lock held
			if c := u.Update.AvailableCommandsUpdate; c != nil {
				list = c.AvailableCommands
			}
		}
		return list != nil
	})
	if len(list) != 2 || list[0].Name != "compact" || list[1].Name != "greet" || list[1].Description != "Greets" || list[1].Input.Unstructured.Hint != "WHOM" {
		t.Errorf("the commands: %+v", list)
	}
	h.file(filepath.Join(h.home, "commands", "part.md"), "Say goodbye.\n")
	e.until("one that came beside turns is told", func() bool {
		return slices.ContainsFunc(e.updates, func(u sdk.SessionNotification) bool {
			c := u.Update.AvailableCommandsUpdate
			return c != nil && len(c.AvailableCommands) == 3 && c.AvailableCommands[2].Name == "part"
		})
	})
	if e.ask(id, "/greet the moon"); e.said() != "You said: Say hello to the moon." {
		t.Errorf("the model was told %q", e.said())
	}
	if e.ask(id, "/usr/bin is a folder"); !strings.HasSuffix(e.said(), "You said: /usr/bin is a folder") {
		t.Errorf("the model was told %q", e.said())
	}
}

// TestTooManySessions: a client that opens and opens is stopped, until it closes one.
func TestTooManySessions(t *testing.T) {
	h := newHouse(t)
	h.script(say("x"))
	e := h.start()
	e.hello(sdk.ClientCapabilities{})
	var ids []sdk.SessionId
	for {
		r, err := e.conn.NewSession(e.ctx(), sdk.NewSessionRequest{Cwd: h.dir, McpServers: []sdk.McpServer{}})
		if code(err) == -32602 {
			break
		}
		if err != nil || len(ids) > 32 {
			t.Fatalf("session %d: %v", len(ids)+1, err)
		}
		ids = append(ids, r.SessionId)
	}
	if len(ids) != 32 {
		t.Errorf("%d were opened", len(ids))
	}
	if _, err := e.conn.CloseSession(e.ctx(), sdk.CloseSessionRequest{SessionId: ids[3]}); err != nil {
		t.Error(err)
	}
	e.open()
}

func TestAgentEndsWithItsContext(t *testing.T) {
	h := newHouse(t)
	h.script(say("x"))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- app.Editor{Session: app.Options{Env: h.env}}.Serve(ctx, r, w) }()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
