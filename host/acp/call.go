package acp

import (
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
)

func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}

// kindOf is the kind of a tool in the protocol's words.
func kindOf(s host.Spec) sdk.ToolKind {
	switch s.Kind {
	case host.KindRead, host.KindSearch, host.KindEdit, host.KindExecute, host.KindFetch, host.KindThink:
		return sdk.ToolKind(s.Kind)
	}
	return sdk.ToolKindOther
}

// fields are the arguments that say what a call is about.
type fields struct {
	Path      string   `json:"path"`
	Cwd       string   `json:"cwd"`
	Line      int      `json:"line"`
	Offset    int      `json:"offset"`
	Command   string   `json:"command"`
	Args      []string `json:"args"`
	Content   *string  `json:"content"`
	OldText   *string  `json:"oldText"`
	NewText   *string  `json:"newText"`
	OldString *string  `json:"old_string"`
	NewString *string  `json:"new_string"`
	subject   string
}

// read takes out of the arguments what it knows; one of another type hides
// none of the others.
func read(args json.RawMessage) fields {
	var f fields
	var m map[string]json.RawMessage
	if json.Unmarshal(args, &m) != nil {
		return f
	}
	for k, dst := range map[string]any{
		"path": &f.Path, "cwd": &f.Cwd, "line": &f.Line, "offset": &f.Offset, "command": &f.Command, "args": &f.Args, "content": &f.Content,
		"oldText": &f.OldText, "newText": &f.NewText, "old_string": &f.OldString, "new_string": &f.NewString,
	} {
		if v, ok := m[k]; ok {
			_ = json.Unmarshal(v, dst)
		}
	}
	for _, k := range []string{"path", "url", "command", "pattern", "query", "prompt", "name", "title"} {
		var s string
		if json.Unmarshal(m[k], &s) == nil && s != "" {
			f.subject = s
			break
		}
	}
	if f.Command != "" && len(f.Args) > 0 && f.subject == f.Command {
		f.subject += " " + strings.Join(f.Args, " ")
	}
	return f
}

// planOf reads the plan that a call makes.
func planOf(tool, args string) ([]agent.PlanEntry, bool) {
	var p struct {
		Entries []agent.PlanEntry `json:"entries"`
	}
	if !planner(tool) || json.Unmarshal([]byte(args), &p) != nil {
		return nil, false
	}
	return p.Entries, true
}

// title is a call on one line: the tool and what it is about.
func (c *Client) title(sh *shown) string {
	name := c.srv.line(sh.tool, 64)
	if sh.agent != "" {
		name = "[" + c.srv.line(sh.agent, 40) + "] " + name
	}
	if subject := read(sh.args).subject; subject != "" {
		name += " " + c.srv.line(subject, maxTitle-len(name))
	}
	return name
}

// about is the file of the host that a call names. It is told of builtin tools
// alone: what another's argument means is not known.
func (c *Client) about(sh *shown) string {
	switch sh.spec.Kind {
	case host.KindRead, host.KindSearch, host.KindEdit:
	default:
		return ""
	}
	if sh.spec.Origin.Source != host.Builtin {
		return ""
	}
	s, f := c.ses.Load(), read(sh.args)
	if f.Path == "" || s.Tree == nil {
		return ""
	}
	cwd, err := s.Tree.Virtual("", f.Cwd)
	if err != nil {
		return ""
	}
	name, err := s.Tree.Virtual(cwd, f.Path)
	if err != nil {
		return ""
	}
	path, err := s.Tree.Host(name)
	if err != nil {
		return ""
	}
	return path
}

func (c *Client) locations(sh *shown) []sdk.ToolCallLocation {
	if sh.path == "" {
		return nil
	}
	at := sdk.ToolCallLocation{Path: sh.path}
	f := read(sh.args)
	if n := max(f.Line, f.Offset); n > 0 {
		at.Line = &n
	}
	return []sdk.ToolCallLocation{at}
}

// preview is what an edit is about to change, before it was made.
func (c *Client) preview(old *string, sh *shown) (sdk.ToolCallContent, bool) {
	if sh.path == "" || sh.spec.Kind != host.KindEdit {
		return sdk.ToolCallContent{}, false
	}
	f := read(sh.args)
	for _, p := range [][2]*string{{f.OldText, f.NewText}, {f.OldString, f.NewString}, {old, f.Content}} {
		if p[1] != nil {
			return diff(sh.path, p[0], *p[1])
		}
	}
	return sdk.ToolCallContent{}, false
}

func diff(path string, old *string, text string) (sdk.ToolCallContent, bool) {
	if len(text) > maxDiff || old != nil && len(*old) > maxDiff {
		return sdk.ToolCallContent{}, false
	}
	d := sdk.ToolDiffContent(path, text)
	d.Diff.OldText = old
	return d, true
}

// result is what a finished call shows: the diff of an edit, the terminal of a
// command, or what the tool answered.
func (c *Client) result(sh *shown, res *abi.Result) []sdk.ToolCallContent {
	c.mu.Lock()
	ch, changed := c.changes[sh.path]
	if changed = changed && sh.spec.Kind == host.KindEdit; changed {
		delete(c.changes, sh.path)
	}
	terminal, denied := sh.terminal, sh.denied
	c.mu.Unlock()
	failed := res != nil && res.IsError
	var out []sdk.ToolCallContent
	if terminal != "" {
		out = append(out, sdk.ToolTerminalRef(terminal))
	}
	if changed && !failed {
		if d, ok := diff(sh.path, ch.old, ch.text); ok {
			out = append(out, d)
		}
	}
	if res != nil && len(out) == 0 {
		out = c.content(res.Content)
	}
	if len(denied) > 0 {
		out = append(out, c.srv.fence(strings.Join(denied, "\n")))
	}
	return out
}

// content is what a tool answered, for a person: its texts as one, then the rest.
func (c *Client) content(list []abi.Content) (out []sdk.ToolCallContent) {
	var texts []string
	for _, b := range list {
		switch {
		case b.Type == abi.TypeText:
			texts = append(texts, b.Text)
		case b.Type == abi.TypeImage && len(b.Data) <= maxImage:
			out = append(out, sdk.ToolContent(sdk.ImageBlock(base64.StdEncoding.EncodeToString(b.Data), b.MIMEType)))
		case b.Type == abi.TypeResourceLink:
			texts = append(texts, b.Name+" "+b.URI)
		case b.Type == abi.TypeResource && b.Resource != nil:
			texts = append(texts, b.Resource.URI, b.Resource.Text)
		}
	}
	if text := strings.Join(texts, "\n"); strings.TrimSpace(text) != "" {
		out = append([]sdk.ToolCallContent{c.srv.fence(text)}, out...)
	}
	return out
}
