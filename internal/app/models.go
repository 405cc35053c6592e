package app

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/known"
)

// Reachable is a provider that can be asked, and what it has.
type Reachable struct {
	Provider string           `json:"provider"`
	Models   []ReachableModel `json:"models"`
	Error    string           `json:"error,omitempty"` // why there is no list
}

// ReachableModel is one model, named as --model takes it.
type ReachableModel struct {
	Name    string  `json:"name"`
	Window  int64   `json:"window,omitempty"` // tokens
	In      float64 `json:"in,omitempty"`     // US dollars for a million tokens
	Out     float64 `json:"out,omitempty"`
	Priced  string  `json:"priced,omitempty"` // since when the price is known, or "config.toml"
	Default bool    `json:"default,omitempty"`
}

// modelsTime bounds the question to one provider for its models.
const modelsTime = 10 * time.Second

// Models asks the providers, all at once: those with a key, those of
// config.toml, and the local servers that answer. only names one of them; "" is
// all. A provider that fails has its Error, and stops nothing.
func (a *App) Models(ctx context.Context, only string) ([]Reachable, error) {
	if p, ok := a.knownProvider(only); ok {
		only = p
	}
	rows := a.reachable(ctx, only)
	if only != "" && len(rows) == 0 {
		_, _, err := a.provider(only)
		return nil, err
	}
	chosen, _ := a.Model(ctx, "")
	for i := range rows {
		for k := range rows[i].Models {
			rows[i].Models[k].Default = rows[i].Models[k].Name == chosen.Name
		}
	}
	return rows, nil
}

func (a *App) reachable(ctx context.Context, only string) []Reachable {
	names := slices.Sorted(maps.Keys(a.Config.Providers))
	for _, v := range vendors() {
		if _, ok := a.Config.Providers[v.name]; !ok && v.key(a.env) != "" {
			names = append(names, v.name)
		}
	}
	if only != "" {
		names = slices.DeleteFunc(names, func(n string) bool { return n != only })
		if a.isLocal(only) { // asked by name, wherever it is
			return []Reachable{a.ask(ctx, only)}
		}
	}
	rows := make([]Reachable, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() { rows[i] = a.ask(ctx, name) })
	}
	var local []Reachable
	if only == "" {
		group.Go(func() {
			for _, l := range a.LocalModels(ctx) {
				local = append(local, Reachable{Provider: l.Vendor.Name, Models: a.list(l.Vendor.Name, l.Models)})
			}
		})
	}
	group.Wait()
	return append(rows, local...)
}

// ask gets one provider's list. A server without one has the models that the
// configuration names.
func (a *App) ask(ctx context.Context, name string) Reachable {
	row := Reachable{Provider: name, Models: []ReachableModel{}}
	p, _, err := a.provider(name)
	if err != nil {
		row.Error = err.Error()
		return row
	}
	ctx, cancel := context.WithTimeoutCause(ctx, modelsTime, errors.New("no answer within 10 seconds"))
	defer cancel()
	infos, err := p.Models(ctx)
	a.published(name, infos)
	for _, id := range a.Config.Providers[name].Models {
		if !slices.ContainsFunc(infos, func(i model.Info) bool { return i.ID == id }) {
			infos = append(infos, model.Info{ID: id})
		}
	}
	if err != nil && !errors.Is(err, model.ErrUnsupported) {
		row.Error = strings.TrimPrefix(a.Secrets.Scrub.String(err.Error()), name+": ")
	}
	row.Models = a.list(name, infos)
	return row
}

func (a *App) list(provider string, infos []model.Info) []ReachableModel {
	out := []ReachableModel{}
	for _, info := range infos {
		info, price, since := a.facts(provider, info)
		m := ReachableModel{Name: provider + "/" + info.ID, Window: info.Window}
		if price != nil {
			m.In, m.Out, m.Priced = price.Input, price.Output, since
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(x, y ReachableModel) int { return strings.Compare(x.Name, y.Name) })
	return out
}

// facts completes what is known of a model: configuration first, then what the
// provider said, then what vendors had published when this was built. A model
// on this machine, and a scripted one, cost nothing.
func (a *App) facts(provider string, info model.Info) (model.Info, *model.Price, string) {
	if c := a.Config.Providers[provider]; c.Context > 0 {
		info.Window = int64(c.Context)
	}
	var price *model.Price
	since := ""
	if a.isLocal(provider) || a.kind(provider) == "scripted" {
		price = &model.Price{}
	}
	t, err := known.Load()
	info.TextOnly = info.TextOnly || a.Config.Providers[provider].TextOnly || err == nil && t.Blind(info.ID)
	if err == nil && a.priced(provider) {
		if f, ok := t.Find(info.ID); ok {
			if info.Window == 0 {
				info.Window = f.Window
			}
			if info.MaxOutput == 0 {
				info.MaxOutput = f.MaxOutput
			}
			price, since = &f.Price, t.Date
		}
	}
	if p, ok := a.Config.Prices[provider+"/"+info.ID]; ok {
		price, since = &model.Price{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}, "config.toml"
	}
	return info, price, since
}

// kind is the protocol of a provider, as config.toml names it.
func (a *App) kind(provider string) string {
	if c, ok := a.Config.Providers[provider]; ok {
		return c.Kind
	}
	switch provider {
	case "anthropic", "scripted":
		return provider
	case "google":
		return "gemini"
	case "openai", "xai":
		return "openai"
	}
	return "openai-chat"
}

// priced reports a provider whose models are the vendors' own: a server of
// somebody else's may serve anything under any name, at any price.
func (a *App) priced(provider string) bool {
	if c, ok := a.Config.Providers[provider]; ok {
		return c.BaseURL == "" && c.Kind != "scripted"
	}
	return slices.ContainsFunc(vendors(), func(v vendor) bool { return v.name == provider })
}
