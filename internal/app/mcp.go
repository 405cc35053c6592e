package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/mcp"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/internal/config"
)

// mcpTools makes the built-in servers' tools, and those servers' that the
// person configured or trusts. Nothing is started.
func mcpTools(ctx context.Context, a *App) ([]host.Tool, error) {
	if err := a.openMCP(); err != nil {
		return nil, err
	}
	return a.provided(ctx, providers)
}

// mcpOptions are those of a client whose tools go into a registry.
func (a *App) mcpOptions(r *host.Registry) mcp.Options {
	o := mcp.Options{
		HTTP: a.HTTP, Runner: &reach.Runner{Keeper: a.opt.Keeper}, Registry: r, Pins: filepath.Join(a.Paths.State, "mcp"), Version: version(),
		Roots: a.roots, Consent: a.consentMCP,
	}
	if must, _ := a.Policy.RequireSandbox(); must {
		o.Runner = a.Runner
	}
	if a.opt.Approver != nil {
		o.Elicit, o.Sample = a.elicit, a.sample
	}
	o.Log, o.Scrub = a.heard, a.Secrets.Scrub.String
	return o
}

func (a *App) openMCP() error {
	a.MCP = mcp.NewClient(a.mcpOptions(a.all))
	a.closers = append(a.closers, a.MCP.Close)
	servers, err := a.Servers()
	if err != nil {
		return err
	}
	for _, s := range append(servers, a.editorServers(servers)...) {
		if err := a.MCP.Add(s); err != nil {
			a.note("the MCP server %s is left out: %v", s.Name, err)
		}
	}
	return nil
}

// version is this program's, as servers are told.
func version() string {
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		return b.Main.Version
	}
	return "devel"
}

// Servers are the MCP servers of this session: the user's, and those of the
// project that the user trusts. What is left out is noted.
func (a *App) Servers() ([]mcp.Server, error) {
	var out []mcp.Server
	add := func(name string, s config.MCPServer) {
		if s.Disabled {
			return
		}
		made, err := a.server(name, s)
		if err != nil {
			a.note("the MCP server %s is left out: %v", name, err)
			return
		}
		out = append(out, made)
	}
	for name, s := range a.Config.MCP.Servers {
		add(name, s)
	}
	files, found, _, err := a.trusted()
	var project []config.ProjectServer
	if err == nil {
		project, err = config.ProjectServers(a.Dir, found.File)
	}
	if err != nil {
		a.note("the project's MCP servers are left out: %v", err)
	}
	for _, p := range project {
		// The user's own come first: names are the same in any case of letters.
		if a.names(p.Name) {
			continue
		}
		if files == nil {
			a.note("the MCP server %s of %s is not used: `elfhost trust` shows what it would start", p.Name, p.File)
			continue
		}
		add(p.Name, p.MCPServer)
	}
	slices.SortFunc(out, func(x, y mcp.Server) int { return strings.Compare(x.Name, y.Name) })
	return out, nil
}

// names reports whether the user's configuration names a server, disabled or not.
func (a *App) names(server string) bool {
	for name := range a.Config.MCP.Servers {
		if strings.EqualFold(name, server) {
			return true
		}
	}
	return false
}

// server fills in what a configuration leaves open. Rights: that the person
// named it is the grant, the policy stays the ceiling.
func (a *App) server(name string, s config.MCPServer) (mcp.Server, error) {
	if err := s.Check(name); err != nil {
		return mcp.Server{}, err
	}
	m := mcp.Server{
		Name: name, Dir: a.Dir, SSE: s.Transport == "sse", Tools: s.Tools, Timeout: s.Timeout.Duration, Startup: s.Startup.Duration,
		Tokens: a.Secrets.Store, Headers: map[string]string{},
	}
	var err error
	expand := func(text string) string {
		out, e := config.Expand(text, a.env)
		err = errors.Join(err, e)
		return out
	}
	m.Command, m.URL = expand(s.Command), expand(s.URL)
	for _, arg := range s.Args {
		m.Args = append(m.Args, expand(arg))
	}
	if s.Cwd != "" {
		m.Dir = s.Cwd
		if !filepath.IsAbs(m.Dir) {
			m.Dir = filepath.Join(a.Dir, m.Dir)
		}
	}
	for k, v := range s.Env {
		m.Env = append(m.Env, k+"="+expand(v))
	}
	for _, k := range s.EnvFrom {
		if v := a.env(k); v != "" {
			a.Secrets.Scrub.Add(v)
			m.Env = append(m.Env, k+"="+v)
		}
	}
	slices.Sort(m.Env)
	m.Identity, m.Shown = unchanging(m, s), a.Secrets.Scrub.String(shown(s))
	for k, v := range s.Headers {
		m.Headers[k] = expand(v)
		a.Secrets.Scrub.Add(m.Headers[k])
	}
	for k, from := range s.HeadersEnv {
		v := a.env(from)
		if v == "" {
			return m, fmt.Errorf("the variable %s for its header %s is not set", from, k)
		}
		a.Secrets.Scrub.Add(v)
		m.Headers[k] = v
	}
	if err != nil {
		return m, err
	}
	return m, a.entitle(&m)
}

// unchanging is the digest of a server without what its definition takes from
// this program's environment: a token that is rotated makes no other server,
// whose first listing would be agreed to unseen. The program counts as it is.
func unchanging(m mcp.Server, s config.MCPServer) string {
	m.Args, m.URL, m.Env, m.Headers = s.Args, s.URL, slices.Clone(s.EnvFrom), map[string]string{}
	for k, v := range s.Env {
		m.Env = append(m.Env, k+"="+v)
	}
	slices.Sort(m.Env)
	for k := range s.Headers {
		m.Headers[k] = ""
	}
	for k := range s.HeadersEnv {
		m.Headers[k] = ""
	}
	return m.Digest()
}

// shown is what a definition starts or reaches, as it was written, without what
// looks like a secret: values of options that name one, and of a URL's query.
func shown(s config.MCPServer) string {
	if s.URL != "" {
		u, err := url.Parse(s.URL)
		if err != nil {
			return "(a URL that cannot be read)"
		}
		u.User, u.Fragment = nil, ""
		if u.RawQuery != "" {
			u.RawQuery = "…"
		}
		return u.String()
	}
	words := []string{quoted(s.Command)}
	hide := false
	for _, arg := range s.Args {
		name, value, pair := strings.Cut(arg, "=")
		option := strings.HasPrefix(arg, "-")
		switch {
		case hide && !option && !strings.HasPrefix(arg, "${"):
			arg = "…"
		case pair && secretive(strings.ReplaceAll(name, "-", " ")) && !strings.HasPrefix(value, "${"):
			arg = name + "=…"
		}
		hide = option && !pair && secretive(strings.ReplaceAll(name, "-", " "))
		words = append(words, quoted(arg))
	}
	return strings.Join(words, " ")
}

func quoted(word string) string {
	if word == "" || strings.ContainsAny(word, " \t\n\"'") {
		return strconv.Quote(word)
	}
	return word
}

// entitle gives a server the rights to be started or reached.
func (a *App) entitle(m *mcp.Server) (err error) {
	rights := policy.Unlimited()
	if g, ok := m.Grant(); ok {
		if rights, err = policy.New("the MCP server's configuration", g); err != nil {
			return err
		}
	}
	m.Rights = policy.Rights{Grants: a.Policy.Private(rights).Meet(a.Policy.Ceiling())}
	m.Hide, m.Renew = a.Secrets.Scrub.Add, a.renewing
	return nil
}

// renewing are the rights to renew a log-in where a person once got it.
func (a *App) renewing(endpoint string) policy.Rights {
	g, ok := (mcp.Server{URL: endpoint}).Grant()
	if !ok {
		return policy.Rights{}
	}
	grants, err := policy.New("the log-in", g)
	if err != nil {
		return policy.Rights{} // reaches nothing
	}
	return policy.Rights{Grants: a.Policy.Private(grants).Meet(a.Policy.Ceiling())}
}

// servesTool reports whether a name points to an MCP server of this session,
// whose tools may not be known yet.
func (a *App) servesTool(name string) bool {
	server, _, ok := mcp.SplitName(name)
	return ok && slices.ContainsFunc(a.MCP.Status(), func(s mcp.Status) bool { return strings.EqualFold(s.Name, server) })
}

// consentMCP asks about tools that a server changed, in every mode: an agent
// that may do anything is the one that a changed text can turn. The person is
// shown the texts whole; what is too long for a question stays held.
func (a *App) consentMCP(ctx context.Context, ch mcp.Change) (bool, error) {
	if a.opt.Approver == nil {
		a.note("the MCP server %s changed its tools; `elfhost mcp agree %s` shows and accepts them", ch.Server, ch.Server)
		return false, nil
	}
	type shown struct {
		Description string          `json:"description"`
		Input       json.RawMessage `json:"inputSchema"`
	}
	args := map[string]map[string]shown{}
	for kind, specs := range map[string][]host.Spec{"new": ch.Added, "changed": ch.Altered} {
		for _, s := range specs {
			if args[kind] == nil {
				args[kind] = map[string]shown{}
			}
			args[kind][s.Name] = shown{s.Description, s.Input}
		}
	}
	return a.askMCP(ctx, ch.Server, "offer other tools than before", args, ch.Flagged)
}

// askMCP asks the person about a server, and writes the answer down.
func (a *App) askMCP(ctx context.Context, server, what string, args any, risks []string) (bool, error) {
	return a.askFor(ctx, host.Origin{Source: host.MCP, Name: server}, what, args, risks)
}

// askFor asks the person for what a server or a plugin wants.
func (a *App) askFor(ctx context.Context, from host.Origin, what string, args any, risks []string) (bool, error) {
	ask, err := a.askOf(from, what, args, risks)
	if err != nil {
		return false, err
	}
	answer, err := a.opt.Approver.Approve(ctx, ask)
	ok := err == nil && answer.Allow
	if aerr := a.recordMCP(ask, what, ok); aerr != nil {
		return false, aerr
	}
	return ok, err
}

func (a *App) askOf(from host.Origin, what string, args any, risks []string) (host.Ask, error) {
	b, err := json.Marshal(args)
	if err != nil {
		return host.Ask{}, err
	}
	who := "the plugin "
	if from.Source == host.MCP {
		who = "the MCP server "
	}
	return host.Ask{
		Call: host.Call{Tool: from.Name, Args: b, Caller: host.Caller{Session: a.Session}},
		Spec: host.Spec{Name: from.Name, Origin: from, Kind: host.KindOther},
		Why:  who + from.Name + " wants to " + what, Risks: risks, Final: true,
	}, nil
}

func (a *App) recordMCP(ask host.Ask, what string, ok bool) error {
	return a.record(host.Verdict{Call: ask.Call, Origin: ask.Spec.Origin, Allowed: ok, By: "person", Reason: what})
}
