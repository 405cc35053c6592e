// Over 500 lines: one editor, of all the kinds that the tests of ACP need.

package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/elfhost/elfhost/builtins/outline"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/sandbox/compile"
	"github.com/elfhost/elfhost/internal/app"
)

// TestMain is also the helper of the kernel sandbox, the compiler, the parser of
// file_outline, and an MCP server.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case reach.SandboxVerb:
			os.Exit(reach.SandboxMain(os.Args[2:]))
		case outline.Verb:
			os.Exit(outline.Child(os.Stdin, os.Stdout, os.Stderr))
		case compile.Verb:
			os.Exit(compile.Child(os.Args[2:], os.Stdin, os.Stderr))
		case mcpVerb:
			os.Exit(mcpServer())
		}
	}
	os.Exit(m.Run())
}

// patience is how long anything in these tests may take.
const patience = 2 * time.Minute

// editor is the client's side: it records what it is told and answers as the
// test says.
type editor struct {
	t   *testing.T
	dir string // the workspace

	// permit answers questions; nil: allow_once.
	permit func(context.Context, sdk.RequestPermissionRequest) string
	// buffers is unsaved text by path. A write goes there too, if there is one.
	buffers map[string]string
	vague   bool     // files that it does not know are empty
	asked   []string // paths that it was to read
	refuse  error    // of writes
	// zed: commands go to a shell as Zed's do; quotes: with their arguments quoted.
	zed, quotes bool

	conn *sdk.ClientSideConnection
	out  io.WriteCloser // closed: the editor goes away
	done chan error     // of Serve

	mu        sync.Mutex
	updates   []sdk.SessionNotification
	questions []sdk.RequestPermissionRequest
	written   []string
	changed   *sync.Cond
	terminals map[string]*exec.Cmd
	outputs   map[string]*bytes.Buffer
	exits     map[string]chan struct{}
	killed    []string
	released  []string
	created   []sdk.CreateTerminalRequest
}

// house is where agents of one test live: a home that outlasts each of them.
type house struct {
	t    *testing.T
	home string
	dir  string
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, home: t.TempDir(), dir: t.TempDir()}
	h.dir, _ = filepath.EvalSymlinks(h.dir)
	return h
}

func (h *house) file(name, text string) string {
	h.t.Helper()
	path := name
	if !filepath.IsAbs(name) {
		path = filepath.Join(h.dir, name)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		h.t.Fatal(err)
	}
	return path
}

func (h *house) read(name string) string {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(b)
}

// script is a model's turns.
func (h *house) script(turns ...string) { h.file("script.toml", strings.Join(turns, "\n")) }

func call(tool, args string) string {
	return "[[turn]]\n[[turn.call]]\ntool = \"" + tool + "\"\nraw = '''" + args + "'''\n"
}

func say(text string) string { return "[[turn]]\ntext = '''" + text + "'''\n" }

func (h *house) env(key string) string {
	switch key {
	case "ELFHOST_HOME":
		return h.home
	case "PATH", "HOME":
		return os.Getenv(key)
	}
	return ""
}

// start starts an agent and connects to it; set changes either before.
func (h *house) start(set ...func(*app.Editor, *editor)) *editor {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	agent := app.Editor{Session: app.Options{Env: h.env, Model: "scripted/script.toml", Compiler: self}}
	e := &editor{
		t: h.t, dir: h.dir, done: make(chan error, 1), buffers: map[string]string{},
		terminals: map[string]*exec.Cmd{}, outputs: map[string]*bytes.Buffer{}, exits: map[string]chan struct{}{},
	}
	e.changed = sync.NewCond(&e.mu)
	for _, f := range set {
		f(&agent, e)
	}
	fromEditor, toAgent := io.Pipe()
	fromAgent, toEditor := io.Pipe()
	e.out = toAgent
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		e.done <- agent.Serve(ctx, fromEditor, toEditor)
		toEditor.Close()
	}()
	gate := &gate{r: fromAgent, open: make(chan struct{})}
	e.conn = sdk.NewClientSideConnection(e, toAgent, gate)
	e.conn.SetLogger(slog.New(slog.DiscardHandler))
	close(gate.open)
	h.t.Cleanup(func() {
		e.leave()
		cancel()
	})
	return e
}

// gate lets nothing through before the connection is set up.
type gate struct {
	r    io.Reader
	open chan struct{}
}

func (g *gate) Read(p []byte) (int, error) {
	<-g.open
	return g.r.Read(p)
}

// leave closes the editor's side and waits for the agent's end.
func (e *editor) leave() {
	e.out.Close()
	select {
	case err := <-e.done:
		if err != nil {
			e.t.Errorf("Serve: %v", err)
		}
		e.done <- nil
	case <-time.After(patience):
		e.t.Error("the agent did not end with its client")
	}
}

func (e *editor) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	e.t.Cleanup(cancel)
	return ctx
}

// hello initializes with everything that the editor can do.
func (e *editor) hello(can sdk.ClientCapabilities) {
	e.t.Helper()
	is := &sdk.Implementation{Name: "test", Title: sdk.Ptr("Test Editor"), Version: "1"}
	if e.zed {
		is.Name = "zed"
	}
	_, err := e.conn.Initialize(e.ctx(), sdk.InitializeRequest{ProtocolVersion: 1, ClientCapabilities: can, ClientInfo: is})
	if err != nil {
		e.t.Fatal(err)
	}
}

func withFiles() sdk.ClientCapabilities {
	return sdk.ClientCapabilities{Fs: sdk.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true}}
}

func (e *editor) open(servers ...sdk.McpServer) sdk.SessionId {
	e.t.Helper()
	if servers == nil {
		servers = []sdk.McpServer{}
	}
	r, err := e.conn.NewSession(e.ctx(), sdk.NewSessionRequest{Cwd: e.dir, McpServers: servers})
	if err != nil {
		e.t.Fatal(err)
	}
	return r.SessionId
}

func (e *editor) ask(id sdk.SessionId, text string) sdk.PromptResponse {
	e.t.Helper()
	r, err := e.conn.Prompt(e.ctx(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)}})
	if err != nil {
		e.t.Fatal(err)
	}
	return r
}

// until waits for what the agent tells, and fails where it does not.
func (e *editor) until(what string, ok func() bool) {
	e.t.Helper()
	stop := time.AfterFunc(patience, func() { e.mu.Lock(); defer e.mu.Unlock(); e.changed.Broadcast() })
	defer stop.Stop()
	deadline := time.Now().Add(patience)
	e.mu.Lock()
	defer e.mu.Unlock()
	for !ok() {
		if time.Now().After(deadline) {
			e.t.Fatalf("never happened: %s\n%s", what, e.told())
		}
		e.changed.Wait()
	}
}

// told is everything that was shown, for failures.
func (e *editor) told() string {
	b, _ := json.MarshalIndent(e.updates, "", " ")
	return string(b)
}

// all is what was told so far.
func (e *editor) all() []sdk.SessionNotification {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]sdk.SessionNotification(nil), e.updates...)
}

// said joins the agent's words.
func (e *editor) said() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b strings.Builder
	for _, u := range e.updates {
		if m := u.Update.AgentMessageChunk; m != nil && m.Content.Text != nil {
			b.WriteString(m.Content.Text.Text)
		}
	}
	return b.String()
}

// final is a call as it stands after all its updates.
type final struct {
	title, status string
	kind          sdk.ToolKind
	content       []sdk.ToolCallContent
	locations     []sdk.ToolCallLocation
	raw, out      any
}

func (f final) text() string {
	var b strings.Builder
	for _, c := range f.content {
		if c.Content != nil && c.Content.Content.Text != nil {
			b.WriteString(c.Content.Content.Text.Text + "\n")
		}
	}
	return b.String()
}

func (f final) diff() *sdk.ToolCallContentDiff {
	for _, c := range f.content {
		if c.Diff != nil {
			return c.Diff
		}
	}
	return nil
}

// calls are those that the client was told of, in order.
func (e *editor) calls() []final {
	e.mu.Lock()
	defer e.mu.Unlock()
	var order []sdk.ToolCallId
	all := map[sdk.ToolCallId]*final{}
	for _, u := range e.updates {
		if c := u.Update.ToolCall; c != nil {
			if all[c.ToolCallId] != nil {
				e.t.Errorf("the call %s is told of twice", c.ToolCallId)
			}
			order = append(order, c.ToolCallId)
			all[c.ToolCallId] = &final{title: c.Title, status: string(c.Status), kind: c.Kind, content: c.Content, locations: c.Locations, raw: c.RawInput, out: c.RawOutput}
		}
		c := u.Update.ToolCallUpdate
		if c == nil {
			continue
		}
		f := all[c.ToolCallId]
		if f == nil {
			e.t.Errorf("an update of %s, which was never told of", c.ToolCallId)
			continue
		}
		if c.Status != nil {
			f.status = string(*c.Status)
		}
		if c.Title != nil {
			f.title = *c.Title
		}
		if c.Content != nil {
			f.content = c.Content
		}
		if c.Locations != nil {
			f.locations = c.Locations
		}
		if c.RawInput != nil {
			f.raw = c.RawInput
		}
		if c.RawOutput != nil {
			f.out = c.RawOutput
		}
	}
	var out []final
	for _, id := range order {
		out = append(out, *all[id])
	}
	return out
}

func (e *editor) call(tool string) final {
	e.t.Helper()
	for _, f := range e.calls() {
		if strings.HasPrefix(f.title, tool) {
			return f
		}
	}
	e.t.Fatalf("no call of %s was told of", tool)
	return final{}
}

func code(err error) int {
	var e *sdk.RequestError
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// The client's methods.

func (e *editor) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.updates = append(e.updates, n)
	e.changed.Broadcast()
	return nil
}

func (e *editor) RequestPermission(ctx context.Context, q sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	e.mu.Lock()
	e.questions = append(e.questions, q)
	e.changed.Broadcast()
	e.mu.Unlock()
	id := "allow_once"
	if e.permit != nil {
		id = e.permit(ctx, q)
	}
	if id == "" {
		return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}, nil
	}
	return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(id))}, nil
}

func (e *editor) ReadTextFile(_ context.Context, q sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	text, ok := e.buffers[q.Path]
	e.asked = append(e.asked, q.Path)
	if !ok && !e.vague {
		return sdk.ReadTextFileResponse{}, &sdk.RequestError{Code: -32002, Message: "Resource not found"}
	}
	return sdk.ReadTextFileResponse{Content: text}, nil
}

func (e *editor) WriteTextFile(_ context.Context, q sdk.WriteTextFileRequest) (sdk.WriteTextFileResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.written = append(e.written, q.Path)
	if e.refuse != nil {
		return sdk.WriteTextFileResponse{}, e.refuse
	}
	if _, open := e.buffers[q.Path]; open {
		e.buffers[q.Path] = q.Content
		return sdk.WriteTextFileResponse{}, nil
	}
	return sdk.WriteTextFileResponse{}, os.WriteFile(q.Path, []byte(q.Content), 0o644)
}

func (e *editor) CreateTerminal(_ context.Context, q sdk.CreateTerminalRequest) (sdk.CreateTerminalResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.created = append(e.created, q)
	id := fmt.Sprintf("term-%d", len(e.created))
	cmd := exec.Command(q.Command, q.Args...)
	if e.zed {
		line := q.Command
		for _, a := range q.Args {
			if e.quotes {
				a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
			}
			line += " " + a
		}
		cmd = exec.Command("/bin/sh", "-c", "("+line+") </dev/null")
	}
	cmd.Dir, cmd.Env = *q.Cwd, os.Environ()
	for _, v := range q.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return sdk.CreateTerminalResponse{}, err
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	e.terminals[id], e.outputs[id], e.exits[id] = cmd, out, exited
	return sdk.CreateTerminalResponse{TerminalId: id}, nil
}

func (e *editor) WaitForTerminalExit(_ context.Context, q sdk.WaitForTerminalExitRequest) (sdk.WaitForTerminalExitResponse, error) {
	e.mu.Lock()
	exited, cmd := e.exits[q.TerminalId], e.terminals[q.TerminalId]
	e.mu.Unlock()
	<-exited
	if n := cmd.ProcessState.ExitCode(); n >= 0 {
		return sdk.WaitForTerminalExitResponse{ExitCode: &n}, nil
	}
	return sdk.WaitForTerminalExitResponse{Signal: sdk.Ptr("SIGKILL")}, nil
}

func (e *editor) TerminalOutput(_ context.Context, q sdk.TerminalOutputRequest) (sdk.TerminalOutputResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	<-e.exits[q.TerminalId]
	return sdk.TerminalOutputResponse{Output: e.outputs[q.TerminalId].String()}, nil
}

func (e *editor) KillTerminal(_ context.Context, q sdk.KillTerminalRequest) (sdk.KillTerminalResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.killed = append(e.killed, q.TerminalId)
	return sdk.KillTerminalResponse{}, e.terminals[q.TerminalId].Process.Kill()
}

func (e *editor) ReleaseTerminal(_ context.Context, q sdk.ReleaseTerminalRequest) (sdk.ReleaseTerminalResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.released = append(e.released, q.TerminalId)
	e.changed.Broadcast()
	return sdk.ReleaseTerminalResponse{}, nil
}

// options are the identifiers and names of a question's answers.
func options(q sdk.RequestPermissionRequest) (ids, names []string) {
	for _, o := range q.Options {
		ids, names = append(ids, string(o.OptionId)), append(names, o.Name)
	}
	return ids, names
}

func questionText(q sdk.RequestPermissionRequest) string {
	return final{content: q.ToolCall.Content}.text()
}
