package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/shell"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/archive"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/reach/secret"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/fault"
)

// outMount is where clipped outputs lie; the Read tool alone sees it.
const outMount = "/out"

func (a *App) openBrokers(context.Context) error {
	if err := a.openTree(); err != nil {
		return err
	}
	a.Secrets = secret.Open(filepath.Join(a.Paths.State, "secrets"))
	n := a.Policy.Network()
	a.HTTP = &reach.HTTP{Secrets: a.Secrets, UserAgent: "elfhost"}
	if n.Proxy != "" {
		u, err := url.Parse(n.Proxy)
		if err != nil {
			return fault.New("E1002", "", "network.proxy of the system policy: %w", err)
		}
		a.HTTP.Proxy = u
	}
	if n.CAFile != "" || n.ClientCert != "" {
		tls, err := reach.TLSFiles(n.CAFile, n.ClientCert, n.ClientKey)
		if err != nil {
			return fault.Wrap("E1002", "", fmt.Errorf("network of the system policy: %w", err))
		}
		a.HTTP.TLS = tls
	}
	if why := a.Offline(); why != "" {
		refused := errors.New("this session is offline: " + why)
		a.HTTP.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, refused }
		// A name that is looked up has left the machine, too.
		a.HTTP.Resolve = func(context.Context, string) ([]netip.Addr, error) { return nil, refused }
	}
	a.closing(a.HTTP.Close)
	a.Runner = &reach.Runner{Keeper: a.opt.Keeper}
	return nil
}

func (a *App) openTree() error {
	if err := os.MkdirAll(a.SessionDir(), 0o700); err != nil {
		return fault.New("E1501", "`elfhost doctor` checks the folders", "the session's folder: %w", err)
	}
	mounts := []reach.Mount{
		{Name: "/ws", Dir: a.Dir},
		{Name: outMount, Dir: a.SessionDir(), Hidden: true},
	}
	mounts = append(mounts, a.skillMounts()...)
	mounts = append(mounts, a.agentMounts()...)
	if restricted, _ := a.Policy.RestrictToWorkspace(); !restricted {
		mounts = append(mounts, reach.Mount{Name: "/host", Dir: filepath.VolumeName(a.Dir) + string(filepath.Separator)})
	}
	tree, err := reach.NewTree(mounts...)
	if err != nil {
		return fault.New("E1004", "", "opening the workspace %q: %w", a.Dir, err)
	}
	tree.DenyMultilink, _ = a.Policy.DenyMultilink()
	if a.opt.Client != nil {
		tree.Editor = a.opt.Client
	}
	a.Tree = tree
	a.closing(tree.Close)
	return nil
}

func (a *App) openLoader(context.Context) error {
	a.Loader = &sandbox.Loader{
		Dir: filepath.Join(a.Paths.Cache, "wasm"), Compiler: a.opt.Compiler,
		Tree: func(host.Caller) *reach.Tree { return a.Tree },
		HTTP: a.HTTP, KV: &reach.KV{Dir: filepath.Join(a.Paths.State, "kv")}, Runner: a.Runner,
		Env:     a.pluginEnv,
		Model:   a.answer,
		Invoke:  func(ctx context.Context, c host.Call) abi.Result { return a.Registry.Invoke(ctx, c) },
		Ceiling: a.Policy.Bounds(),
	}
	if a.opt.Approver != nil {
		a.Loader.Elicit = a.elicitPlugin
	}
	switch {
	case a.opt.Logged != nil:
		a.Loader.Log = a.opt.Logged
	case a.opt.Log != nil:
		a.Loader.Log = func(l sandbox.LogLine) {
			a.opt.Log.Debug(l.Text, "plugin", l.Plugin, "tool", l.Tool, "level", l.Level)
		}
	}
	return nil
}

// spill keeps the whole of a clipped output where Read finds it.
// Calls of sub-agents, and those before a compaction, may have the same ID: no
// file takes another one's place, since the model may still be told of it.
func (a *App) spill(_ context.Context, _, callID, text string) (string, error) {
	if err := os.MkdirAll(a.SessionDir(), 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(a.SessionDir(), "output-"+safeName(callID)+"-*.txt")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return outMount + "/" + filepath.Base(f.Name()), nil
}

// safeName keeps what is harmless in a file name of any system. A call's ID
// comes from a model.
func safeName(s string) string {
	out := make([]byte, 0, 64)
	for i := 0; i < len(s) && len(out) < 64; i++ {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return archive.NewID()
	}
	return string(out)
}

// session is what builtin tools may do: their files, and the shell, which the
// gate asks about call by call.
func (a *App) session() (policy.Grants, error) {
	gs := []policy.Grant{
		{Cap: abi.FSRead, Scope: []string{"/ws/**"}},
		{Cap: abi.FSWrite, Scope: []string{"/ws/**"}},
		shell.Grant(),
	}
	for _, m := range a.ownSkills() {
		gs[0].Scope = append(gs[0].Scope, m.Name+"/**")
	}
	if restricted, _ := a.Policy.RestrictToWorkspace(); !restricted {
		gs[0].Scope = append(gs[0].Scope, "/host/**")
		gs[1].Scope = append(gs[1].Scope, "/host/**")
	}
	return policy.New("session", gs...)
}
