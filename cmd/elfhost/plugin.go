package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

func pluginVerb(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "plugin", Short: "Look after plugins and packages, and make them", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(pluginInstall(s), pluginList(s), pluginInfo(s), pluginGrant(s), pluginRevoke(s), pluginEnable(s), pluginDisable(s),
		pluginUpdate(s), pluginRollback(s), pluginRemove(s), pluginPin(s), pluginVerify(s), pluginSync(s),
		pluginInspect(s), pluginWarm(s), pluginCache(s),
		pluginNew(s), pluginBuild(s), pluginTest(s), pluginDev(s), pluginRun(s), pluginCheck(s), pluginBench(s), pluginWrap(s),
		pluginPack(s), pluginSign(s), pluginPublish(s), pluginBundle(s))
	return c
}

func openQuiet(ctx context.Context, s streams) (*app.App, error) {
	return (&sessionFlags{noInput: true}).session(ctx, s, app.Options{})
}

func pluginList(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the plugins and what they hold", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := openQuiet(c.Context(), s)
			if err != nil {
				return err
			}
			defer a.Close(context.WithoutCancel(c.Context()))
			rows := a.Packages()
			installed, err := a.Installed()
			if err != nil {
				fmt.Fprintf(s.err, "elfhost: note: %s\n", term.Line(err.Error()))
			}
			if asJSON {
				return json.NewEncoder(s.out).Encode(withTexts(rows, installed))
			}
			for _, p := range rows {
				fmt.Fprintf(s.out, "%s %s  (%s, sha256 %.12s)\n", term.Line(p.Name), term.Line(p.Version), p.Source, p.Digest)
				for _, t := range p.Tools {
					fmt.Fprintf(s.out, "    tool   %s\n", term.Line(t))
				}
				for _, g := range p.Grants {
					fmt.Fprintf(s.out, "    holds  %s\n", term.Line(g))
				}
			}
			return printOthers(s, installed)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func pluginWarm(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "warm [NAME...]", Short: "Compile plugins now rather than at their first call",
		RunE: func(c *cobra.Command, args []string) error {
			a, err := openQuiet(c.Context(), s)
			if err != nil {
				return err
			}
			defer a.Close(context.WithoutCancel(c.Context()))
			want := map[string]bool{}
			for _, n := range args {
				if _, ok := a.PluginKey(n); !ok {
					return fault.New("E1304", "`elfhost plugin list` shows them", "there is no plugin %q", n)
				}
				want[n] = true
			}
			for _, p := range a.Packages() {
				if len(want) > 0 && !want[p.Name] {
					continue
				}
				plugin, err := a.OpenPlugin(c.Context(), p)
				if err != nil {
					return fault.Wrap("E1302", "", err)
				}
				err = plugin.Warm(c.Context(), func(pr abi.Progress) {
					if pr.Message != "" {
						fmt.Fprintf(s.err, "elfhost: %s\n", term.Line(pr.Message))
					}
				})
				if err != nil {
					return fault.Wrap("E1503", "`elfhost doctor` checks the machine", fmt.Errorf("warming plugin %q: %w", p.Name, err))
				}
				fmt.Fprintf(s.out, "%s is ready\n", term.Line(p.Name))
			}
			return nil
		},
	}
}

// maxModule is the ABI's limit on a module's size, in bytes.
const maxModule = 32 << 20

func readModule(name string) ([]byte, error) {
	if st, err := os.Stat(name); err == nil && !st.Mode().IsRegular() { // before the open: a FIFO would wait
		return nil, fault.New("E1302", "give a file that ends in .wasm", "%q is not a regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fault.Wrap("E1302", "", err)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, fault.New("E1302", "give a file that ends in .wasm", "%q is not a regular file", name)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxModule+1))
	if err != nil {
		return nil, fault.Wrap("E1302", "", err)
	}
	if len(b) > maxModule {
		return nil, fault.New("E1302", "", "%q is over %d bytes, more than a module may have", name, maxModule)
	}
	return b, nil
}
