package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
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

type loginFlags struct {
	scopes                   []string
	auth, client, secretFrom string
	port                     int
	wait                     time.Duration
}

func mcpLoginVerb(s streams) *cobra.Command {
	var f sessionFlags
	var o loginFlags
	c := &cobra.Command{
		Use: "login NAME", Short: "Log in to a server with OAuth",
		Long: `Log in to a server over HTTP, in the browser. The tokens are kept in the system's
keyring where one answers, else in a file that only you can read, and are renewed
where they were got.

Authorization servers that take no registrations give you a client id by hand:
hand it over with --client-id, and register http://127.0.0.1:PORT/callback there.`,
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
			i := slices.IndexFunc(servers, func(m mcp.Server) bool { return strings.EqualFold(m.Name, args[0]) })
			if i < 0 || servers[i].URL == "" {
				return fault.New("E1001", "`elfhost mcp list` names the servers", "there is no server %q over HTTP", args[0])
			}
			ctx, cancel := context.WithTimeout(c.Context(), o.wait)
			defer cancel()
			return o.login(ctx, s, a, servers[i])
		},
	}
	f.register(c)
	fl := c.Flags()
	fl.StringSliceVar(&o.scopes, "scope", nil, "OAuth scopes to ask for; those that the server wants when empty")
	fl.StringVar(&o.client, "client-id", "", "the client id that its authorization server gave you")
	fl.StringVar(&o.secretFrom, "client-secret-env", "", "the variable that holds the client secret")
	fl.IntVar(&o.port, "port", 0, "of this machine, for the browser to come back to; any when 0")
	fl.StringVar(&o.auth, "auth", "", "the origin of its authorization server, where that is not a public address: http://127.0.0.1:9000")
	fl.DurationVar(&o.wait, "wait", 5*time.Minute, "for the browser to come back")
	return c
}

// login waits on a port of this machine for the browser to come back.
func (o loginFlags) login(ctx context.Context, s streams, a *app.App, server mcp.Server) error {
	grants := []policy.Grant{{Cap: abi.NetHTTP, Scope: []string{"public GET,POST"}}}
	if g, ok := server.Grant(); ok {
		grants = append(grants, g)
	}
	if g, ok := (mcp.Server{URL: o.auth}).Grant(); ok {
		grants = append(grants, g)
	}
	given, err := policy.New("the log-in", grants...)
	if err != nil {
		return fault.Wrap("E1001", "", err)
	}
	opt := mcp.LoginOptions{Scopes: o.scopes, ClientID: o.client, Plain: strings.TrimSuffix(o.auth, "/")}
	if o.secretFrom != "" {
		if opt.ClientSecret = os.Getenv(o.secretFrom); opt.ClientSecret == "" || o.client == "" {
			return fault.New("E1001", "", "--client-secret-env names a variable that is set, beside --client-id")
		}
		a.Secrets.Scrub.Add(opt.ClientSecret)
	}
	web := a.HTTP.Client(policy.Rights{Grants: given.Meet(a.Policy.Ceiling())}, reach.HTTPLimits{Body: 1 << 20, Redirects: -1}, nil)
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)))
	if err != nil {
		return fault.Wrap("E1310", "--port takes another one", err)
	}
	defer l.Close()
	opt.Redirect = "http://" + l.Addr().String() + "/callback"
	run, err := server.Login(ctx, web, opt)
	if err != nil {
		return fault.Wrap("E1310", "", a.Secrets.Scrub.Error(err))
	}
	fmt.Fprintf(s.err, "elfhost: %s has people log in at %s\n", term.Line(server.Name), term.Line(run.Issuer))
	if len(run.Scopes) > 0 {
		fmt.Fprintf(s.err, "elfhost: it is to get: %s\n", term.Line(strings.Join(run.Scopes, " ")))
	}
	fmt.Fprintf(s.err, "elfhost: open this address in a browser and log in:\n\n  %s\n\n", term.Line(run.URL))
	back, err := callback(ctx, l, run.Ours)
	if err != nil {
		return fault.Wrap("E1310", "", err)
	}
	if err := run.Finish(ctx, back); err != nil {
		return fault.Wrap("E1310", "try again; a log-in counts once", a.Secrets.Scrub.Error(err))
	}
	fmt.Fprintf(s.err, "elfhost: logged in to %s; the tokens are kept in %s\n", term.Line(server.Name), a.Secrets.Store.Where())
	return nil
}

// callback takes the first answer that belongs to this log-in. Any page can
// send a browser here; what it brings then is left.
func callback(ctx context.Context, l net.Listener, ours func(url.Values) bool) (url.Values, error) {
	answers := make(chan url.Values, 1)
	srv := &http.Server{ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.Method != http.MethodGet || r.URL.Path != "/callback" || !ours(q) {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "You can close this page and go back to the terminal.\n")
		select {
		case answers <- q:
		default:
		}
	})}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	select {
	case q := <-answers:
		// The page is still being written.
		time.Sleep(50 * time.Millisecond)
		return q, nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, errors.New("the browser did not come back in time; --wait gives it longer")
		}
		return nil, ctx.Err()
	}
}

func mcpLogoutVerb(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "logout NAME", Short: "Forget the log-in to a server", Long: "Forget the tokens that were kept for a server. The server is not told.", Args: exactly(1, "a server's name"),
		RunE: func(_ *cobra.Command, args []string) error {
			secrets, err := openSecrets()
			if err != nil {
				return err
			}
			was, err := mcp.Logout(secrets.Store, args[0])
			switch {
			case err != nil:
				return fault.Wrap("E1501", "`elfhost doctor` checks the folders", err)
			case !was:
				return fault.New("E1001", "", "there is no log-in to %q", args[0])
			}
			fmt.Fprintf(s.err, "elfhost: the log-in to %s is forgotten\n", term.Line(args[0]))
			return nil
		},
	}
}
