package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/mcp"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

func mcpLoginVerb(s streams) *cobra.Command {
	var f sessionFlags
	var scopes []string
	var auth string
	var wait time.Duration
	c := &cobra.Command{
		Use: "login NAME", Short: "Log in to a server with OAuth",
		Long: "Log in to a server over HTTP, in the browser. The tokens are kept in the system's\nkeyring where one answers, else in a file that only you can read.",
		Args: exactly(1, "a server's name"),
		RunE: func(c *cobra.Command, args []string) error {
			f.noInput = true
			a, err := f.session(c.Context(), s, app.Options{})
			if err != nil {
				return err
			}
			defer a.Close(context.WithoutCancel(c.Context()))
			servers, err := a.Servers()
			if err != nil {
				return err
			}
			i := slices.IndexFunc(servers, func(m mcp.Server) bool { return m.Name == args[0] })
			if i < 0 || servers[i].URL == "" {
				return fault.New("E1001", "`elfhost mcp list` names the servers", "there is no server %q over HTTP", args[0])
			}
			ctx, cancel := context.WithTimeout(c.Context(), wait)
			defer cancel()
			return login(ctx, s, a, servers[i], auth, scopes)
		},
	}
	f.register(c)
	c.Flags().StringSliceVar(&scopes, "scope", nil, "OAuth scopes to ask for")
	c.Flags().StringVar(&auth, "auth", "", "the origin of its authorization server, where that is not a public address: http://127.0.0.1:9000")
	c.Flags().DurationVar(&wait, "wait", 5*time.Minute, "for the browser to come back")
	return c
}

// login waits on a port of this machine for the browser to come back.
func login(ctx context.Context, s streams, a *app.App, server mcp.Server, auth string, scopes []string) error {
	grants := []policy.Grant{{Cap: abi.NetHTTP, Scope: []string{"public GET,POST"}}}
	if g, ok := server.Grant(); ok {
		grants = append(grants, g)
	}
	if g, ok := (mcp.Server{URL: auth}).Grant(); ok {
		grants = append(grants, g)
	}
	given, err := policy.New("the log-in", grants...)
	if err != nil {
		return fault.Wrap("E1001", "", err)
	}
	web := a.HTTP.Client(policy.Rights{Grants: given.Meet(a.Policy.Ceiling())}, reach.HTTPLimits{Body: 1 << 20}, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	run, err := mcp.BeginLogin(ctx, server, web, "http://"+l.Addr().String()+"/callback", scopes)
	if err != nil {
		return fault.Wrap("E1310", "", err)
	}
	fmt.Fprintf(s.err, "elfhost: open this address in a browser and log in:\n\n  %s\n\n", term.Line(run.URL))
	code, state, err := callback(ctx, l)
	if err != nil {
		return fault.Wrap("E1310", "", err)
	}
	if err := run.Finish(ctx, code, state); err != nil {
		return fault.Wrap("E1310", "try again; a log-in counts once", a.Secrets.Scrub.Error(err))
	}
	fmt.Fprintf(s.err, "elfhost: logged in to %s; the tokens are kept in %s\n", term.Line(server.Name), a.Secrets.Store.Where())
	return nil
}

// callback takes the first answer that brings a code or an error.
func callback(ctx context.Context, l net.Listener) (code, state string, err error) {
	type got struct{ code, state, fail string }
	answers := make(chan got, 1)
	srv := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		g := got{q.Get("code"), q.Get("state"), strings.TrimSpace(q.Get("error") + " " + q.Get("error_description"))}
		if r.URL.Path != "/callback" || g.code == "" && g.fail == "" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "You can close this page and go back to the terminal.\n")
		select {
		case answers <- g:
		default:
		}
	})}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	select {
	case g := <-answers:
		if g.code == "" {
			return "", "", fmt.Errorf("the authorization server refused: %s", g.fail)
		}
		// The page is still being written.
		time.Sleep(50 * time.Millisecond)
		return g.code, g.state, nil
	case <-ctx.Done():
		return "", "", errors.Join(errors.New("the browser did not come back"), ctx.Err())
	}
}
