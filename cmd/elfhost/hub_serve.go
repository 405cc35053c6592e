package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
	"github.com/elfhost/elfhost/skillhub/hub"
	"github.com/elfhost/elfhost/skillhub/pack"
	"github.com/elfhost/elfhost/skillhub/serve"
	"github.com/elfhost/elfhost/skillhub/sign"
)

// tokensFile is the file of publishers' tokens in a hub's folder of keys.
const tokensFile = "tokens"

func hubServe(s streams) *cobra.Command {
	var f authorFlags
	var addr, url string
	var renew, uploads bool
	c := &cobra.Command{
		Use: "serve DIR", Short: "Serve a hub, with search, uploads and pages",
		Long: `Serve the hub in a folder over HTTP: its files, a search, a page for each package,
and uploads by publishers who have a token (` + "`elfhost hub token`" + `). Put a proxy with TLS
before it to serve others than this machine.`,
		Example: `  elfhost hub serve ./hub --addr 127.0.0.1:8787
  elfhost hub serve ./hub --addr :8787 --url https://hub.acme.example --uploads --renew`,
		Args: exactly(1, "one folder"),
		RunE: func(c *cobra.Command, args []string) error {
			a := f.author(c.Context(), s, args[0])
			o := serve.Options{Author: a, URL: strings.TrimSuffix(url, "/"), Renew: renew, Log: func(text string) {
				fmt.Fprintf(s.err, "elfhost: hub: %s\n", term.Lines(text))
			}}
			if uploads {
				o.Tokens = filepath.Join(a.KeyDirs()[0], tokensFile)
			}
			return serveHub(c.Context(), s, o, addr)
		},
	}
	f.register(c)
	fl := c.Flags()
	fl.StringVar(&addr, "addr", "127.0.0.1:8787", "listen here")
	fl.StringVar(&url, "url", "", "how clients reach it, for the pages")
	fl.BoolVar(&uploads, "uploads", false, "take packages from publishers who have a token; needs the keys")
	fl.BoolVar(&renew, "renew", false, "sign the hub anew twice a day; needs the keys")
	return c
}

func serveHub(ctx context.Context, s streams, o serve.Options, addr string) error {
	srv, err := serve.New(ctx, o)
	if err != nil {
		return app.HubFault(err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		srv.Close()
		return fault.New("E1001", "another program may listen there: choose another --addr", "listening on %s: %w", addr, err)
	}
	fmt.Fprintf(s.err, "elfhost: serving http://%s/\n", l.Addr())
	err = srv.Serve(ctx, l)
	if closed := srv.Close(); err == nil {
		err = closed
	}
	return err
}

func hubToken(s streams) *cobra.Command {
	var f authorFlags
	var revoke bool
	c := &cobra.Command{
		Use: "token DIR PUBLISHER", Short: "Let a publisher upload to a hub that is served",
		Long: `Make a token with which a publisher uploads its own, signed packages. It is shown
once; its digest alone is kept.`,
		Args: exactly(2, "a folder and a publisher"),
		RunE: func(c *cobra.Command, args []string) error {
			publisher := args[1]
			if publisher == "" || strings.HasPrefix(publisher, "#") || strings.ContainsFunc(publisher, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
				return fault.New("E1001", "", "%q is not the name of a publisher", publisher)
			}
			a := f.author(c.Context(), s, args[0])
			if _, err := a.Status(); err != nil {
				return authorFault(err)
			}
			file := filepath.Join(a.KeyDirs()[0], tokensFile)
			if revoke {
				n, err := serve.RevokeTokens(c.Context(), file, publisher)
				if err == nil {
					_, err = fmt.Fprintf(s.out, "%d tokens of %s are revoked\n", n, publisher)
				}
				return authorFault(err)
			}
			token, err := serve.NewToken(c.Context(), file, publisher)
			if err == nil {
				_, err = fmt.Fprintln(s.out, token)
			}
			return authorFault(err)
		},
	}
	f.register(c)
	c.Flags().BoolVar(&revoke, "revoke", false, "make all tokens of the publisher worthless")
	return c
}

func hubUpload(s streams) *cobra.Command {
	var tokenEnv string
	c := &cobra.Command{
		Use: "upload HUB|URL PACKAGE...", Short: "Publish packages on a hub that somebody serves",
		Example: "  ELFHOST_HUB_TOKEN=… elfhost hub upload acme fetch-1.2.0.elfpkg",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			a, set, done, err := openHubs(c.Context(), s)
			if err != nil {
				return err
			}
			defer done()
			token, err := uploadToken(tokenEnv)
			if err != nil {
				return err
			}
			location := args[0]
			for _, r := range set.Remotes() {
				if r.Name == args[0] {
					location = r.Location
				}
			}
			for _, file := range args[1:] {
				l, err := hub.Upload(c.Context(), a.HubOptions(), location, token, file)
				if err != nil {
					return uploadFault(err)
				}
				fmt.Fprintf(s.out, "published %s %s  %s\n", term.Line(l.Name), term.Line(l.Version), l.Digest)
			}
			return nil
		},
	}
	c.Flags().StringVar(&tokenEnv, "token-env", "ELFHOST_HUB_TOKEN", "the variable that holds the token")
	return c
}

func uploadToken(env string) (string, error) {
	token := os.Getenv(env)
	if token == "" {
		return "", fault.New("E1001", "whoever keeps the hub makes one with `elfhost hub token`", "the variable %s holds no token", env)
	}
	return token, nil
}

func uploadFault(err error) error {
	if errors.Is(err, hub.ErrRefusedUpload) {
		return fault.Wrap("E1606", "", err)
	}
	return app.HubFault(authorUpload(err))
}

// authorUpload gives what is wrong with the archive itself its code.
func authorUpload(err error) error {
	if errors.Is(err, pack.ErrRefused) || errors.Is(err, sign.ErrSignature) || errors.Is(err, hub.ErrUnsigned) || errors.Is(err, fs.ErrNotExist) {
		return authorFault(err)
	}
	return err
}
