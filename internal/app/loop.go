package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/elfhost/elfhost/builtins/shell"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

// localWindow is what is taken for the window of a model on this machine that
// nothing is known of: servers are started with small ones.
const localWindow = 32_000

// Loop is the agent of this session.
func (a *App) Loop(ctx context.Context, m Chosen, l agent.Limits) (*agent.Loop, error) {
	if l.Steps == 0 {
		l.Steps = a.Config.MaxSteps
	}
	if l.Cost == 0 {
		l.Cost = a.Config.MaxCost
	}
	if err := within(l, m); err != nil {
		return nil, err
	}
	place := a.surroundings(ctx)
	place.Append = a.skillsText(ctx)
	system, err := place.Prompt()
	if err != nil {
		return nil, err
	}
	loop := &agent.Loop{
		Model: m.Model, Info: m.Info, Price: m.Price, Format: m.Format, Tools: a.Registry, System: system, Limits: l, Effort: m.Effort,
		Learn: a.learn(m.Info.Window), Search: a.nativeSearch(m), Stands: webSearch, Compact: agent.Compaction{Plan: a.Plans.Text, Changed: a.changed, Ask: a.window(m)},
	}
	if provider, _ := splitModel(m.Name); a.isLocal(provider) {
		loop.Compact.Window = localWindow
	}
	if a.Offline() != "" { // it does not get better by waiting
		loop.Retry.Attempts = 1
	}
	a.small(ctx, loop)
	return loop, nil
}

// small gives the loop the background model for minutes and titles, where one
// is configured.
func (a *App) small(ctx context.Context, l *agent.Loop) {
	if a.Config.BackgroundModel == "" {
		return
	}
	m, err := a.background(ctx)
	if err != nil {
		a.note("the background model is not to be had, %s does its work: %v", l.Info.ID, err)
		return
	}
	if err := within(l.Limits, m); err != nil {
		a.note("the background model is not used, %s does its work: %v", l.Info.ID, err)
		return
	}
	l.Compact.Model, l.Compact.Price, l.Compact.Answer = m.Model, m.Price, m.Info.MaxOutput
}

// within refuses a model whose price is not known where there is a budget: it
// would stop nothing.
func within(l agent.Limits, m Chosen) error {
	if l.Cost <= 0 || m.Price != nil {
		return nil
	}
	return fault.New("E1403", fmt.Sprintf("name it in config.toml: [prices.%q] input = DOLLARS output = DOLLARS, for a million tokens; or leave the budget out", m.Name),
		"the price of %s is not known, so that a budget of $%g would stop nothing", m.Name, l.Cost)
}

func (a *App) surroundings(ctx context.Context) agent.Surroundings {
	s := agent.Surroundings{
		OS: runtime.GOOS + "/" + runtime.GOARCH, Shell: shell.Program(), Dir: a.Dir, Mode: a.Gate.Current(),
	}
	rights, err := a.readsInstructions()
	if err != nil {
		a.note("reading the project's instructions: %v", err)
		return s
	}
	a.scene.once.Do(func() { a.lookAround(ctx, rights) })
	s.Date, s.Repository, s.Branch = a.scene.date, a.scene.repository, a.scene.branch
	s.Instructions = a.projectInstructions(ctx, rights)
	return s
}

// scene is where and when a session began, as its model is told. It stays so:
// what stands before a conversation is not to change in the middle of it, or
// the provider reads it all anew.
type scene struct {
	once       sync.Once
	date       time.Time
	repository bool
	branch     string
}

func (a *App) lookAround(ctx context.Context, rights policy.Rights) {
	p := &a.scene
	p.date = time.Now()
	if _, err := a.Tree.Stat(ctx, rights, policy.Workspace+"/.git"); err != nil {
		return
	}
	p.repository = true
	if b, err := a.Tree.ReadFile(ctx, rights, policy.Workspace+"/.git/HEAD", 4<<10); err == nil {
		p.branch, _ = strings.CutPrefix(strings.TrimSpace(string(b)), "ref: refs/heads/")
		p.branch = term.Line(p.branch)
	}
}

// readSmall reads a regular file of the person's own of at most limit bytes.
func readSmall(name string, limit int64) ([]byte, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > limit {
		return nil, fmt.Errorf("%q is no file, or over %d kB", name, limit>>10)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}
