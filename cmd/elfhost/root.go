package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/builtins/outline"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/sandbox/compile"
	"github.com/elfhost/elfhost/internal/fault"
)

// children are the verbs that elfhost runs itself with, in processes of their
// own. They are found before anything else is set up.
var children = map[string]func(args []string) int{
	reach.SandboxVerb: reach.SandboxMain,
	outline.Verb:      outlineChild,
	compile.Verb:      func(args []string) int { return compile.Child(args, os.Stdin, os.Stderr) },
}

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "elfhost",
		Short:         "Run agents whose tools are WebAssembly modules in a sandbox",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
	}
	s.offline = root.PersistentFlags().Bool("offline", false, "use no network")
	var quick runFlags
	prompt := root.Flags().StringP("prompt", "p", "", "the same as elfhost run `PROMPT`")
	root.RunE = func(c *cobra.Command, _ []string) error {
		if *prompt == "" {
			return c.Help()
		}
		return quick.run(c.Context(), s, *prompt)
	}
	quick.flags(root)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fault.New("E1001", "`"+c.CommandPath()+" --help` lists the flags", "%w", err)
	})
	root.AddGroup(
		&cobra.Group{ID: "work", Title: "Work:"},
		&cobra.Group{ID: "rights", Title: "Tools and rights:"},
		&cobra.Group{ID: "machine", Title: "This machine:"},
	)
	for group, verbs := range map[string][]*cobra.Command{
		"work":    {runVerb(s), chatVerb(s), acpVerb(s), sessionVerb(s), callVerb(s), replayVerb(s), demoVerb(s)},
		"rights":  {toolsVerb(s), installVerb(s), mcpVerb(s), agentVerb(s), pluginVerb(s), hubVerb(s), keyVerb(s), grantVerb(s), policyVerb(s), skillVerb(s), trustVerb(s), secretVerb(s), auditVerb(s)},
		"machine": {doctorVerb(s), conformanceVerb(s), modelsVerb(s), configVerb(s), explainVerb(s), schemaVerb(s), grammarVerb(s), gcVerb(s), versionVerb(s)},
	} {
		for _, v := range verbs {
			v.GroupID = group
			root.AddCommand(v)
		}
	}
	usage(root)
	root.SetHelpCommandGroupID("machine")
	root.SetCompletionCommandGroupID("machine")
	return root
}

const rootHelp = `elfhost runs AI agents. Its core tools are native; every other tool is a
WebAssembly module in a sandbox that can do nothing a person did not grant.

  elfhost demo                          see it work, without a key
  elfhost run "why does the test fail"  ask the agent about this folder
  elfhost call Read '{"path":"go.mod"}' call one tool through the same gate`

// usage gives every complaint about arguments its code and hint.
func usage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			return fault.Wrap("E1001", "`"+c.CommandPath()+" --help` shows the usage", check(c, args))
		}
	}
	for _, sub := range c.Commands() {
		usage(sub)
	}
}

// exactly is cobra.ExactArgs with our words.
func exactly(n int, names string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return fault.New("E1001", "`"+c.CommandPath()+" --help` shows the usage",
			"%s takes %s, got %d argument(s)", c.CommandPath(), names, len(args))
	}
}

// noArgs refuses stray words.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "`" + c.CommandPath() + " --help` shows the usage"
	if s := c.SuggestionsFor(args[0]); len(s) > 0 {
		hint = "did you mean `" + c.CommandPath() + " " + s[0] + "`?"
	}
	return fault.New("E1001", hint, "%s does not know %q", c.CommandPath(), strings.Join(args, " "))
}
