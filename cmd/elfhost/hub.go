package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/hub"
)

func hubVerb(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "hub", Short: "Find packages on hubs, and keep a hub of your own", Args: noArgs,
		Long: `A hub is a folder of files that say, signed, which packages there are. It lies on
a web server, in a folder, or in one file that was carried over.`,
		Example: `  elfhost hub add acme https://hub.acme.example --root sha256:…
  elfhost hub search "read pdf"
  elfhost hub init ./hub && elfhost hub publish ./hub fetch-1.2.0.elfpkg`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(hubAdd(s), hubList(s), hubRemove(s), hubSearch(s), hubRefresh(s), hubMirror(s),
		hubInit(s), hubPublish(s), hubYank(s), hubSign(s), hubRotate(s), hubServe(s), hubToken(s), hubUpload(s))
	return c
}

// openHubs opens a session for its hubs. done closes it.
func openHubs(ctx context.Context, s streams) (a *app.App, set *hub.Set, done func(), err error) {
	if a, err = openQuiet(ctx, s); err != nil {
		return nil, nil, nil, err
	}
	done = func() { a.Close(context.WithoutCancel(ctx)) }
	if set, err = a.Hubs(); err != nil {
		done()
		return nil, nil, nil, err
	}
	return a, set, done, nil
}

func hubAdd(s streams) *cobra.Command {
	var root string
	c := &cobra.Command{
		Use: "add NAME URL|DIR|BUNDLE", Short: "Use a hub, and pin its root",
		Long: `Use a hub under a name of your own. Its root says whose keys may sign for it: it
is pinned now, and changes only as its own keys allow. Compare the fingerprint
with one that you got another way than from the hub itself.`,
		Example: `  elfhost hub add acme https://hub.acme.example
  elfhost hub add carried ./packages.elfbundle --root sha256:…`,
		Args: exactly(2, "a name and a location"),
		RunE: func(c *cobra.Command, args []string) error {
			return addHub(c.Context(), s, args[0], args[1], root)
		},
	}
	c.Flags().StringVar(&root, "root", "", "the fingerprint of the root, for scripts: sha256:…")
	return c
}

func addHub(ctx context.Context, s streams, name, location, root string) error {
	if err := abi.CheckName(name); err != nil {
		return fault.Wrap("E1001", "", err)
	}
	location, err := hub.CheckLocation(location)
	if err != nil {
		return fault.Wrap("E1001", "", err)
	}
	var want skillhub.Digest
	if root != "" {
		if want, err = skillhub.ParseDigest(root); err != nil {
			return fault.Wrap("E1001", "", err)
		}
	}
	a, set, done, err := openHubs(ctx, s)
	if err != nil {
		return err
	}
	defer done()
	if slices.ContainsFunc(set.Remotes(), func(r hub.Remote) bool { return r.Name == name }) {
		return fault.New("E1001", "`elfhost hub remove "+name+"` forgets it", "a hub called %q is known already", name)
	}
	offer, err := hub.Look(ctx, a.HubOptions(), location, want)
	if err != nil {
		return app.HubFault(err)
	}
	if want == "" {
		if err := askRoot(ctx, s, name, location, offer); err != nil {
			return err
		}
	}
	r, err := hub.Pin(ctx, a.HubOptions(), name, location, offer)
	if err != nil {
		return app.HubFault(err)
	}
	err = a.Paths.UpdateHubs(func(hs []config.Hub) ([]config.Hub, error) {
		hs = slices.DeleteFunc(hs, func(h config.Hub) bool { return h.Name == name })
		return append(hs, config.Hub{Name: r.Name, Location: r.Location, Root: r.Root}), nil
	})
	if err != nil {
		return fault.Wrap("E1501", "`elfhost doctor` checks the folders", err)
	}
	_, err = fmt.Fprintf(s.out, "%s is added: %s\nroot %s\nFind packages with: elfhost hub search WORDS\n", name, term.Line(location), r.Root)
	return err
}

// askRoot shows a root, and asks whether it is pinned.
func askRoot(ctx context.Context, s streams, name, location string, o hub.Offer) error {
	text := fmt.Sprintf("hub      %s\nroot     %s\n         version %d, signed by %d of %d keys, until %s\n",
		term.Line(location), o.Root, o.Version, o.Threshold, o.Keys, o.Expires.Format(time.DateOnly))
	if !term.IsTerminal(s.in) {
		fmt.Fprint(s.err, text)
		return fault.New("E1201", "a script says which root it means: --root "+string(o.Root), "the root of %s is not pinned", name)
	}
	text += "Whoever holds the keys of this root says what the packages of this hub are. Nothing\n" +
		"says that it is the hub you mean, unless you got this fingerprint in another way.\n"
	p := &term.Prompt{In: s.in, Out: s.err, Style: term.StyleOf(s.err, os.Getenv)}
	n, err := p.Choose(ctx, text, []string{"pin this root, and use the hub", "no"}, 1)
	if err == nil && n != 0 {
		err = fault.New("E1202", "", "the hub is not added")
	}
	return err
}

func hubRemove(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm"}, Short: "Stop using a hub; what is installed stays", Args: exactly(1, "one hub"),
		RunE: func(c *cobra.Command, args []string) error {
			a, set, done, err := openHubs(c.Context(), s)
			if err != nil {
				return err
			}
			defer done()
			if !slices.ContainsFunc(set.Remotes(), func(r hub.Remote) bool { return r.Name == args[0] }) {
				return fault.New("E1601", "`elfhost hub list` shows them", "no hub is called %q", args[0])
			}
			err = a.Paths.UpdateHubs(func(hs []config.Hub) ([]config.Hub, error) {
				return slices.DeleteFunc(hs, func(h config.Hub) bool { return h.Name == args[0] }), nil
			})
			if err = errors.Join(err, hub.Forget(c.Context(), a.HubOptions(), args[0])); err != nil {
				return fault.Wrap("E1501", "`elfhost doctor` checks the folders", err)
			}
			_, err = fmt.Fprintf(s.out, "%s is removed\n", args[0])
			return err
		},
	}
}

// hubRow is a hub in `hub list --json` and `hub refresh --json`.
type hubRow struct {
	hub.Refreshed
	Problem string `json:"problem,omitempty"`
}

func hubList(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the hubs", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, set, done, err := openHubs(c.Context(), s)
			if err != nil {
				return err
			}
			defer done()
			if asJSON {
				return json.NewEncoder(s.out).Encode(append([]hub.Remote{}, set.Remotes()...))
			}
			for _, r := range set.Remotes() {
				fmt.Fprintf(s.out, "%-16s %s\n    root %s\n", r.Name, term.Line(r.Location), r.Root)
			}
			if len(set.Remotes()) == 0 {
				fmt.Fprintln(s.err, "elfhost: no hub is known; `elfhost hub add NAME URL` adds one")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func hubRefresh(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "refresh [NAME]", Short: "Bring the metadata and the index of hubs up to date", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			_, set, done, err := openHubs(c.Context(), s)
			if err != nil {
				return err
			}
			defer done()
			got, err := set.Refresh(c.Context(), strings.Join(args, ""))
			if err != nil {
				return app.HubFault(err)
			}
			return printRefreshed(s, got, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printRefreshed(s streams, got []hub.Refreshed, asJSON bool) error {
	rows, failed := make([]hubRow, len(got)), error(nil)
	for i, g := range got {
		rows[i].Refreshed = g
		if g.Err != nil {
			rows[i].Problem = g.Err.Error()
			failed = errors.Join(failed, g.Err)
		}
	}
	if asJSON {
		if err := json.NewEncoder(s.out).Encode(rows); err != nil {
			return err
		}
	} else {
		for _, g := range got {
			if g.Err == nil {
				fmt.Fprintf(s.out, "%-16s %d packages, state %d, signed until %s\n", g.Name, g.Packages, g.Version, g.Expires.Format(time.DateOnly))
			}
		}
	}
	return app.HubFault(failed)
}

func hubSearch(s streams) *cobra.Command {
	var asJSON bool
	limit := 20
	c := &cobra.Command{
		Use: "search WORDS...", Short: "Find packages on all hubs", Args: cobra.ArbitraryArgs,
		Long: `Find packages by words of their names, descriptions, tools and publishers. The
best match comes first; of those that match as well, the signed ones and then
those that are installed more. Without the network the last index is searched.`,
		RunE: func(c *cobra.Command, args []string) error {
			_, set, done, err := openHubs(c.Context(), s)
			if err != nil {
				return err
			}
			defer done()
			got, err := set.Search(c.Context(), strings.Join(args, " "), limit)
			if err != nil {
				return app.HubFault(err)
			}
			for _, n := range got.Notes {
				fmt.Fprintf(s.err, "elfhost: note: %s\n", term.Lines(n))
			}
			if asJSON {
				return json.NewEncoder(s.out).Encode(append([]skillhub.Listing{}, got.Listings...))
			}
			for _, l := range got.Listings {
				fmt.Fprint(s.out, listing(l))
			}
			if len(got.Listings) == 0 {
				fmt.Fprintln(s.err, "elfhost: nothing found")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().IntVar(&limit, "limit", limit, "show this many at the most")
	return c
}

// listing is a package for a person: what it is, whose, and what it asks for.
func listing(l skillhub.Listing) string {
	var b strings.Builder
	signer := "not signed"
	if l.KeyID != "" {
		signer = "signed by " + term.Line(l.Publisher) + " (key " + term.Line(l.KeyID) + ")"
	}
	fmt.Fprintf(&b, "%s/%s %s  %s, %s", l.Hub, term.Line(l.Name), term.Line(l.Version), l.Kind, signer)
	if l.Installs > 0 {
		fmt.Fprintf(&b, ", %d installs", l.Installs)
	}
	b.WriteByte('\n')
	if l.Description != "" {
		fmt.Fprintf(&b, "    %s\n", term.Line(l.Description))
	}
	asks := make([]string, 0, len(l.Needs))
	for _, n := range l.Needs {
		asks = append(asks, term.Line(strings.TrimSpace(string(n.Cap)+" "+strings.Join(n.Scope, " "))))
	}
	if len(asks) > 0 {
		fmt.Fprintf(&b, "    asks for %s\n", strings.Join(asks, "; "))
	}
	return b.String()
}

func hubMirror(s streams) *cobra.Command {
	sel := hub.Selection{Index: true}
	c := &cobra.Command{
		Use: "mirror HUB DIR", Short: "Copy a hub, or a part of it, into a folder",
		Long: `Copy packages of a hub with its metadata. The copy is a hub like the first, with
the same root and the same expiry; it needs no keys, and is verified the same way.`,
		Example: `  elfhost hub mirror acme /media/stick/acme --select 'pdf-*' --select fetch@1.2.0
  elfhost hub add acme /media/stick/acme --root sha256:…     (on the other machine)`,
		Args: exactly(2, "a hub and a folder"),
		RunE: func(c *cobra.Command, args []string) error {
			_, set, done, err := openHubs(c.Context(), s)
			if err != nil {
				return err
			}
			defer done()
			got, err := set.Mirror(c.Context(), args[0], args[1], sel)
			if err != nil {
				return app.HubFault(err)
			}
			return printMirrored(s, set, args[0], args[1], got)
		},
	}
	c.Flags().StringArrayVar(&sel.Packages, "select", nil, "NAME, NAME@VERSION or a pattern such as 'pdf-*'; all packages when none is given")
	c.Flags().BoolVar(&sel.AllVersions, "all-versions", false, "take every version, not just the newest")
	return c
}

func printMirrored(s streams, set *hub.Set, name, where string, got hub.Mirrored) error {
	root := skillhub.Digest("")
	for _, r := range set.Remotes() {
		if r.Name == name || name == "" {
			root = r.Root
		}
	}
	_, err := fmt.Fprintf(s.out, "%d packages, %d files, %d bytes in %s\nUse it with: elfhost hub add NAME %s --root %s\n",
		len(got.Packages), got.Files, got.Bytes, term.Line(where), term.Line(where), root)
	return err
}

func pluginBundle(s streams) *cobra.Command {
	var out string
	sel := hub.Selection{Index: true}
	c := &cobra.Command{
		Use: "bundle [HUB/]PACKAGE...", Short: "Put packages of a hub into one file, for a machine without network",
		Long: `Put packages, with the hub's metadata about them, into one file. The other machine
adds that file as a hub and verifies it as it would the hub, without network.`,
		Example: `  elfhost plugin bundle acme/fetch acme/read-pdf@1.2.0 -o carry.elfbundle
  elfhost hub add carried carry.elfbundle --root sha256:… && elfhost install carried/fetch`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !strings.HasSuffix(out, hub.BundleExt) {
				return fault.New("E1001", "such as -o carry"+hub.BundleExt, "the file's name has to end with %s", hub.BundleExt)
			}
			name, err := oneHub(args, &sel)
			if err != nil {
				return err
			}
			_, set, done, err := openHubs(c.Context(), s)
			if err != nil {
				return err
			}
			defer done()
			got, err := set.Bundle(c.Context(), name, out, sel)
			if err != nil {
				return app.HubFault(err)
			}
			return printMirrored(s, set, name, out, got)
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "packages"+hub.BundleExt, "the file to write")
	c.Flags().BoolVar(&sel.AllVersions, "all-versions", false, "take every version, not just the newest")
	return c
}

// oneHub reads references, which must all be of one hub.
func oneHub(args []string, sel *hub.Selection) (string, error) {
	name := ""
	for i, text := range args {
		r, err := skillhub.ParseRef(text)
		if err != nil {
			return "", fault.Wrap("E1001", "", err)
		}
		if r.Kind != skillhub.Named {
			return "", fault.New("E1001", "a bundle holds packages of a hub: [HUB/]NAME[@VERSION]", "%q is not a package of a hub", text)
		}
		if i > 0 && r.Hub != name {
			return "", fault.New("E1001", "make a bundle for each hub", "the packages are not all of one hub")
		}
		name = r.Hub
		r.Hub = ""
		sel.Packages = append(sel.Packages, r.String())
	}
	return name, nil
}
