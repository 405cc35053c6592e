// Package demo runs elfhost's main job from end to end, on real input and
// without a key: the model is scripted, every tool call is real.
package demo

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/audit"
	"github.com/elfhost/elfhost/host/model/scripted"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/term"
)

//go:embed assets
var assets embed.FS

// Options of a run. Receipt writes a receipt on one line.
type Options struct {
	Out     io.Writer
	Style   term.Style
	Receipt func(abi.Receipt) string
	// Compiler is as in app.Options.
	Compiler string
}

// show is one run of the demo.
type show struct {
	opt      Options
	dir      string // everything lies below it
	page     string // address of the article
	app      *app.App
	receipts []abi.Receipt
	denied   []host.Denied
	ended    agent.Stop
	answer   strings.Builder
}

// Run shows the whole path, a line for each thing as it happens. Nothing of
// the person's own configuration is read, and nothing is left behind.
func Run(ctx context.Context, o Options) (err error) {
	s := &show{opt: o}
	if s.dir, err = os.MkdirTemp("", "elfhost-demo-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	stop, err := s.serve()
	if err != nil {
		return err
	}
	defer stop()
	if err := s.workspace(); err != nil {
		return err
	}
	person, err := newPerson(s)
	if err != nil {
		return err
	}
	defer person.close()
	if err := s.open(ctx, person); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.app.Close(context.WithoutCancel(ctx))) }()
	s.line("the model of this demo is scripted; every tool call below is real")
	if err := s.turn(ctx); err != nil {
		return err
	}
	return s.account()
}

func (s *show) line(format string, args ...any) {
	fmt.Fprintf(s.opt.Out, "%s %s\n", s.opt.Style.Cyan("demo:"), fmt.Sprintf(format, args...))
}

// serve starts the web server with the article, on loopback.
func (s *show) serve() (stop func(), err error) {
	article, err := assets.ReadFile("assets/article.html")
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the demo's web server: %w", err)
	}
	srv := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/log/sandbox.html" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(article)
	})}
	go func() { _ = srv.Serve(l) }()
	s.page = "http://" + l.Addr().String() + "/log/sandbox.html"
	return func() { _ = srv.Close() }, nil
}

// workspace makes the folder that the agent works in.
func (s *show) workspace() error {
	notes, err := assets.ReadFile("assets/notes.md")
	if err != nil {
		return err
	}
	ws := filepath.Join(s.dir, "workspace")
	for name, data := range map[string][]byte{
		"notes.md":          bytes.ReplaceAll(notes, []byte("{{PAGE}}"), []byte(s.page)),
		"build/parser.o":    bytes.Repeat([]byte{0x7f}, 48<<10),
		"build/parser.html": []byte("<p>built</p>\n"),
	} {
		path := filepath.Join(ws, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (s *show) open(ctx context.Context, p host.Approver) error {
	home := filepath.Join(s.dir, "home")
	cache, err := cacheDir(home)
	if err != nil {
		return err
	}
	origin := strings.TrimSuffix(s.page, "/log/sandbox.html")
	s.line("granted to WebFetch beforehand: net.http %s GET", origin)
	s.app, err = app.Open(ctx, app.Options{
		Dir:   filepath.Join(s.dir, "workspace"),
		Paths: &config.Paths{Config: home, State: filepath.Join(home, "state"), Cache: cache, SystemPolicy: filepath.Join(home, "none")},
		Allow: []string{"webfetch net.http " + origin + " GET"},
		Env:   func(string) string { return "" }, Approver: p, Compiler: s.opt.Compiler,
	})
	return err
}

// cacheDir is the person's own cache, so that a second demo does not compile
// again; where there is none, the demo's own.
func cacheDir(home string) (string, error) {
	paths, err := config.FindPaths(os.Getenv)
	if err != nil {
		return filepath.Join(home, "cache"), nil //nolint:nilerr // a person without a home has no cache
	}
	return paths.Cache, os.MkdirAll(paths.Cache, 0o700)
}

// turn runs the agent once.
func (s *show) turn(ctx context.Context) error {
	turns, err := assets.ReadFile("assets/turns.toml")
	if err != nil {
		return err
	}
	m, err := scripted.Parse("turns.toml", turns)
	if err != nil {
		return err
	}
	loop, err := s.app.Loop(ctx, app.Chosen{Name: "scripted/demo", Model: m}, agent.Limits{Steps: 10})
	if err != nil {
		return err
	}
	const prompt = "Do what is open in notes.md."
	s.line("person:  %s", prompt)
	for e, err := range loop.Run(ctx, agent.New(s.app.Session, nil), abi.TextBlock(prompt)) {
		if err != nil {
			return fmt.Errorf("the demo's turn: %w", err)
		}
		s.event(e)
	}
	if s.ended != agent.StopEnd {
		return fmt.Errorf("the demo's turn ended with %q", s.ended)
	}
	return nil
}

func (s *show) event(e agent.Event) {
	switch e.Kind {
	case agent.KindText:
		s.answer.WriteString(e.Text)
	case agent.KindStart:
		s.say()
		s.line("call:    %s %s", e.Call.Name, term.Line(plain(e.Call.Args)))
	case agent.KindProgress:
		if e.Progress != nil && e.Progress.Message != "" {
			s.line("         %s", term.Line(e.Progress.Message))
		}
	case agent.KindDenied:
		s.denied = append(s.denied, *e.Denied)
	case agent.KindFinish:
		s.receipts = append(s.receipts, e.Receipts...)
		for _, r := range e.Receipts {
			s.app.KeepReceipt(r)
		}
		s.result(e)
	case agent.KindDone:
		s.ended = e.Stop
		s.say()
	}
}

func (s *show) say() {
	if t := strings.TrimSpace(s.answer.String()); t != "" {
		s.line("model:   %s", term.Lines(t))
	}
	s.answer.Reset()
}

// result shows the first lines of what a tool answered.
func (s *show) result(e agent.Event) {
	mark := s.opt.Style.Green("ok:")
	if e.Result.IsError {
		mark = s.opt.Style.Red("refused:")
	}
	lines := strings.Split(strings.TrimSpace(e.Result.Text()), "\n")
	const most = 8
	for i, l := range lines {
		if i == most {
			s.line("         … %d lines more", len(lines)-most)
			break
		}
		if i == 0 {
			s.line("%-8s %s", mark, term.Lines(l))
		} else {
			s.line("         %s", term.Lines(l))
		}
	}
	for _, d := range s.denied {
		if d.Allow != "" {
			s.line("         a person could allow it with: %s", term.Line(d.Allow))
		}
	}
	s.denied = nil
}

// account shows what the calls cost and that the log of them is whole.
func (s *show) account() error {
	for _, r := range s.receipts {
		s.line("%s", s.opt.Receipt(r))
	}
	key, err := audit.Key(app.AuditKeyFile(s.app.Paths))
	if err != nil {
		return err
	}
	rep, err := audit.Verify(app.AuditDir(s.app.Paths), key, "")
	if err != nil {
		return err
	}
	if rep.Bad != nil {
		return fmt.Errorf("the audit log: %w", rep.Bad)
	}
	s.line("audit:   %d records, chain verified, head %s", rep.Records, rep.Head)
	return nil
}

// plain shows JSON without the escapes that are for HTML.
func plain(args string) string {
	return strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(args)
}
