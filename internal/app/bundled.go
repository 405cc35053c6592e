package app

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/gemini"
	"github.com/elfhost/elfhost/host/model/openai"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/config/granted"
)

// bundledGrants are what this installation gives to the plugins that it ships,
// so that they need no question. They are shown by `grant list`, can be taken
// back one by one, and every policy narrows them. A manifest may ask for more,
// for a person to give.
var bundledGrants = map[string][]policy.Grant{
	"webfetch": {
		{Cap: abi.NetHTTP, Scope: []string{"public GET,HEAD"}},
		{Cap: abi.Model, Scope: []string{"100k tokens"}},
	},
	"websearch": {
		{Cap: abi.NetHTTP, Scope: []string{"https://api.tavily.com/search POST"}},
		{Cap: abi.NetHTTP, Scope: []string{"https://s.jina.ai GET"}},
		{Cap: abi.Secret, Scope: []string{"tavily-api-key@api.tavily.com"}},
		{Cap: abi.Secret, Scope: []string{"jina-api-key@s.jina.ai"}},
		{Cap: abi.Env, Scope: []string{searxngURL}},
	},
	"imageanalysis": {
		{Cap: abi.FSRead, Scope: []string{"/ws/**"}},
		{Cap: abi.Model, Scope: []string{"20k tokens"}},
		{Cap: abi.Env, Scope: []string{workspaceEnv}},
	},
}

// Variables that the host answers itself when a plugin holds the right to them.
const (
	workspaceEnv = "ELFHOST_WORKSPACE" // the workspace as an absolute path of the host
	searxngURL   = "SEARXNG_URL"       // of [[search]] in config.toml, or the environment
)

// installation is where the grants of bundled plugins come from.
const installation = "this installation"

// installed are the grants that a bundled plugin comes with, and the address
// of the search service that a person configured.
func (a *App) installed(k granted.Key) []policy.Grant {
	packs := a.packs()
	i := slices.IndexFunc(packs, func(p pack) bool { return p.bundled && p.key() == k })
	if i < 0 {
		return nil
	}
	name := packs[i].manifest.Name
	out := slices.Clone(bundledGrants[name])
	if u, err := url.Parse(a.searxng()); name == "websearch" && err == nil && u.Host != "" {
		out = append(out, policy.Grant{Cap: abi.NetHTTP, Scope: []string{u.Scheme + "://" + u.Host + " GET"}})
	}
	for i := range out {
		out[i].Where = installation
	}
	return out
}

// pluginEnv is what elf:env answers, after the right was checked.
func (a *App) pluginEnv(name string) (string, bool) {
	switch name {
	case workspaceEnv:
		return a.Dir, true
	case searxngURL:
		if u := a.searxng(); u != "" {
			return u, true
		}
		return "", false
	}
	v := a.env(name)
	return v, v != ""
}

func (a *App) searxng() string {
	for _, s := range a.Config.Search {
		if s.Kind == "searxng" && s.BaseURL != "" {
			return s.BaseURL
		}
	}
	return a.env(searxngURL)
}

// webSearch is the tool whose place a provider's own search takes.
const webSearch = "WebSearch"

// nativeSearch reports whether the model's provider is to search the web by
// itself, in the place of WebSearch: where it can beside other tools. The loop
// sees to it that nothing keeps the tool itself from being used; a hook before
// it sees every search.
func (a *App) nativeSearch(c Chosen) *model.Search {
	if !a.searches(c.Name) || !a.Config.NativeSearch || a.Policy.Network().Off || a.Hooks.Guards(webSearch) {
		return nil
	}
	return &model.Search{}
}

// searches reports models of vendors that have a search of their own. A server
// of somebody else's that speaks their protocol has none that we know of.
func (a *App) searches(name string) bool {
	provider, id := splitModel(name)
	if !a.priced(provider) {
		return false
	}
	switch a.kind(provider) {
	case "anthropic":
		return true
	case "openai":
		return openai.Searches(id)
	case "gemini":
		return gemini.Searches(id, true)
	}
	return false
}

// globalIgnore is the person's own ignore file for git, at its usual place.
func (a *App) globalIgnore() string {
	dir := a.env("XDG_CONFIG_HOME")
	if dir == "" {
		home := a.env("HOME")
		if home == "" {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	b, err := os.ReadFile(filepath.Join(dir, "git", "ignore"))
	if err != nil || len(b) > 1<<20 {
		return ""
	}
	return string(b)
}
