package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/kit"
	"github.com/elfhost/elfhost/internal/term"
)

func pluginRun(s streams) *cobra.Command {
	f := callFlags{receipt: true}
	var project string
	c := &cobra.Command{
		Use: "run [TOOL] [JSON]", Short: "Build a plugin and call it once, as an agent would",
		Long: "Build the project, load it, and call one of its tools with a JSON object of arguments (- reads it from standard input),\nthrough the same gate as an agent's calls. Its log and receipt are shown; so is what elf.toml lacks for what the call tried.",
		Example: `  elfhost plugin run '{"name": "Ada"}'
  elfhost plugin run save '{"url": "https://example.org/", "name": "page.html"}' --allow 'my-tool net.http https://example.org GET'`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return runPlugin(c.Context(), s, &f, project, args)
		},
	}
	f.register(c)
	c.Flags().StringVar(&project, "project", ".", "the plugin's folder")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print the whole result as JSON")
	c.Flags().StringVar(&f.record, "record", "", "keep in this file all that the module was told, for elfhost replay")
	return c
}

func runPlugin(ctx context.Context, s streams, f *callFlags, project string, args []string) error {
	if err := build(ctx, s, project); err != nil {
		return err
	}
	pkg, _, err := app.ReadPackage(project)
	if err != nil {
		return fault.Wrap("E1302", "", err)
	}
	in, err := kit.Inspect(pkg)
	if err != nil {
		return fault.Wrap("E1302", "", err)
	}
	if err := asksForAll(project, pkg, in); err != nil {
		return err
	}
	f.plugins = append([]string{project}, f.plugins...)
	if len(args) == 0 || strings.HasPrefix(strings.TrimSpace(args[0]), "{") || args[0] == "-" {
		tool, err := f.onlyTool(ctx, s, pkg.Manifest.Name)
		if err != nil {
			return err
		}
		args = append([]string{tool}, args...)
	}
	f.allow = append(f.allow, pkg.Manifest.Name+" "+args[0]) // the person has just typed this very call; rights are asked as ever
	f.logged = func(x sandbox.LogLine) { fmt.Fprintf(s.err, "elfhost: %s\n", logText(x)) }
	f.refused = func(list []host.Denied) { lacking(s, project, list) }
	return f.run(ctx, s, args)
}

// onlyTool names the plugin's tool, where it has one.
func (f *callFlags) onlyTool(ctx context.Context, s streams, plugin string) (string, error) {
	quiet := f.sessionFlags
	quiet.noInput = true
	a, err := quiet.session(ctx, s, app.Options{})
	if err != nil {
		return "", err
	}
	defer a.Close(context.WithoutCancel(ctx))
	for _, p := range a.Packages() {
		if p.Name == plugin && len(p.Tools) == 1 {
			return p.Tools[0], nil
		}
		if p.Name == plugin {
			return "", fault.New("E1001", "", "%s has several tools: name one of %s", plugin, strings.Join(p.Tools, ", "))
		}
	}
	return "", fault.New("E1304", "", "the plugin %q is not loaded", plugin)
}

// lacking prints what elf.toml would have to ask for, so that a person could
// allow what was refused.
func lacking(s streams, project string, list []host.Denied) {
	var needs []abi.Need
	for _, d := range list {
		if d.Use == nil || d.Layer != "the manifest" {
			continue
		}
		if n, ok := kit.ProposeFor(*d.Use); ok {
			needs = append(needs, n)
		}
	}
	if len(needs) > 0 {
		fmt.Fprintf(s.err, "elfhost: %s does not ask for what the call tried; to ask for it, add:\n%s", filepath.Join(project, "elf.toml"), term.Lines(kit.TOML(needs)))
	}
}
