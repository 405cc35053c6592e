package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/reach/secret"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

// maxSecret bounds what is read; secret.Vault says what a secret may be.
const maxSecret = 64 << 10

func secretVerb(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "secret", Short: "Keep keys and tokens that plugins may use but never see", Args: noArgs,
		Long: `Keep secrets by name. A plugin gets a placeholder; the value is filled in when
its request leaves, for the hosts that the secret was granted to, and taken out
of whatever comes back. No value is ever printed, logged or given to a model.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(secretSet(s), secretList(s), secretRemove(s))
	return c
}

func openSecrets() (*secret.Vault, error) {
	paths, err := config.FindPaths(os.Getenv)
	if err != nil {
		return nil, fault.Wrap("E1002", "", err)
	}
	return secret.Open(filepath.Join(paths.State, "secrets")), nil
}

// secretFault is about the store, unless what was given is at fault. reach's
// errors name secrets, never their values.
func secretFault(err error) error {
	if errors.Is(err, abi.ErrInvalid) {
		return fault.Wrap("E1001", "", err)
	}
	return fault.Wrap("E1501", "`elfhost doctor` checks the folders", err)
}

func secretSet(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "set NAME", Short: "Keep a secret; its value is read from the terminal or standard input",
		Long: "Keep a secret, or replace it. The value is asked for, or read from standard input;\nit cannot be given as an argument, because other programs can read those.",
		Example: `  elfhost secret set github-token
  gh auth token | elfhost secret set github-token
  elfhost grant add myplugin 'secret github-token@api.github.com'`,
		Args: exactly(1, "the secret's name, and its value on standard input"),
		RunE: func(c *cobra.Command, args []string) error {
			secrets, err := openSecrets()
			if err != nil {
				return err
			}
			value, err := readSecret(c, s, args[0])
			if err != nil {
				return err
			}
			if err := secrets.Set(args[0], value); err != nil {
				return secretFault(err)
			}
			_, err = fmt.Fprintf(s.out, "kept %s in %s\n", term.Line(args[0]), term.Line(secrets.Store.Where()))
			return err
		},
	}
}

func readSecret(c *cobra.Command, s streams, name string) (string, error) {
	if term.IsTerminal(s.in) {
		value, err := term.Hidden(c.Context(), s.in, s.err, "value of "+term.Line(name)+" (not shown): ", maxSecret)
		if errors.Is(err, term.ErrInterrupt) || errors.Is(err, io.EOF) {
			return "", fault.New("E1504", "", "nothing was kept")
		}
		if err != nil {
			return "", fault.Wrap("E1001", "", err)
		}
		return strings.TrimSpace(value), nil
	}
	if s.in == nil {
		return "", fault.New("E1001", "", "there is no standard input to read the value from")
	}
	b, err := io.ReadAll(io.LimitReader(s.in, maxSecret+1))
	if err != nil {
		return "", fault.New("E1001", "", "reading the value from standard input: %w", err)
	}
	if len(b) > maxSecret {
		return "", fault.New("E1001", "", "standard input holds over %d bytes", maxSecret)
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// kept is what `secret list --json` prints.
type kept struct {
	Where string   `json:"where"`
	Names []string `json:"names"`
}

func secretList(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "Name the secrets that are kept", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			secrets, err := openSecrets()
			if err != nil {
				return err
			}
			names, err := secrets.Store.Names()
			if err != nil {
				return secretFault(err)
			}
			if asJSON {
				return json.NewEncoder(s.out).Encode(kept{secrets.Store.Where(), append([]string{}, names...)})
			}
			for _, n := range names {
				fmt.Fprintln(s.out, term.Line(n))
			}
			if len(names) == 0 {
				fmt.Fprintln(s.err, "elfhost: no secret is kept; `elfhost secret set NAME` keeps one")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func secretRemove(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME...", Aliases: []string{"remove", "delete"}, Short: "Forget secrets",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			secrets, err := openSecrets()
			if err != nil {
				return err
			}
			var missing []error
			for _, n := range args {
				switch err := secrets.Store.Delete(n); {
				case errors.Is(err, abi.ErrNotFound):
					missing = append(missing, fmt.Errorf("no secret %q is kept", n))
				case err != nil:
					return secretFault(err)
				default:
					fmt.Fprintf(s.out, "forgot %s\n", term.Line(n))
				}
			}
			return fault.Wrap("E1001", "`elfhost secret list` names them", errors.Join(missing...))
		},
	}
}
