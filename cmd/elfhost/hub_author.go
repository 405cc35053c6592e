package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/hub"
	"github.com/elfhost/elfhost/skillhub/pack"
	"github.com/elfhost/elfhost/skillhub/sign"
)

// authorFlags are of the verbs that keep a hub.
type authorFlags struct {
	keys       []string
	passphrase string // a file
}

func (f *authorFlags) register(c *cobra.Command) {
	fl := c.Flags()
	fl.StringArrayVar(&f.keys, "keys", nil, "a folder with the hub's keys; DIR.keys when none is given")
	fl.StringVar(&f.passphrase, "passphrase-file", "", "a file whose first line opens the keys; else it is asked for")
}

func (f *authorFlags) author(ctx context.Context, s streams, dir string) *hub.Author {
	return &hub.Author{Dir: dir, Keys: f.keys, Passphrase: func(file string) ([]byte, error) {
		return f.secret(ctx, s, "passphrase of "+term.Line(file)+" (not shown): ")
	}}
}

// secret reads a passphrase from the file, or from the terminal.
func (f *authorFlags) secret(ctx context.Context, s streams, question string) ([]byte, error) {
	if f.passphrase != "" {
		b, err := os.ReadFile(f.passphrase)
		if err != nil {
			return nil, fault.Wrap("E1001", "", err)
		}
		line, _, _ := strings.Cut(string(b), "\n")
		return []byte(strings.TrimRight(line, "\r")), nil
	}
	if !term.IsTerminal(s.in) {
		return nil, fault.New("E1607", "give it with --passphrase-file", "the key has a passphrase, and there is no terminal to ask for it")
	}
	line, err := term.Hidden(ctx, s.in, s.err, question, 1024)
	return []byte(line), err
}

// authorFault gives an error of keeping a hub its code.
func authorFault(err error) error {
	var f *fault.Error
	var disk *fs.PathError
	switch {
	case err == nil || errors.As(err, &f) || errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, hub.ErrNoKey):
		return fault.Wrap("E1607", "--keys names the folders with the keys", err)
	case errors.Is(err, hub.ErrNotOwner):
		return fault.Wrap("E1606", "--new-key hands the name over, if you know that the publisher has a new key", err)
	case errors.Is(err, hub.ErrUnsigned):
		return fault.Wrap("E1606", "`elfhost plugin sign` signs it; --unsigned publishes it as it is", err)
	case errors.Is(err, hub.ErrTaken), errors.Is(err, pack.ErrRefused), errors.Is(err, sign.ErrSignature), errors.Is(err, skillhub.ErrMismatch):
		return fault.Wrap("E1606", "", err)
	case errors.Is(err, skillhub.ErrNotFound):
		return fault.Wrap("E1601", "", err)
	case errors.Is(err, hub.ErrExists), errors.Is(err, abi.ErrInvalid), errors.Is(err, fs.ErrNotExist):
		return fault.Wrap("E1001", "", err)
	case errors.As(err, &disk): // full, or not ours to write
		return fault.Wrap("E1501", "the hub is as it was; make room, or look at its folder's owner and mode", err)
	}
	return fault.Wrap("E1603", "", err)
}

func hubInit(s streams) *cobra.Command {
	var f authorFlags
	o := hub.InitOptions{Days: map[string]int{}}
	sealed := false
	c := &cobra.Command{
		Use: "init DIR", Short: "Make an empty hub, and its keys",
		Long: `Make a hub in a folder that any web server can serve, and its keys in another
folder, DIR.keys, which nobody serves. The root key is needed only to replace
keys: keep it, or its files, somewhere else.`,
		Example: `  elfhost hub init ./hub
  elfhost hub init ./hub --root-keys 3 --root-threshold 2 --passphrase`,
		Args: exactly(1, "one folder"),
		RunE: func(c *cobra.Command, args []string) error {
			if sealed || f.passphrase != "" {
				var err error
				if o.Passphrase, err = f.newSecret(c.Context(), s); err != nil {
					return err
				}
			}
			for role, n := range o.Days {
				if n == 0 {
					delete(o.Days, role)
				}
			}
			a := f.author(c.Context(), s, args[0])
			root, err := a.Init(c.Context(), o)
			if err != nil {
				return authorFault(err)
			}
			_, err = fmt.Fprintf(s.out, "hub   %s\nkeys  %s\nroot  %s\n\nTell the root's fingerprint to those who use the hub. Renew it with\n`elfhost hub sign %s` at least every %d days.\n",
				term.Line(args[0]), term.Line(a.KeyDirs()[0]), root, term.Line(args[0]), timestampDays(o))
			return err
		},
	}
	f.register(c)
	fl := c.Flags()
	fl.BoolVar(&sealed, "passphrase", false, "seal the keys with a passphrase")
	fl.IntVar(&o.RootKeys, "root-keys", 1, "how many keys the root has")
	fl.IntVar(&o.RootThreshold, "root-threshold", 1, "how many of them have to sign a new root")
	fl.IntVar(&o.Bits, "bins", 8, "hand packages out to 2 to the power of this many files; 8 serves 100,000 packages")
	fl.StringToIntVar(&o.Days, "days", nil, "how long signed metadata counts: timestamp=14,snapshot=90,packages=365,targets=365,root=730")
	return c
}

func timestampDays(o hub.InitOptions) int {
	if n := o.Days[hub.Timestamp]; n > 0 {
		return n
	}
	return hub.TimestampDays
}

func (f *authorFlags) newSecret(ctx context.Context, s streams) ([]byte, error) {
	first, err := f.secret(ctx, s, "new passphrase (not shown): ")
	if err != nil {
		return nil, err
	}
	if len(first) == 0 {
		return nil, fault.New("E1001", "", "the passphrase is empty")
	}
	if f.passphrase != "" {
		return first, nil
	}
	again, err := f.secret(ctx, s, "once more: ")
	if err == nil && string(again) != string(first) {
		err = fault.New("E1001", "", "these are two passphrases")
	}
	return first, err
}

func hubPublish(s streams) *cobra.Command {
	var f authorFlags
	var o hub.PublishOptions
	var unsigned bool
	c := &cobra.Command{
		Use: "publish DIR PACKAGE...", Short: "Add packages to a hub, all or none",
		Long: `Add archives to the hub in a folder. A version is published once; a name belongs
to the key that signed it first. Ended anywhere, it leaves the old hub or the new one.`,
		Example: "  elfhost hub publish ./hub fetch-1.2.0.elfpkg",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			var rs []hub.Release
			for _, file := range args[1:] {
				r, err := hub.ReadRelease(c.Context(), file)
				switch {
				case err != nil:
				case r.Key == "" && !unsigned:
					err = fmt.Errorf("%q: %w", file, hub.ErrUnsigned)
				case host.ReservedPackage(r.Listing.Name):
					err = fault.New("E1606", "give the package another name in its elf.toml", "%q: a package cannot be called %q: that is a tool of elfhost's own, and no elfhost installs it", file, r.Listing.Name)
				}
				if err != nil {
					return authorFault(err)
				}
				rs = append(rs, r)
			}
			added, err := f.author(c.Context(), s, args[0]).Publish(c.Context(), o, rs...)
			if err != nil {
				return authorFault(err)
			}
			for _, l := range added {
				fmt.Fprintf(s.out, "published %s %s  %s\n", l.Name, l.Version, l.Digest)
			}
			if len(added) < len(rs) {
				fmt.Fprintf(s.out, "%d of %d were there already\n", len(rs)-len(added), len(rs))
			}
			return nil
		},
	}
	f.register(c)
	c.Flags().BoolVar(&o.NewKey, "new-key", false, "hand the names over to the keys that signed these packages")
	c.Flags().BoolVar(&unsigned, "unsigned", false, "take packages that nobody signed")
	return c
}

func hubYank(s streams) *cobra.Command {
	var f authorFlags
	var reason string
	var undo bool
	c := &cobra.Command{
		Use: "yank DIR NAME@VERSION", Short: "Withdraw a version",
		Long: `Withdraw a version: nobody gets it any more who does not name it. Those who have it
are told why when they look for updates.`,
		Example: `  elfhost hub yank ./hub fetch@1.2.0 --reason "follows redirects too far"`,
		Args:    exactly(2, "a folder and a version"),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := skillhub.ParseRef(args[1])
			if err != nil || r.Kind != skillhub.Named || r.Hub != "" || r.Version == "" {
				return fault.New("E1001", "", "%q is not NAME@VERSION", args[1])
			}
			if undo == (reason != "") {
				return fault.New("E1001", "", "give a --reason, or --undo")
			}
			if err := f.author(c.Context(), s, args[0]).Yank(c.Context(), r.Name, r.Version, reason); err != nil {
				return authorFault(err)
			}
			word := "withdrawn"
			if undo {
				word = "back"
			}
			_, err = fmt.Fprintf(s.out, "%s %s is %s\n", r.Name, r.Version, word)
			return err
		},
	}
	f.register(c)
	c.Flags().StringVar(&reason, "reason", "", "why, for those who have it")
	c.Flags().BoolVar(&undo, "undo", false, "take it back")
	return c
}

func hubSign(s streams) *cobra.Command {
	var f authorFlags
	var asJSON, show bool
	c := &cobra.Command{
		Use: "sign DIR", Short: "Renew a hub's metadata, before it expires",
		Long: `Renew what is past half of its life, and the timestamp always; complete a new root
that waits for signatures. Let a timer run this: a hub that is not renewed stops
being installed from.`,
		Args: exactly(1, "one folder"),
		RunE: func(c *cobra.Command, args []string) error {
			a := f.author(c.Context(), s, args[0])
			st, err := hub.Status{}, error(nil)
			if show {
				st, err = a.Status()
			} else {
				st, err = a.Sign(c.Context())
			}
			if err != nil {
				return authorFault(err)
			}
			if asJSON {
				return json.NewEncoder(s.out).Encode(st)
			}
			for _, r := range st.Roles {
				word := ""
				if r.Renewed {
					word = "  renewed"
				}
				fmt.Fprintf(s.out, "%-10s version %-6d until %s%s\n", r.Role, r.Version, r.Expires.Format(time.DateOnly), word)
				if r.Note != "" {
					fmt.Fprintf(s.out, "           %s\n", term.Line(r.Note))
				}
			}
			_, err = fmt.Fprintf(s.out, "root       %s\n", st.Root)
			return err
		},
	}
	f.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&show, "show", false, "only say how long it counts")
	return c
}

func hubRotate(s streams) *cobra.Command {
	var f authorFlags
	var o hub.RotateOptions
	var sealed bool
	c := &cobra.Command{
		Use: "rotate DIR ROLE", Short: "Replace a key of a hub",
		Long: `Replace a key by a new one. The roles are ` + strings.Join(hub.Roles(), ", ") + `.
Clients follow by themselves. All but packages needs the root's keys; with too few
of them at hand the new root waits until ` + "`elfhost hub sign`" + ` adds the rest.`,
		Example: `  elfhost hub rotate ./hub timestamp --keys ./hub.keys --keys /media/stick
  elfhost hub rotate ./hub root --revoke 3f9a02`,
		Args: exactly(2, "a folder and a role"),
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if sealed {
				if o.Passphrase, err = f.newSecret(c.Context(), s); err != nil {
					return err
				}
			}
			got, err := f.author(c.Context(), s, args[0]).Rotate(c.Context(), args[1], o)
			if err != nil {
				return authorFault(err)
			}
			if got.New != "" {
				fmt.Fprintf(s.out, "new key  %s\nrevoked  %s\n", term.Line(got.New), got.Revoked)
			}
			if got.Pending != "" {
				fmt.Fprintf(s.out, "Version %d of the root waits for signatures: %s.\nUntil then nothing has changed. Complete it with `elfhost hub sign %s --keys …`.\n", got.Root, got.Pending, term.Line(args[0]))
			}
			return nil
		},
	}
	f.register(c)
	fl := c.Flags()
	fl.StringVar(&o.Revoke, "revoke", "", "the key to replace, by the beginning of its identifier; needed where the role has several")
	fl.BoolVar(&o.KeepKeys, "keep-keys", false, "with root: only sign it anew, with the keys that it has")
	fl.BoolVar(&sealed, "passphrase", false, "seal the new key with a passphrase")
	return c
}
