package app

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/elfhost/elfhost/host/model"
)

// windows are the contexts that providers publish of models that neither the
// configuration nor the built-in table knows. They are asked for when a
// conversation gets so long that it matters, and kept for a while, so that a
// short one costs no request. The zero value is ready.
type windows struct {
	mu    sync.Mutex
	told  map[string]int64 // tokens, by name; of this process, 0: it was asked in vain
	tries map[string]int
}

// published is what a provider said, as it is kept between sessions.
type published struct {
	Window int64 `json:"window"` // tokens; 0: it does not say
	Asked  day   `json:"asked"`
}

// day is a date in UTC.
type day string

const dayForm = time.DateOnly

const (
	windowKept   = 7 * 24 * time.Hour
	windowTime   = 5 * time.Second // for an answer, which the agent waits for
	maxWindows   = 5000
	maxWindowAsk = 3 // of a server on this machine, which may not have loaded the model yet
)

// window asks for the context of a model, 0: it is not to be learned. Nil where
// it is known, or nobody is to be asked.
func (a *App) window(m Chosen) func(context.Context) int64 {
	provider, id := splitModel(m.Name)
	if m.Info.Window > 0 || a.kind(provider) == "scripted" || a.Offline() != "" && !a.isLocal(provider) {
		return nil
	}
	return func(ctx context.Context) int64 { return a.windows.get(ctx, a, provider, id) }
}

// Window is how much context a model has, as far as it is known by now.
func (a *App) Window(m Chosen) int64 {
	if m.Info.Window > 0 {
		return m.Info.Window
	}
	a.windows.mu.Lock()
	defer a.windows.mu.Unlock()
	return a.windows.told[m.Name]
}

func (w *windows) get(ctx context.Context, a *App, provider, id string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	name, local := provider+"/"+id, a.isLocal(provider)
	if n, ok := w.told[name]; ok && (n > 0 || !local || w.tries[name] >= maxWindowAsk) {
		return n
	}
	if w.told == nil {
		w.told, w.tries = map[string]int64{}, map[string]int{}
	}
	file := a.windowFile()
	if p, ok := readWindows(file)[a.windowKey(name)]; ok && !local && p.fresh() {
		w.told[name] = p.Window
		return p.Window
	}
	n, err := a.askWindow(ctx, provider, id)
	if err != nil && ctx.Err() != nil {
		return 0 // to be asked again
	}
	w.told[name], w.tries[name] = n, w.tries[name]+1
	if err == nil && !local {
		keepWindows(file, map[string]published{a.windowKey(name): {Window: n, Asked: today()}})
	}
	return n
}

// askWindow asks the provider.
func (a *App) askWindow(ctx context.Context, provider, id string) (int64, error) {
	p, _, err := a.provider(provider)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, windowTime, errors.New("no answer within 5 seconds"))
	defer cancel()
	if own, ok := p.(interface {
		Window(ctx context.Context, id string) (int64, error)
	}); ok {
		return own.Window(ctx, id)
	}
	list, err := p.Models(ctx)
	if err != nil {
		return 0, err
	}
	for _, m := range list {
		if m.ID == id {
			return m.Window, nil
		}
	}
	return 0, nil
}

// published keeps what a list of models said.
func (a *App) published(provider string, list []model.Info) {
	if a.isLocal(provider) { // as it is started today
		return
	}
	found := map[string]published{}
	for _, m := range list {
		if m.Window > 0 {
			found[a.windowKey(provider+"/"+m.ID)] = published{Window: m.Window, Asked: today()}
		}
	}
	if len(found) > 0 {
		keepWindows(a.windowFile(), found)
	}
}

func (a *App) windowFile() string { return filepath.Join(a.Paths.Cache, "windows.json") }

// windowKey names a model and where it is: another server may have another one
// under its name.
func (a *App) windowKey(name string) string {
	provider, _ := splitModel(name)
	return name + " " + a.Config.Providers[provider].BaseURL
}

func today() day { return day(time.Now().UTC().Format(dayForm)) }

func (p published) fresh() bool {
	asked, err := time.Parse(dayForm, string(p.Asked))
	age := time.Since(asked)
	return err == nil && p.Window >= 0 && age >= -24*time.Hour && age < windowKept
}

// readWindows reads what is kept. A file that cannot be read is as good as none.
func readWindows(file string) map[string]published {
	out := map[string]published{}
	if b, err := readBounded(file, maxSeenFile); err != nil || json.Unmarshal(b, &out) != nil {
		return map[string]published{}
	}
	return out
}

// keepWindows adds to what is kept, and drops what is old. What cannot be
// written, or was overwritten by another process, is asked for again.
func keepWindows(file string, found map[string]published) {
	all := readWindows(file)
	maps.DeleteFunc(all, func(_ string, p published) bool { return !p.fresh() })
	if len(all)+len(found) > maxWindows {
		clear(all)
	}
	maps.Copy(all, found)
	if b, err := json.Marshal(all); err == nil {
		_ = putWhole(file, b)
	}
}
