package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
)

// stage is a session in which the examples are carried out: a small
// workspace, a web site of one page, a search service and a scripted model.
type stage struct {
	*app.App
	dir  string // the temporary folder of it all
	site *httptest.Server
	said map[string]shown
}

// shown is a call as the page shows it.
type shown struct{ args, text string }

var workspace = map[string]string{
	"ws/notes.md":                        "# Notes\n\nThe parser is done.\n",
	"ws/src/parse.go":                    "package src\n\n// Parse reads a number.\nfunc Parse(s string) int { return len(s) }\n",
	"home/skills/release-notes/SKILL.md": "---\nname: release-notes\ndescription: Use it when somebody asks for release notes.\n---\nList what changed for people, not for programmers.\n",
	"home/commands/review.md":            "---\ndescription: Looks a file over.\nargument-hint: FILE\n---\nReview $1 and name the three worst problems.\n",
}

func newStage(ctx context.Context, dialect string) (*stage, error) {
	dir, err := os.MkdirTemp("", "elf-docs-")
	if err != nil {
		return nil, err
	}
	s := &stage{dir: dir, site: httptest.NewServer(http.HandlerFunc(serve)), said: map[string]shown{}}
	if err := s.furnish(); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	self, err := os.Executable()
	if err == nil {
		home := filepath.Join(dir, "home")
		s.App, err = app.Open(ctx, app.Options{
			Dir: filepath.Join(dir, "ws"), Dialect: dialect, Mode: host.ModeAuto, Env: func(string) string { return "" }, Session: "docs",
			Compiler: self, Terminal: io.Discard, Model: s.model(),
			Allow: []string{"webfetch net.http " + s.site.URL + " GET"},
			Paths: &config.Paths{Config: home, State: filepath.Join(home, "state"), Cache: s.cache(), SystemPolicy: filepath.Join(home, "none")},
		})
	}
	if err == nil {
		err = s.openHub(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

func (s *stage) close(ctx context.Context) error {
	var err error
	if s.App != nil {
		err = s.Close(ctx)
	}
	s.site.Close()
	return errors.Join(err, os.RemoveAll(s.dir))
}

// furnish writes the files.
func (s *stage) furnish() error {
	files := map[string]string{"home/config.toml": fmt.Sprintf("[[search]]\nkind = \"searxng\"\nbase_url = %q\n", s.site.URL), "ws/chart.png": chart()}
	for name, text := range workspace {
		files[name] = text
	}
	for name, text := range files {
		path := filepath.Join(s.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func chart() string {
	m := image.NewPaletted(image.Rect(0, 0, 8, 8), color.Palette{color.RGBA{0, 90, 160, 255}})
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err) // into memory
	}
	return b.String()
}

// serve is the site and the search service.
func serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/search" {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"results": [{"title": "Integer overflow", "url": "https://en.wikipedia.org/wiki/Integer_overflow", "content": "What happens when a number is too large."},
			{"title": "Parsing numbers safely", "url": "https://example.org/safe", "content": "Check before you multiply."}]}`)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprint(w, `<html><head><title>Overflow</title></head><body><nav>Home</nav><article><h1>Overflow</h1><p>A parser that multiplies before it looks <em>overflows</em>: check that the number so far is small enough for another digit, and only then go on with the next one.</p></article></body></html>`)
}

// perform carries the examples out in one conversation, those of tools that
// were seen aside.
func (s *stage) perform(ctx context.Context, seen map[string]bool) error {
	var calls []example
	for _, e := range examples(s.site.URL) {
		if s.Registry.Has(e.tool) && (e.hidden || !seen[e.tool]) {
			calls = append(calls, e)
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, "model.json"), script(calls), 0o644); err != nil {
		return err
	}
	m, err := s.Model(ctx, s.model())
	if err != nil {
		return err
	}
	conversation, err := s.Conversation(ctx, m.Name)
	if err != nil {
		return err
	}
	loop, err := s.Loop(ctx, m, agent.Limits{Steps: len(calls) + 2})
	if err != nil {
		return err
	}
	at := 0
	for e, err := range s.Work(ctx, loop, conversation, abi.TextBlock("Show the tools.")) {
		if err != nil {
			return err
		}
		if e.Kind != agent.KindFinish || e.From != "" || at == len(calls) {
			continue
		}
		if e.Result.IsError && !strings.HasSuffix(calls[at].tool, "Job") { // a job that was killed has failed
			return fmt.Errorf("the example of %s fails: %s", calls[at].tool, e.Result.Text())
		}
		if !calls[at].hidden {
			s.said[calls[at].tool] = shown{args: s.stable(string(e.Call.Args)), text: s.stable(e.Result.Text())}
		}
		at++
	}
	if at < len(calls) {
		return fmt.Errorf("the conversation ended before the example of %s", calls[at].tool)
	}
	return nil
}

// script is the model: one call after the other, and what it says where it
// stands for a sub-agent, another session or a background model.
func script(calls []example) []byte {
	always := func(when map[string]any, text string) map[string]any {
		return map[string]any{"when": when, "always": true, "text": text}
	}
	turns := []map[string]any{
		always(map[string]any{"prompt": "Count the functions"}, "There is one function: Parse."),
		always(map[string]any{"prompt": "Count the methods"}, "There are no methods."),
		always(map[string]any{"prompt": "Which colour"}, "The chart is blue."),
	}
	var take map[string]string
	for _, e := range calls {
		args := e.args
		turn := map[string]any{"call": []map[string]any{{"tool": e.tool, "raw": args}}}
		if take != nil {
			turn["capture"] = take
		}
		take = e.take
		turns = append(turns, turn)
	}
	turns = append(turns, map[string]any{"text": "That is all."})
	b, err := json.Marshal(map[string]any{"turn": turns})
	if err != nil {
		panic(err) // strings alone
	}
	return b
}

var (
	times    = regexp.MustCompile(`20[0-9]{2}-[01][0-9]-[0-3][0-9][ T][0-2][0-9]:[0-5][0-9](:[0-5][0-9])?Z?`)
	spans    = regexp.MustCompile(`\b[0-9.]+(µs|ms|s)\b`)
	fences   = regexp.MustCompile(`page [A-Z0-9]{8}>>>`)
	runs     = regexp.MustCompile(`run_[a-z2-7]+`)
	sessions = regexp.MustCompile(`ses_[a-z2-7]+`)
	clocks   = regexp.MustCompile(`\b[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\b`)
	records  = regexp.MustCompile(`\b[0-9]+ records`)
	shellLog = regexp.MustCompile(`shell-[0-9]+-[0-9]+-[A-Za-z0-9_-]*\.log`)
)

// stable is a text without what differs from run to run.
func (s *stage) stable(text string) string {
	text = strings.NewReplacer(filepath.Join(s.dir, "ws"), "/home/me/project", filepath.Join(s.dir, "home"), "/home/me/.config/elfhost", s.site.URL, "http://127.0.0.1:8080", s.model(), "scripted/model.json", strings.TrimPrefix(s.model(), "scripted/"), "model.json").Replace(text)
	text = times.ReplaceAllString(text, "2026-01-02 15:04")
	text = fences.ReplaceAllString(text, "page KQXWZPLM>>>")
	text = runs.ReplaceAllString(text, "run_c4x7p2qk")
	text = sessions.ReplaceAllString(text, "ses_c4x7p2qk")
	text = clocks.ReplaceAllString(text, "15:04:05")
	text = records.ReplaceAllString(text, "12 records")
	text = shellLog.ReplaceAllString(text, "shell-1.log")
	return spans.ReplaceAllString(text, "1s")
}

// patience bounds the making of one page.
const patience = 3 * time.Minute

// cache keeps the machine code of the bundled plugins from one run to the next.
func (s *stage) cache() string {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "elfhost-docgen")
	}
	return filepath.Join(s.dir, "cache")
}

func (s *stage) model() string { return "scripted/" + filepath.Join(s.dir, "model.json") }
