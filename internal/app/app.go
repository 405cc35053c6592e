// Package app assembles the house for one session: the policy, the brokers,
// the gate, the registry with its tools in the order of tools.go, the audit
// log and the models. Every verb that calls a tool opens an App.
//
// Opening is cheap: nothing is compiled, started or fetched before it is needed.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/elfhost/elfhost/builtins/control"
	"github.com/elfhost/elfhost/builtins/files"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/acp"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/archive"
	"github.com/elfhost/elfhost/host/audit"
	"github.com/elfhost/elfhost/host/mcp"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/reach/secret"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/hooks"
)

// Options say how a session starts. The zero value is a session in the
// current folder in which nobody can be asked.
type Options struct {
	Dir      string // the workspace; "": the current folder
	Mode     host.Mode
	Dialect  string        // "tinyelf", "acp", or "" for what the configuration says
	Model    string        // as --model names it; "": see Model
	Effort   *model.Effort // of that model; nil: what the configuration says
	Tools    []string      // names to keep; nil: all
	Plugins  []string      // folders with elf.toml and plugin.wasm, for this session alone
	Allow    []string      // rules and grants for this session alone, as `--allow` takes them
	Session  string        // its name; "": a new random one
	Kept     Kept          // whether it goes on with an earlier one, and is written down
	Origin   string        // whose sessions these are, beside the folder; "": the person's at this machine
	Env      func(string) string
	Approver host.Approver // nil: a question is a denial
	Log      *slog.Logger  // nil: nothing is logged
	Paths    *config.Paths // nil: found through Env
	Files    files.State   // what was read; nil: one that is kept with the session
	Compiler string        // the program that knows compile.Verb, mostly this one; "": no plugin can be called
	Offline  bool          // use no network, whatever the configuration says
	Terminal io.Writer     // where a bell may be rung; nil: nowhere
	Client   *acp.Client   // the editor that the session is for; nil: none
	Servers  []acp.Server  // MCP servers that it brought along
	// Logged is given what plugins log and write to standard output and error,
	// by many goroutines at once; nil: Log has it.
	Logged func(sandbox.LogLine)
	// Heard is given what MCP servers log and do wrong, in parallel; level is the
	// server's, or "stderr". nil: Log has it. Warnings and worse are notes as well.
	Heard func(server, level, text string)
	// Follow takes up what `elfhost plugin dev` builds of Plugins while the
	// session runs. Told is then told of it, by another goroutine; nil: TakeNotes.
	Follow bool
	Told   func(text string)
	// OwnTerminals keeps commands in our kernel sandbox where Client has terminals.
	OwnTerminals bool
	// Keeper ends the session's programs when this process is killed; nil: see
	// reach.Runner. Whoever made it closes it, after the session.
	Keeper *reach.Keeper
}

// App is one session, ready to work. Close it.
type App struct {
	Dir      string // the workspace, absolute
	Session  string
	Paths    config.Paths
	Config   *config.Config
	Policy   *policy.Policy
	Gate     *host.Gate
	Registry *host.Registry
	Tree     *reach.Tree
	HTTP     *reach.HTTP
	Secrets  *secret.Vault
	Runner   *reach.Runner
	Loader   *sandbox.Loader
	Audit    *audit.Log
	Plugins  []*sandbox.Plugin
	MCP      *mcp.Client // servers start with MCP.Start, or at a call

	all      *host.Registry   // every tool; Registry may be a view of it
	Sessions *archive.Archive // opens nothing before it is used
	Plans    *control.Plans
	Commands *control.Commands
	Runs     *agent.Runs // the sub-agents
	Hooks    *hooks.Hooks

	opt      Options
	env      func(string) string
	seen     *seen  // what was read; nil: Options.Files
	from     string // the session that this one goes on with, or copies
	grants   *grants
	kernel   chan reach.Sandbox // probed while the rest is opened
	packages []pack             // bundled, and of --plugin; see packs
	installs *installs
	offers   offers
	hub      *hubTools
	atStart  chan loaded // what is installed, read while the rest is opened
	closers  []func(context.Context) error
	unfollow func()      // nil: nothing is followed
	began    atomic.Bool // hooks were told of the session
	titled   atomic.Bool // its title was asked for
	scene    scene
	windows  windows

	besides    context.Context // of what is done beside the conversation
	endBesides context.CancelFunc
	beside     sync.WaitGroup

	mu       sync.Mutex
	notes    []string
	sampled  map[string]int64 // tokens that MCP servers had of the model
	mcpHeard map[string]int   // notes, by server
}

// Open assembles a session.
func Open(ctx context.Context, o Options) (*App, error) {
	a := &App{opt: o, env: o.env(), Session: o.Session}
	a.besides, a.endBesides = context.WithCancel(context.WithoutCancel(ctx))
	if err := a.open(ctx); err != nil {
		return nil, errors.Join(err, a.Close(context.WithoutCancel(ctx)))
	}
	return a, nil
}

func (o Options) env() func(string) string {
	if o.Env == nil {
		return os.Getenv
	}
	return o.Env
}

func (a *App) open(ctx context.Context) error {
	a.kernel = make(chan reach.Sandbox, 1)
	for _, step := range []func(context.Context) error{
		a.findPlaces, a.loadInstalled, a.openSessions, a.readRules, a.openAudit, a.openBrokers, a.openGate, a.openLoader, a.register, a.follow,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (a *App) findPlaces(ctx context.Context) error {
	if a.opt.Paths != nil {
		a.Paths = *a.opt.Paths
	} else {
		p, err := config.FindPaths(a.env)
		if err != nil {
			return fault.Wrap("E1002", "", err)
		}
		a.Paths = p
	}
	go func() { a.kernel <- reach.RecallSandbox(ctx, filepath.Join(a.Paths.Cache, "sandbox")) }()
	dir, err := Workspace(a.opt.Dir)
	if err != nil {
		return err
	}
	a.Dir = dir
	return nil
}

func (a *App) readRules(context.Context) error {
	var err error
	if a.Policy, err = config.LoadPolicy(a.Paths, a.Dir); err != nil {
		return fault.Wrap("E1002", "elfhost does not run under rules it cannot read; mend the file", err)
	}
	if a.Config, err = config.Load(a.Paths, a.Dir, a.atStartTrusted()); err != nil {
		return fault.Wrap("E1002", "`elfhost config explain` lists the keys", err)
	}
	a.notes = append(append(a.notes, a.Policy.Notes()...), a.Config.Notes()...)
	if a.opt.Dialect == "" {
		a.opt.Dialect = a.Config.Dialect
	}
	if a.opt.Tools == nil && len(a.Config.Tools) > 0 {
		a.opt.Tools = a.Config.Tools
	}
	return nil
}

// Workspace is the folder that --dir names, absolute and without links; "" is
// the current one.
func Workspace(name string) (string, error) {
	dir, err := filepath.Abs(name)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", fault.New("E1004", "--dir names the folder that the agent works in", "the workspace %q: %w", name, err)
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return "", fault.New("E1004", "--dir names the folder that the agent works in", "the workspace %q is not a folder", dir)
	}
	return dir, nil
}

// SessionDir holds the whole of what was clipped, and the logs of commands. It
// is made at its first use.
func (a *App) SessionDir() string { return filepath.Join(a.Paths.State, "sessions", a.Session) }

func (a *App) note(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := fmt.Sprintf(format, args...); !slices.Contains(a.notes, n) {
		a.notes = append(a.notes, n)
	}
}

// TakeNotes returns, once, what a person should know: settings that were
// ignored, parts that are missing.
func (a *App) TakeNotes() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.notes
	a.notes = nil
	return out
}

// Close ends what the session started and waits for it, until ctx ends.
func (a *App) Close(ctx context.Context) error {
	var errs []error
	if a.unfollow != nil {
		a.unfollow()
	}
	a.endBesides()
	a.beside.Wait()
	if a.Runs != nil { // they use all the rest
		errs = append(errs, a.Runs.Close(ctx))
	}
	if a.began.Load() {
		a.Hooks.End(ctx)
	}
	if a.hub != nil {
		errs = append(errs, a.hub.close(ctx))
	}
	if a.installs != nil {
		errs = append(errs, a.installs.close(ctx))
	}
	for _, p := range a.Plugins {
		errs = append(errs, p.Close(ctx))
	}
	for i := len(a.closers) - 1; i >= 0; i-- {
		errs = append(errs, a.closers[i](ctx))
	}
	return errors.Join(errs...)
}

func (a *App) closing(f func() error) {
	a.closers = append(a.closers, func(context.Context) error { return f() })
}
