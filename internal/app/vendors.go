package app

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/anthropic"
	"github.com/elfhost/elfhost/host/model/gemini"
	"github.com/elfhost/elfhost/host/model/openai"
	"github.com/elfhost/elfhost/internal/fault"
)

// vendor is a provider that needs nothing but a key in the environment, or not
// even that.
type vendor struct {
	name   string
	keyEnv []string // the first that is set counts; none: it wants no key
	base   string
	model  string // that its name alone stands for; "": it has to be asked
}

// key is the vendor's key, "" where none is set.
func (v vendor) key(env func(string) string) string {
	for _, name := range v.keyEnv {
		if k := env(name); k != "" {
			return k
		}
	}
	return ""
}

// defaults are the models that a vendor's name alone stands for. --model and
// `model` in config.toml name others.
var defaults = map[string]string{
	"anthropic": "claude-sonnet-5-5", "openai": "gpt-5.6", "xai": "grok-4.7", "openrouter": "anthropic/claude-sonnet-5.5",
	"google": "gemini-3.8-flash", "deepseek": "deepseek-chat", "groq": "openai/gpt-oss-120b", "mistral": "mistral-large-latest",
}

// vendors that want a key, in the order in which a default is chosen.
func vendors() []vendor {
	out := []vendor{
		{"anthropic", []string{"ANTHROPIC_API_KEY"}, "https://api.anthropic.com", defaults["anthropic"]},
		{"google", []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, googleBase, defaults["google"]},
	}
	for _, v := range openai.Vendors() {
		if v.KeyEnv != "" {
			out = append(out, vendor{v.Name, []string{v.KeyEnv}, v.BaseURL, defaults[v.Name]})
		}
	}
	return out
}

// localVendors are servers on this machine, at their usual addresses.
func localVendors() (out []vendor) {
	for _, v := range openai.Vendors() {
		if v.KeyEnv == "" {
			out = append(out, vendor{name: v.Name, base: v.BaseURL})
		}
	}
	return out
}

const googleBase = "https://generativelanguage.googleapis.com"

func (v vendor) open(key string, c *http.Client) (model.Provider, error) {
	switch v.name {
	case "anthropic":
		return anthropic.New(anthropic.Options{Key: key, HTTP: c}), nil
	case "google":
		return gemini.New(gemini.Options{Key: key, HTTP: c})
	}
	return openai.New(openai.Options{Name: v.name, Key: key, HTTP: c}), nil
}

// aliases are what people call vendors. A provider of config.toml with such a
// name is meant before them.
var aliases = map[string]string{
	"claude": "anthropic", "gemini": "google", "google-ai-studio": "google", "gpt": "openai", "chatgpt": "openai",
	"grok": "xai", "x-ai": "xai", "llama.cpp": "llamacpp", "llama-cpp": "llamacpp", "lm-studio": "lmstudio",
}

// families are whose models begin so, for a name without a provider.
var families = []struct{ prefix, vendor string }{
	{"claude-", "anthropic"}, {"gemini-", "google"}, {"gpt-", "openai"}, {"chatgpt-", "openai"}, {"codex-", "openai"},
	{"o1", "openai"}, {"o3", "openai"}, {"o4", "openai"}, {"grok-", "xai"}, {"deepseek-", "deepseek"},
	{"mistral-", "mistral"}, {"magistral-", "mistral"}, {"codestral-", "mistral"}, {"devstral-", "mistral"},
}

// named reads what --model takes: "provider/id", a provider's name alone, a
// model that a provider of config.toml has, or one whose vendor is plain from
// its name. id is "" for the provider's own choice.
func (a *App) named(name string) (provider, id string, err error) {
	name = strings.TrimSpace(name)
	first, rest, _ := strings.Cut(name, "/")
	if p, ok := a.knownProvider(first); ok {
		return p, rest, nil
	}
	var having []string
	for _, p := range slices.Sorted(maps.Keys(a.Config.Providers)) {
		if slices.Contains(a.Config.Providers[p].Models, name) {
			having = append(having, p)
		}
	}
	switch len(having) {
	case 0:
	case 1:
		return having[0], name, nil
	default:
		return "", "", fault.New("E1001", "name it as "+having[0]+"/"+name+" or "+having[1]+"/"+name, "several providers have a model %q", name)
	}
	if !strings.Contains(name, "/") {
		for _, f := range families {
			if strings.HasPrefix(strings.ToLower(name), f.prefix) {
				return f.vendor, name, nil
			}
		}
	}
	return "", "", a.noProvider(first)
}

// knownProvider is the name under which a provider can be opened.
func (a *App) knownProvider(name string) (string, bool) {
	names := a.providerNames()
	if slices.Contains(names, name) {
		return name, true
	}
	lower := strings.ToLower(name)
	if v, ok := aliases[lower]; ok {
		return v, true
	}
	return lower, slices.Contains(names, lower)
}

// isLocal reports a server on this machine that is known by name alone.
func (a *App) isLocal(provider string) bool {
	_, configured := a.Config.Providers[provider]
	return !configured && slices.ContainsFunc(localVendors(), func(v vendor) bool { return v.name == provider })
}

// firstModel asks a local server what it has.
func firstModel(ctx context.Context, p model.Provider) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Second, errors.New("no answer within 2 seconds"))
	defer cancel()
	list, err := p.Models(ctx)
	if err != nil {
		return "", err
	}
	for _, m := range list {
		if m.ID != "" {
			return m.ID, nil
		}
	}
	return "", errors.New(p.Name() + " has no model yet")
}
