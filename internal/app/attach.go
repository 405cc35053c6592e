package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/control"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/archive"
	"github.com/elfhost/elfhost/internal/fault"
)

// Bounds of what a person's words bring along.
const (
	maxMentions  = 20
	maxMentioned = 256 << 10 // bytes of text, all files of a prompt together
)

// Image is a picture for a prompt, as a person names it. It is read with the
// Read tool, through the gate: with its rights, and within its bounds.
func (a *App) Image(ctx context.Context, m Chosen, name string) ([]abi.Content, error) {
	const usage = "PNG, JPEG, GIF and WebP pictures of up to 5 MB inside the workspace can be attached"
	if m.Info.TextOnly {
		return nil, fault.New("E1001", "--model names another one", "%s takes no images", m.Name)
	}
	res := a.reads(ctx, mention{path: name})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case res.IsError:
		return nil, fault.New("E1001", usage, "attaching %q: %s", name, plainError(res))
	case !pictured(res):
		return nil, fault.New("E1001", usage, "attaching %q: it is no picture", name)
	}
	return attached(res), nil
}

// Mentioned reads the files that a prompt names with @, and a picture whose
// path is all that it says: what a terminal makes of a file that is dropped on
// it. Notes say what was not read, and why. What is no file, as @someone is
// none, stays what it is. The instructions of the folders that the files lie in
// come with them, where the session s does not hold them yet.
func (a *App) Mentioned(ctx context.Context, m Chosen, s *agent.Session, text string) (content []abi.Content, notes []string) {
	size := 0
	var files []string
	defer func() { content = append(content, a.near(ctx, s, m.Info.Window, files)...) }()
	for i, f := range mentions(text) {
		if ctx.Err() != nil {
			return content, notes
		}
		res, why := abi.Result{}, fmt.Sprintf("a prompt may mention %d files", maxMentions)
		if i < maxMentions {
			res, why = a.mentioned(ctx, m, f)
		}
		if n := len(res.Text()); why == "" && size+n > maxMentioned {
			why = fmt.Sprintf("the files of one prompt may have %d KiB of text together", maxMentioned>>10)
		} else {
			size += n
		}
		switch {
		case why == "":
			if name, err := a.Tree.Virtual("", f.path); err == nil {
				files = append(files, name)
			}
			content = append(content, attached(res)...)
		case why != unnamed:
			notes = append(notes, fmt.Sprintf("@%s was not read: %s", f.path, why))
		}
	}
	return content, notes
}

// unnamed says that words which look like a mention are none.
const unnamed = "?"

// mentioned reads one file, or lists one folder; why says what hindered it.
func (a *App) mentioned(ctx context.Context, m Chosen, f mention) (res abi.Result, why string) {
	virtual, err := a.Tree.Virtual("", f.path)
	if err != nil {
		return res, err.Error()
	}
	st, err := a.Tree.Stat(ctx, a.Rights(), virtual)
	switch {
	case errors.Is(err, fs.ErrNotExist) && (f.bare || !strings.ContainsAny(f.path, "./")):
		return res, unnamed
	case errors.Is(err, fs.ErrNotExist):
		return res, "there is no such file"
	case err == nil && st.IsDir():
		if !a.Registry.Has("ListDir") {
			return res, "it is a folder"
		}
		res = a.call(ctx, "ListDir", map[string]any{"path": f.path})
	default:
		res = a.reads(ctx, f)
	}
	switch {
	case res.IsError:
		return res, plainError(res)
	case pictured(res) && m.Info.TextOnly:
		return abi.Result{}, m.Name + " takes no images"
	case pictured(res):
		return res, ""
	}
	name := strings.NewReplacer(`"`, "'", "\n", " ").Replace(f.path)
	text := strings.ReplaceAll(res.Text(), "</file>", "&lt;/file>")
	return abi.Text(fmt.Sprintf("\n<file path=%q>\n%s\n</file>", name, strings.TrimSuffix(text, "\n"))), ""
}

// reads calls the tool that reads files, in either dialect.
func (a *App) reads(ctx context.Context, f mention) abi.Result {
	tool, from := "Read", "offset"
	if a.acp() {
		tool, from = "ReadFile", "line"
	}
	args := map[string]any{"path": f.path}
	if f.from > 0 {
		args[from] = f.from
	}
	if f.lines > 0 {
		args["limit"] = f.lines
	}
	return a.call(ctx, tool, args)
}

// call calls a tool for the person.
func (a *App) call(ctx context.Context, tool string, args map[string]any) abi.Result {
	raw, err := json.Marshal(args)
	if err != nil {
		return abi.Errorf("%v", err)
	}
	return a.Registry.Invoke(ctx, host.Call{
		ID: "mention-" + archive.NewID(), Tool: tool, Args: raw, Caller: host.Caller{Session: a.Session, Person: true},
	})
}

func pictured(res abi.Result) bool {
	for _, c := range res.Content {
		if c.Type == abi.TypeImage {
			return true
		}
	}
	return false
}

// attached marks content as what came with a person's words.
func attached(res abi.Result) []abi.Content {
	out := append([]abi.Content(nil), res.Content...)
	for i := range out {
		out[i].Name = agent.Attached
	}
	return out
}

// plainError is a failure without the words that are for a model.
func plainError(res abi.Result) string {
	text := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(res.Text()), host.RetryHint))
	return strings.TrimSuffix(text, ".")
}

// mention is a file, and which lines of it; zero: all.
type mention struct {
	path        string
	from, lines int
	bare        bool // not marked by an @: it may be anything
}

var lineRange = regexp.MustCompile(`^(.+)#L?(\d{1,9})(?:-L?(\d{1,9}))?$`)

// mentions are the files that a text may mean, in its order, each once.
func mentions(text string) (out []mention) {
	if name, ok := dropped(text); ok {
		return []mention{{path: name, bare: true}}
	}
	for _, name := range control.Mentions(text) {
		f := mention{path: name}
		if m := lineRange.FindStringSubmatch(name); m != nil {
			f.path = m[1]
			f.from, _ = strconv.Atoi(m[2])
			f.lines = 1
			if last, _ := strconv.Atoi(m[3]); last > f.from {
				f.lines = last - f.from + 1
			} else if m[3] == "" {
				f.lines = 0
			}
			f.from = max(f.from, 1)
		}
		out = append(out, f)
	}
	return out
}

// dropped is the path of a picture that is all of a text, as terminals write
// it: in quotes, with backslashes before what a shell minds, or as a URI.
func dropped(text string) (name string, ok bool) {
	text = strings.TrimSpace(text)
	if text == "" || text[0] == '@' || strings.ContainsAny(text, "\n\x00") {
		return "", false
	}
	quote := text[0]
	switch {
	case (quote == '\'' || quote == '"') && len(text) > 2 && text[len(text)-1] == quote:
		text = text[1 : len(text)-1]
	case strings.HasPrefix(text, "file://"):
		u, err := url.Parse(text)
		if err != nil {
			return "", false
		}
		text = u.Path
	case strings.Contains(text, `\ `) || strings.ContainsAny(text, "/.") && !strings.Contains(text, " "):
		text = escaped.ReplaceAllString(text, "$1")
	default:
		return "", false
	}
	switch strings.ToLower(path.Ext(text)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp":
		return text, true
	}
	return "", false
}

// escaped is a backslash before what a shell minds; others part the names of
// folders on Windows.
var escaped = regexp.MustCompile(`\\([ '"()&;!$\[\]])`)
