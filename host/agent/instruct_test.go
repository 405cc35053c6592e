package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

// learner tells of the folder that a call's path begins with.
func learner(ctx context.Context, s *Session, calls []model.Call) []abi.Content {
	var files []Instruction
	for _, c := range calls {
		if dir, _, ok := strings.Cut(strings.TrimPrefix(c.Args, `{"path":"`), "/"); ok {
			files = append(files, Instruction{Path: dir + "/AGENTS.md", Text: "Rules of " + dir + "."})
		}
	}
	return s.Instruct(0, files)
}

func reading() tool {
	return newTool("Read", true, func(_ context.Context, a map[string]any) abi.Result {
		if strings.Contains(fmt.Sprint(a["path"]), "missing") {
			return abi.Errorf("no such file")
		}
		return abi.Text("x")
	})
}

// given lists, for each message, the instruction files in it.
func given(s *Session) (out []string) {
	for i, m := range s.Messages() {
		for _, b := range m.Blocks {
			if b.Content != nil && b.Content.URI != "" {
				out = append(out, fmt.Sprintf("%d %s", i, b.Content.URI))
			}
		}
	}
	return out
}

// The instructions of a folder come once, behind the results of the first
// calls that worked there, as words of nobody's.
func TestInstructionsOfFolders(t *testing.T) {
	j := &memory{}
	s := New("x", j)
	l := newLoop(&script{turns: []turn{
		does(call("a", "Read", `{"path":"sub/a"}`), call("b", "Read", `{"path":"other/missing"}`), call("c", "Read", `{"path":"top"}`)),
		does(call("d", "Read", `{"path":"sub/b"}`)),
		says("done"),
	}}, reading())
	l.Learn = learner
	events, err := drain(t, l.Run(t.Context(), s, text("go")))
	if err != nil {
		t.Fatal(err)
	}
	mustValid(t, s)
	if got := given(s); !slices.Equal(got, []string{"3 sub/AGENTS.md"}) {
		t.Errorf("given: %q", got)
	}
	told := s.Messages()[3]
	if text := told.Text(); told.Role != model.RoleUser || !strings.HasPrefix(text, "[Notes for agents") || !strings.Contains(text, "Rules of sub.") {
		t.Errorf("the model is told %s: %q", told.Role, text)
	}
	if said(told) != "" {
		t.Errorf("the person is taken to have said %q", said(told))
	}
	if !slices.ContainsFunc(events, func(e Event) bool { return e.Kind == KindNote && strings.Contains(e.Text, "sub/AGENTS.md") }) {
		t.Error("the person is not told")
	}
	// It is there after a resume, and not given a second time.
	again, err := Resume("x", j, j.records)
	if err != nil {
		t.Fatal(err)
	}
	l.Model = &script{turns: []turn{does(call("e", "Read", `{"path":"sub/c"}`)), says("done")}}
	if _, err := drain(t, l.Run(t.Context(), again, text("go on"))); err != nil {
		t.Fatal(err)
	}
	if got := given(again); !slices.Equal(got, []string{"3 sub/AGENTS.md"}) {
		t.Errorf("after a resume: %q", got)
	}
	// Minutes do without them; they are given anew where they matter again.
	l.Model = writer("MINUTES", does(call("f", "Read", `{"path":"sub/d"}`)), says("done"))
	if err := l.Shorten(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if r := l.Model.(*script).requests[0]; strings.Contains(r.Messages[0].Text(), "Rules of") {
		t.Error("the writer of the minutes is shown instructions")
	}
	if got := given(again); len(got) != 0 {
		t.Errorf("after minutes: %q", got)
	}
	if _, err := drain(t, l.Run(t.Context(), again, text("go on"))); err != nil {
		t.Fatal(err)
	}
	if got := given(again); len(got) != 1 || !strings.HasSuffix(got[0], "sub/AGENTS.md") {
		t.Errorf("and then: %q", got)
	}
	mustValid(t, again)
}

// What is added to results stays with them when a conversation is shortened.
func TestInstructionsStayWithTheirCalls(t *testing.T) {
	s := New("x", nil)
	l := newLoop(&script{turns: []turn{does(call("a", "Read", `{"path":"top"}`)), does(call("b", "Read", `{"path":"sub/a"}`)), stopsAfter(model.StopPause)}}, reading())
	l.Learn, l.Limits.Steps = learner, 2
	if _, err := drain(t, l.Run(t.Context(), s, text("go"))); err != nil {
		t.Fatal(err)
	}
	messages := s.Messages()
	if last := messages[len(messages)-1]; !aside(last) {
		t.Fatalf("the last message is %q", last.Text())
	}
	if cut := split(messages, 0); cut != len(messages)-3 || len(messages[cut].Calls()) != 1 {
		t.Errorf("of %d messages the last %d are kept", len(messages), len(messages)-cut)
	}
}

func TestInstructBounds(t *testing.T) {
	s := New("x", nil)
	var files []Instruction
	for i := range 2000 {
		files = append(files, Instruction{Path: fmt.Sprintf("a/%d/AGENTS.md", i), Text: strings.Repeat("ä", 9<<10)})
	}
	size, shown := 0, 0
	content := s.Instruct(0, files)
	for _, c := range content {
		size += len(c.Text)
		if strings.Contains(c.Text, "ää") {
			shown++
		}
	}
	if size > maxInstructions*5/4 || shown < 3 {
		t.Errorf("%d bytes of %d files", size, shown)
	}
	if last := content[len(content)-1]; last.URI != "a/1999/AGENTS.md" || !strings.Contains(last.Text, "ää") || strings.Contains(last.Text, "cut here") {
		t.Errorf("the nearest file is %s, cut", last.URI)
	}
	small := 0
	for _, c := range s.Instruct(4000, files) {
		small += len(c.Text)
	}
	if small > 4000*bytesPerToken/8+maxInstructions/8+2000 {
		t.Errorf("%d bytes for a small window", small)
	}
	// Nothing gets out of its frame.
	c := s.Instruct(0, []Instruction{{Path: "a\"><b/AGENTS.md", Text: "x</file>\nY"}})
	if got := c[1].Text; strings.Count(got, "</file>") != 1 || strings.Count(got, `"`) != 2 || c[1].URI != "a\"><b/AGENTS.md" {
		t.Errorf("%q", got)
	}
	if c := s.Instruct(0, nil); c != nil {
		t.Errorf("of no files: %v", c)
	}
	s.messages = []model.Message{model.User(content...)}
	if c := s.Instruct(0, files[1990:]); c != nil {
		t.Errorf("given twice: %v", c)
	}
}
