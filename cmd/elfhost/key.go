package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
	"github.com/elfhost/elfhost/skillhub/sign"
)

// passwordEnv is the variable that unlocks a key where nobody can be asked.
const passwordEnv = "ELFHOST_KEY_PASSWORD"

func keyVerb(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "key", Short: "Make keys to sign packages with, and look at those of publishers", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(keyNew(s), keyList(s), keyForget(s))
	return c
}

// keysDir is where a person's own keys lie.
func keysDir(p config.Paths) string { return filepath.Join(p.Config, "keys") }

func keyNew(s streams) *cobra.Command {
	var locked bool
	c := &cobra.Command{
		Use: "new [NAME]", Short: "Make a key pair to sign packages with",
		Long: "Make a key pair in minisign's format. The secret key is readable by you alone; --password encrypts it as well, and asks for\nthe password, or takes it from " + passwordEnv + ". Copy it to a safe place: whoever has it signs as you.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := userConfig()
			if err != nil {
				return err
			}
			name := sign.DefaultKey
			if len(args) == 1 {
				name = args[0]
			}
			password := ""
			if locked {
				if password, err = keyPassword(c.Context(), s, "a password for the new key: "); err != nil {
					return err
				}
				if password == "" {
					return fault.New("E1001", "leave --password out for a key without one", "the password is empty")
				}
			}
			k, err := sign.New(keysDir(p), name, password)
			if err != nil {
				return fault.Wrap("E1501", "a key is never overwritten: choose another name", err)
			}
			_, err = fmt.Fprintf(s.out, "key     %s (%s)\npublic  %s\nsecret  %s\n", k.Name, k.ID, k.Public, k.File)
			return err
		},
	}
	c.Flags().BoolVar(&locked, "password", false, "encrypt the secret key with a password")
	return c
}

// keyPassword reads a password from the environment or the terminal.
func keyPassword(ctx context.Context, s streams, label string) (string, error) {
	if p := os.Getenv(passwordEnv); p != "" {
		return p, nil
	}
	if !term.IsTerminal(s.in) {
		return "", fault.New("E1201", "set "+passwordEnv, "the key is locked, and nobody is there to unlock it")
	}
	return term.Hidden(ctx, s.in, s.err, label, 256)
}

// openKey opens a person's key, and asks for its password if it has one.
func openKey(ctx context.Context, s streams, name string) (sign.Secret, error) {
	p, err := userConfig()
	if err != nil {
		return sign.Secret{}, err
	}
	k, err := sign.Open(keysDir(p), name, "")
	if errors.Is(err, sign.ErrLocked) {
		var password string
		if password, err = keyPassword(ctx, s, "password of the key "+name+": "); err == nil {
			k, err = sign.Open(keysDir(p), name, password)
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		return k, fault.New("E1304", "`elfhost key new "+name+"` makes it; `elfhost key list` shows those that are there", "there is no key %q", name)
	}
	return k, fault.Wrap("E1321", "", err)
}

// keyRows is what `key list --json` prints.
type keyRows struct {
	Own        []sign.Key        `json:"own"`
	Publishers map[string]string `json:"publishers"`
}

func keyList(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List your keys, and the pinned keys of publishers", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withApp(c.Context(), s, func(a *app.App) error {
				own, err := sign.List(keysDir(a.Paths))
				if err != nil {
					return fault.Wrap("E1501", "", err)
				}
				pins, err := a.Publishers()
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(s.out).Encode(keyRows{own, pins})
				}
				for _, k := range own {
					note := ""
					if k.Locked {
						note = "  (with a password)"
					}
					fmt.Fprintf(s.out, "yours      %-20s %s  %s%s\n", k.Name, k.ID, k.Public, note)
				}
				var names []string
				for n := range pins {
					names = append(names, n)
				}
				slices.Sort(names)
				for _, n := range names {
					fmt.Fprintf(s.out, "publisher  %-20s %s  %s\n", term.Line(n), sign.Signer{Key: pins[n]}.KeyID(), pins[n])
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func keyForget(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "forget PUBLISHER", Short: "Forget a publisher's pinned key, so that the next is pinned",
		Long: "Forget the key that a publisher's packages were signed with so far. Do it when you know, from elsewhere than the package,\nthat the publisher has a new key.",
		Args: exactly(1, "one publisher"),
		RunE: func(c *cobra.Command, args []string) error {
			return withApp(c.Context(), s, func(a *app.App) error {
				if err := a.ForgetKey(c.Context(), args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintf(s.out, "the key of %s is forgotten\n", term.Line(args[0]))
				return err
			})
		},
	}
}
