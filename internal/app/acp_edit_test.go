package app_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/elfhost/elfhost/internal/app"
)

const edit = `{"path":"notes.txt","oldText":"world","newText":"moon"}`

func editing(h *house) {
	h.file("notes.txt", "hello world\n")
	h.script(call("ReadFile", `{"path":"notes.txt"}`), call("EditFile", edit), say("Done."))
}

func TestApprovedEdit(t *testing.T) {
	h := newHouse(t)
	editing(h)
	e := h.start()
	e.hello(sdk.ClientCapabilities{})
	if r := e.ask(e.open(), "change it"); r.StopReason != sdk.StopReasonEndTurn {
		t.Errorf("the turn ended with %s", r.StopReason)
	}
	if got := h.read("notes.txt"); got != "hello moon\n" {
		t.Errorf("the file says %q", got)
	}
	if got := e.said(); got != "Done." {
		t.Errorf("the agent said %q", got)
	}
	c := e.call("EditFile")
	path := filepath.Join(h.dir, "notes.txt")
	if c.title != "EditFile notes.txt" || c.kind != sdk.ToolKindEdit || c.status != "completed" {
		t.Errorf("the call was shown as %+v", c)
	}
	if len(c.locations) != 1 || c.locations[0].Path != path {
		t.Errorf("it is at %v", c.locations)
	}
	if m, ok := c.raw.(map[string]any); !ok || m["newText"] != "moon" {
		t.Errorf("its arguments were shown as %v", c.raw)
	}
	if d := c.diff(); d == nil || d.Path != path || d.OldText == nil || *d.OldText != "hello world\n" || d.NewText != "hello moon\n" {
		t.Errorf("its diff was shown as %+v", d)
	}
	if len(e.questions) != 1 {
		t.Fatalf("%d questions were put", len(e.questions))
	}
	q := e.questions[0]
	ids, names := options(q)
	if !slices.Equal(ids, []string{"allow_once", "allow_always", "reject_once", "reject_always"}) || !strings.Contains(names[1], "EditFile(notes.txt)") {
		t.Errorf("the answers were %q, %q", ids, names)
	}
	text := questionText(q)
	for _, want := range []string{"EditFile wants to change a file", "- world", "+ moon", "asked by the model in step 2"} {
		if !strings.Contains(text, want) {
			t.Errorf("the question lacks %q:\n%s", want, text)
		}
	}
	if d := (final{content: q.ToolCall.Content}).diff(); d == nil || *d.OldText != "world" || d.NewText != "moon" {
		t.Errorf("the question's diff was %+v", d)
	}
}

func TestDeniedEdit(t *testing.T) {
	for answer, why := range map[string]string{"reject_once": "refused", "reject_always": "not be asked again", "": "was not answered", "made_up": "not offered"} {
		t.Run("answer "+answer, func(t *testing.T) {
			h := newHouse(t)
			h.file("notes.txt", "hello world\n")
			h.script(call("ReadFile", `{"path":"notes.txt"}`), call("EditFile", edit), say("It said: {{result}}"))
			e := h.start(func(_ *app.Editor, e *editor) {
				e.permit = func(context.Context, sdk.RequestPermissionRequest) string { return answer }
			})
			e.hello(sdk.ClientCapabilities{})
			e.ask(e.open(), "change it")
			if got := h.read("notes.txt"); got != "hello world\n" {
				t.Errorf("the file says %q", got)
			}
			if c := e.call("EditFile"); c.status != "failed" || c.diff() != nil {
				t.Errorf("the call was shown as %+v", c)
			}
			if got := e.said(); !strings.Contains(got, why) {
				t.Errorf("the model was not told %q: %s", why, got)
			}
		})
	}
}

// TestRejectAlways: what was refused for the session is not asked about again.
func TestRejectAlways(t *testing.T) {
	h := newHouse(t)
	h.file("notes.txt", "hello world\n")
	h.script(call("ReadFile", `{"path":"notes.txt"}`), call("EditFile", edit), call("EditFile", strings.Replace(edit, "moon", "sun", 1)), say("Done."))
	e := h.start(func(_ *app.Editor, e *editor) {
		e.permit = func(context.Context, sdk.RequestPermissionRequest) string { return "reject_always" }
	})
	e.hello(sdk.ClientCapabilities{})
	e.ask(e.open(), "change it")
	if len(e.questions) != 1 || h.read("notes.txt") != "hello world\n" {
		t.Errorf("%d questions, the file says %q", len(e.questions), h.read("notes.txt"))
	}
}

// TestAllowAlways keeps exactly the rule that was shown, past the process.
func TestAllowAlways(t *testing.T) {
	h := newHouse(t)
	editing(h)
	always := func(_ *app.Editor, e *editor) {
		e.permit = func(context.Context, sdk.RequestPermissionRequest) string { return "allow_always" }
	}
	e := h.start(always)
	e.hello(sdk.ClientCapabilities{})
	e.ask(e.open(), "change it")
	kept := ""
	_ = filepath.WalkDir(h.home, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "grants.toml" {
			b, _ := os.ReadFile(path)
			kept += string(b)
		}
		return nil
	})
	if !strings.Contains(kept, "EditFile(notes.txt)") {
		t.Errorf("grants.toml: %s", kept)
	}
	e.leave()
	h.file("notes.txt", "hello world\n")
	e = h.start()
	e.hello(sdk.ClientCapabilities{})
	e.ask(e.open(), "change it again")
	if len(e.questions) != 0 || h.read("notes.txt") != "hello moon\n" {
		t.Errorf("%d questions, the file says %q", len(e.questions), h.read("notes.txt"))
	}
}

// TestUnsavedTextWins: the buffer is read and changed, the disk is not.
func TestUnsavedTextWins(t *testing.T) {
	h := newHouse(t)
	path := h.file("notes.txt", "from the disk\n")
	h.script(call("ReadFile", `{"path":"notes.txt"}`), call("EditFile", edit), call("ReadFile", `{"path":"notes.txt"}`), say("It says {{result}}"))
	e := h.start(func(_ *app.Editor, e *editor) { e.buffers[path] = "hello world, unsaved\n" })
	e.hello(withFiles())
	e.ask(e.open(), "change it")
	if got := e.buffers[path]; got != "hello moon, unsaved\n" {
		t.Errorf("the buffer says %q", got)
	}
	if got := h.read("notes.txt"); got != "from the disk\n" {
		t.Errorf("the disk says %q", got)
	}
	if got := e.said(); !strings.Contains(got, "hello moon, unsaved") {
		t.Errorf("the agent said %q", got)
	}
	if d := e.call("EditFile").diff(); d == nil || *d.OldText != "hello world, unsaved\n" {
		t.Errorf("the diff was %+v", d)
	}
}

// TestFilesThatOnlyTheEditorHolds: each kind of editor is asked about a file
// that the disk does not have, and none makes one up.
func TestFilesThatOnlyTheEditorHolds(t *testing.T) {
	const missing = "does not exist"
	for name, c := range map[string]struct {
		can   sdk.ClientCapabilities
		set   func(e *editor, path string)
		read  string // what the first reading has
		after string // what the buffer, or else the disk, holds in the end; "": nothing
	}{
		"it has an unsaved buffer":                    {withFiles(), func(e *editor, path string) { e.buffers[path] = "hello world, unsaved\n" }, "hello world, unsaved", "hello moon, unsaved\n"},
		"it has files, and not this one":              {withFiles(), func(*editor, string) {}, missing, ""},
		"it says that what it does not know is empty": {withFiles(), func(e *editor, _ string) { e.vague = true }, missing, ""},
		"it has no files":                             {sdk.ClientCapabilities{}, func(e *editor, path string) { e.buffers[path] = "hello world, unsaved\n" }, missing, "hello world, unsaved\n"},
		"it only reads":                               {sdk.ClientCapabilities{Fs: sdk.FileSystemCapabilities{ReadTextFile: true}}, func(e *editor, path string) { e.buffers[path] = "hello world, unsaved\n" }, "hello world, unsaved", "hello world, unsaved\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			path := filepath.Join(h.dir, "notes.txt")
			h.script(call("ReadFile", `{"path":"notes.txt"}`), call("EditFile", edit), say("Done."))
			e := h.start(func(_ *app.Editor, e *editor) { c.set(e, path) })
			e.hello(c.can)
			e.ask(e.open(), "change it")
			if got := e.call("ReadFile").text(); !strings.Contains(got, c.read) {
				t.Errorf("read: %s", got)
			}
			if got := e.buffers[path]; got != c.after {
				t.Errorf("the buffer says %q", got)
			}
			disk, err := os.ReadFile(path)
			if only := name == "it only reads"; only && string(disk) != "hello moon, unsaved\n" || !only && err == nil {
				t.Errorf("the disk says %q: %v", disk, err)
			}
			for _, q := range e.asked {
				if !c.can.Fs.ReadTextFile {
					t.Errorf("it was asked for %s, and has no files", q)
				}
			}
		})
	}
}

func TestWritesGoThroughTheEditor(t *testing.T) {
	h := newHouse(t)
	h.script(call("WriteFile", `{"path":"sub/new.txt","content":"fresh\n"}`), say("It said: {{result}}"))
	e := h.start()
	e.hello(withFiles())
	e.ask(e.open(), "write it")
	path := filepath.Join(h.dir, "sub", "new.txt")
	if !slices.Equal(e.written, []string{path}) || h.read("sub/new.txt") != "fresh\n" {
		t.Errorf("written through the editor: %q", e.written)
	}
	if d := e.call("WriteFile").diff(); d == nil || d.OldText != nil || d.NewText != "fresh\n" {
		t.Errorf("the diff was %+v", d)
	}
}

// TestEditorRefusesAWrite: nothing is written behind its back.
func TestEditorRefusesAWrite(t *testing.T) {
	h := newHouse(t)
	editing(h)
	h.script(call("ReadFile", `{"path":"notes.txt"}`), call("EditFile", edit), say("It said: {{result}}"))
	e := h.start(func(_ *app.Editor, e *editor) {
		e.refuse = &sdk.RequestError{Code: -32603, Message: "Internal error", Data: map[string]any{"details": "the buffer is \x1b[31mlocked"}}
	})
	e.hello(withFiles())
	e.ask(e.open(), "change it")
	if got := h.read("notes.txt"); got != "hello world\n" {
		t.Errorf("the file says %q", got)
	}
	if got := e.said(); !strings.Contains(got, "Test Editor did not write the file: Internal error: the buffer is <U+001B>[31mlocked") {
		t.Errorf("the agent said %q", got)
	}
}

// TestTextThatTheEditorCannotHold: an editor that decodes what is no UTF-8
// would have it written back broken.
func TestTextThatTheEditorCannotHold(t *testing.T) {
	h := newHouse(t)
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
	path := h.file("a.png", png)
	h.script(call("ReadFile", `{"path":"a.png"}`), say("Done."))
	e := h.start(func(_ *app.Editor, e *editor) { e.buffers[path] = strings.ToValidUTF8(png, "\uFFFD") })
	e.hello(withFiles())
	e.ask(e.open(), "look")
	c := e.call("ReadFile")
	found := slices.ContainsFunc(c.content, func(c sdk.ToolCallContent) bool { return c.Content != nil && c.Content.Content.Image != nil })
	if c.status != "completed" || !found {
		t.Errorf("the picture was shown as %+v", c)
	}
}

// TestWhatIsShownIsSafe: a tool's output can neither move a cursor nor become
// a heading, a link or a picture.
func TestWhatIsShownIsSafe(t *testing.T) {
	h := newHouse(t)
	h.file("evil.md", "![x](http://evil.example/?q)\n```\nescape \x1b[2J and \u202eback\n````\n")
	h.script(call("ReadFile", `{"path":"evil.md"}`), "[[turn]]\ntext = \"words \\u001b]0;x\\u0007 and\\ttabs\"\n")
	e := h.start()
	e.hello(sdk.ClientCapabilities{})
	e.ask(e.open(), "read it")
	text := e.call("ReadFile").text()
	if !strings.HasPrefix(text, "`````\n") || !strings.HasSuffix(strings.TrimSpace(text), "\n`````") {
		t.Errorf("the output is not fenced in:\n%s", text)
	}
	for _, all := range []string{text, e.said()} {
		if strings.ContainsAny(all, "\x1b\x07\u202e") {
			t.Errorf("shown raw: %q", all)
		}
	}
	if !strings.Contains(text, "<U+202E>back") || !strings.Contains(e.said(), "and\ttabs") {
		t.Errorf("shown: %q, %q", text, e.said())
	}
}
