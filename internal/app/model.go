package app

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/anthropic"
	"github.com/elfhost/elfhost/host/model/gemini"
	"github.com/elfhost/elfhost/host/model/openai"
	"github.com/elfhost/elfhost/host/model/scripted"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
)

// Chosen is a model that can be asked.
type Chosen struct {
	Name   string // "provider/id"
	Model  model.Model
	Info   model.Info
	Price  *model.Price // nil: not known
	Priced string       // when Price was published, or "config.toml"; "": it costs nothing
	Format host.Format  // of tools' schemas, as its provider wants them
	Effort model.Effort // how much it is to think; of Options or config.toml, and the caller's to change
}

// Model chooses a model: the one that is named (see named), else that of
// config.toml, else the first vendor with a key, else a local server that
// answers. It reaches for nothing but the local servers.
func (a *App) Model(ctx context.Context, name string) (Chosen, error) {
	if name == "" {
		name = a.Config.Model
	}
	if name == "" {
		return a.anyModel(ctx)
	}
	provider, id, err := a.named(name)
	if err != nil {
		return Chosen{}, err
	}
	p, def, err := a.provider(provider)
	if err != nil {
		return Chosen{}, err
	}
	if id == "" {
		id = def
	}
	if id == "" && a.isLocal(provider) {
		if id, err = firstModel(ctx, p); err != nil {
			return Chosen{}, fault.Wrap("E1103", "start it, or name the model as "+provider+"/MODEL", err)
		}
	}
	if id == "" {
		return Chosen{}, fault.New("E1001", "name it as "+provider+"/MODEL", "the provider %q has no default model", provider)
	}
	return a.chosen(provider, id, p)
}

func (a *App) chosen(provider, id string, p model.Provider) (Chosen, error) {
	m, err := p.Open(id)
	if err != nil {
		return Chosen{}, fault.Wrap("E1001", "", err)
	}
	c := Chosen{Name: provider + "/" + id, Model: m, Effort: model.Effort(a.Config.Effort)}
	if a.opt.Effort != nil {
		c.Effort = *a.opt.Effort
	}
	c.Info, c.Price, c.Priced = a.facts(provider, model.Info{ID: id})
	if a.kind(provider) == "gemini" {
		c.Format = host.FormatGemini
	}
	return c, nil
}

// background is the model for small work; the answering one where none is set.
func (a *App) background(ctx context.Context) (Chosen, error) {
	name := a.Config.BackgroundModel
	if name == "" {
		name = a.opt.Model
	}
	return a.Model(ctx, name)
}

// provider opens a configured provider, or a vendor's, by name.
func (a *App) provider(name string) (p model.Provider, def string, err error) {
	if c, ok := a.Config.Providers[name]; ok {
		p, err = a.configured(name, c)
		if len(c.Models) > 0 {
			def = c.Models[0]
		}
		return p, def, err
	}
	if name == "scripted" {
		return scripted.Provider{Read: a.script}, "", nil
	}
	all := append(vendors(), localVendors()...)
	if i := slices.IndexFunc(all, func(v vendor) bool { return v.name == name }); i >= 0 {
		v := all[i]
		key := v.key(a.env)
		if key == "" && len(v.keyEnv) > 0 {
			return nil, "", fault.New("E1101", "set "+strings.Join(v.keyEnv, " or "), "no key for %s", name)
		}
		a.Secrets.Scrub.Add(key)
		client, err := a.modelClient(v.base)
		if err != nil {
			return nil, "", err
		}
		p, err := v.open(key, client)
		return p, v.model, err
	}
	return nil, "", a.noProvider(name)
}

func (a *App) noProvider(name string) error {
	return fault.New("E1001", "known: "+strings.Join(a.providerNames(), ", "), "there is no model provider %q", name)
}

func (a *App) providerNames() []string {
	out := []string{"scripted"}
	for _, v := range append(vendors(), localVendors()...) {
		out = append(out, v.name)
	}
	for n := range a.Config.Providers {
		out = append(out, n)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (a *App) configured(name string, c config.Provider) (model.Provider, error) {
	if c.Kind == "scripted" {
		return scripted.Provider{Read: func(string) ([]byte, error) { return a.script(c.File) }}, nil
	}
	key := ""
	if c.APIKeyEnv != "" {
		if key = a.env(c.APIKeyEnv); key == "" {
			return nil, fault.New("E1101", "set "+c.APIKeyEnv, "no key for the provider %q", name)
		}
		a.Secrets.Scrub.Add(key)
	}
	base := c.BaseURL
	if base == "" {
		base = usualBase(name, c.Kind)
	}
	client, err := a.modelClient(base)
	if err != nil {
		return nil, err
	}
	client = withHeaders(client, c.Headers)
	switch c.Kind {
	case "anthropic":
		return anthropic.New(anthropic.Options{Key: key, BaseURL: c.BaseURL, HTTP: client}), nil
	case "openai":
		return openai.New(openai.Options{Name: name, Key: key, BaseURL: base, HTTP: client}), nil
	case "gemini":
		return gemini.New(gemini.Options{Key: key, BaseURL: c.BaseURL, HTTP: client})
	case "openai-chat":
		return openai.New(openai.Options{Name: name, Key: key, BaseURL: base, API: openai.Chat, HTTP: client}), nil
	}
	return nil, fault.New("E1002", "`elfhost config explain providers`", "the kind %q of provider %q is not in this build", c.Kind, name)
}

// usualBase is where a provider of config.toml is that has no base_url: at the
// vendor's that it is called after, else at the protocol's own.
func usualBase(name, kind string) string {
	switch kind {
	case "anthropic":
		return "https://api.anthropic.com"
	case "gemini":
		return googleBase
	}
	base := ""
	for _, v := range openai.Vendors() {
		if v.Name == name || base == "" { // OpenAI is the first
			base = v.BaseURL
		}
	}
	return base
}

// script reads the turns of a scripted model. A relative name lies in the
// workspace's folder on the host: a person named it, not a model.
func (a *App) script(name string) ([]byte, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(a.Dir, name)
	}
	return os.ReadFile(name)
}

// modelClient is a way out to one provider, under the policy. A local server's
// address is granted because a person configured it.
func (a *App) modelClient(base string) (*http.Client, error) {
	u, err := policy.CheckURL(base)
	if err != nil {
		return nil, fault.New("E1002", "", "the address %q of a model provider: %w", base, err)
	}
	g, err := policy.New("the model provider", policy.Grant{Cap: abi.NetHTTP, Scope: []string{u.Scheme + "://" + u.Host + " GET,POST"}})
	if err != nil {
		return nil, fault.New("E1002", "", "the address %q of a model provider: %w", base, err)
	}
	rights := policy.Rights{Grants: a.Policy.Private(g).Meet(a.Policy.Ceiling())}
	return a.HTTP.Client(rights, reach.HTTPLimits{Time: -1, Body: -1}, nil), nil
}

// anyModel looks for keys, then for local servers.
func (a *App) anyModel(ctx context.Context) (Chosen, error) {
	for _, v := range vendors() {
		if v.key(a.env) != "" {
			return a.Model(ctx, v.name)
		}
	}
	if local := a.LocalModels(ctx); len(local) > 0 {
		l := local[0]
		client, err := a.modelClient(l.Vendor.BaseURL)
		if err != nil {
			return Chosen{}, err
		}
		p := openai.New(openai.Options{Name: l.Vendor.Name, BaseURL: l.Vendor.BaseURL, HTTP: client})
		return a.chosen(l.Vendor.Name, l.Models[0].ID, p)
	}
	return Chosen{}, a.noModel()
}

// LocalModels asks the usual addresses of local model servers.
func (a *App) LocalModels(ctx context.Context) []openai.Local {
	g, err := policy.New("local models", policy.Grant{Cap: abi.NetHTTP, Scope: localScopes})
	if err != nil {
		return nil
	}
	client := a.HTTP.Client(policy.Rights{Grants: g.Meet(a.Policy.Ceiling())}, reach.HTTPLimits{}, nil)
	return openai.Detect(ctx, client)
}

var localScopes = []string{"http://127.0.0.1:11434 GET", "http://127.0.0.1:8080 GET", "http://localhost:11434 GET", "http://localhost:8080 GET"}

// noModel is one screen instead of a blank error: what was looked for, and
// what works all the same.
func (a *App) noModel() error {
	var keys []string
	for _, v := range vendors() {
		keys = append(keys, v.keyEnv...)
	}
	hint := fmt.Sprintf(`looked for keys in %s (none is set), and for Ollama on 127.0.0.1:11434 and llama.cpp on 127.0.0.1:8080 (none answers).
These work without a model:
  elfhost demo                             the whole path, with a scripted model
  elfhost call Read '{"path": "go.mod"}'   one tool, through the gate
  elfhost tools                            what an agent would have
  elfhost plugin inspect FILE              what a module could do at most`, strings.Join(keys, ", "))
	return fault.New("E1101", hint, "there is no model to ask")
}

// withHeaders adds fixed headers to every request of a configured provider.
func withHeaders(c *http.Client, h map[string]string) *http.Client {
	if len(h) == 0 {
		return c
	}
	d := *c
	d.Transport = headers{next: c.Transport, set: h}
	return &d
}

type headers struct {
	next http.RoundTripper
	set  map[string]string
}

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for k, v := range h.set {
		r.Header.Set(k, v)
	}
	return h.next.RoundTrip(r)
}

// splitModel parts "provider/id"; the id may hold further slashes, as
// OpenRouter's do. Without a slash the provider is empty.
func splitModel(name string) (provider, id string) {
	if p, rest, ok := strings.Cut(name, "/"); ok {
		return p, rest
	}
	return "", name
}
