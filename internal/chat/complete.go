package chat

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/archive"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/internal/term"
)

// maxChoices bounds what a folder may offer.
const maxChoices = 500

// complete finds what the end of a text may become: a command, what a command
// takes, or a file of the workspace.
func (c *chat) complete(ctx context.Context, text string) (from int, choices []string) {
	if isCommand(text) && !strings.ContainsAny(text, "\n") {
		name, args, more := strings.Cut(text[1:], " ")
		if !more {
			return 0, matching(c.names(ctx), text, " ")
		}
		if words := c.words(ctx, name); words != nil {
			return len(text) - len(args), matching(words, args, "")
		}
	}
	word := text[strings.LastIndexFunc(text, unicode.IsSpace)+1:]
	word = strings.TrimPrefix(word, "@")
	return c.files(ctx, len(text)-len(word), word)
}

// names are all commands, with their stroke.
func (c *chat) names(ctx context.Context) (out []string) {
	for _, v := range verbs() {
		out = append(out, "/"+v.name)
	}
	for _, cmd := range c.app.Commands.List(ctx, c.app.Rights()) {
		if safe(cmd.Name) {
			out = append(out, "/"+cmd.Name)
		}
	}
	return out
}

// words are what a command takes; nil: anything.
func (c *chat) words(ctx context.Context, command string) []string {
	switch command {
	case "mode":
		return []string{string(host.ModePlan), string(host.ModeAsk), string(host.ModeAcceptEdits), string(host.ModeAuto)}
	case "effort":
		out := []string{"default"}
		for _, e := range model.Efforts() {
			out = append(out, string(e))
		}
		return out
	case "sessions":
		out := []string{}
		all, _ := c.app.Sessions.List(ctx, archive.Query{Origin: c.app.SessionOrigin(), Top: true, Limit: 50})
		for _, s := range all {
			out = append(out, s.ID)
		}
		return out
	}
	return nil
}

// files are what may be read whose names begin so. Hidden ones are offered to
// who began with a dot.
func (c *chat) files(ctx context.Context, from int, word string) (int, []string) {
	if word == "" {
		return from, nil
	}
	dir, base := word[:strings.LastIndexByte(word, '/')+1], word[strings.LastIndexByte(word, '/')+1:]
	folder, err := c.app.Tree.Virtual("", dir)
	if err != nil {
		return from, nil
	}
	entries, err := c.app.Tree.ReadDir(ctx, c.app.Rights(), folder)
	if err != nil {
		return from, nil
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") != strings.HasPrefix(base, ".") || !strings.HasPrefix(name, base) || !safe(name) {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		if out = append(out, dir+name); len(out) == maxChoices {
			break
		}
	}
	return from, out
}

// safe reports a name that a terminal shows as it is.
func safe(name string) bool {
	_, hidden := term.Escape(name)
	return hidden == 0
}

// matching are the words that begin so. One alone gets what ends it.
func matching(words []string, prefix, end string) []string {
	out := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !strings.HasPrefix(w, prefix) })
	if len(out) == 1 {
		out[0] += end
	}
	return out
}
