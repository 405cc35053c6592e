package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/internal/fault"
)

// acpClient is how one editor is told of an agent: where its file is, and what
// stands in it.
type acpClient struct {
	file string
	text func(command string, args []string) string
}

func agentServers(entry func(string, []string) map[string]any) func(string, []string) string {
	return func(command string, args []string) string {
		b, _ := json.MarshalIndent(map[string]any{"agent_servers": map[string]any{"elfhost": entry(command, args)}}, "", "  ")
		return string(b)
	}
}

// luaList is a list of strings as Lua has it. Strings in JSON's form are Lua's
// too, as long as they hold no \u escape.
func luaList(args []string) string {
	var out []string
	for _, a := range args {
		out = append(out, luaString(a))
	}
	return "{ " + strings.Join(out, ", ") + " }"
}

func luaString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`).Replace(s) + `"`
}

// acpClients is the table of editors that `acp config` knows.
var acpClients = map[string]acpClient{
	"zed": {"settings.json (command palette: zed: open settings file)", agentServers(func(c string, a []string) map[string]any {
		return map[string]any{"type": "custom", "command": c, "args": a, "env": map[string]string{}}
	})},
	"jetbrains": {"~/.jetbrains/acp.json (AI Chat, Add Custom Agent)", agentServers(func(c string, a []string) map[string]any {
		return map[string]any{"command": c, "args": a, "env": map[string]string{}}
	})},
	"avante": {"the options of avante.nvim, in Lua", func(c string, a []string) string {
		return fmt.Sprintf("{\n  provider = \"elfhost\",\n  acp_providers = {\n    [\"elfhost\"] = {\n      command = %s,\n      args = %s,\n    },\n  },\n}", luaString(c), luaList(a))
	}},
	"acpx": {"~/.acpx/config.json, then: acpx elfhost exec PROMPT", func(c string, a []string) string {
		b, _ := json.MarshalIndent(map[string]any{"agents": map[string]any{"elfhost": map[string]any{"argv": append([]string{c}, a...)}}}, "", "  ")
		return string(b)
	}},
}

func acpConfigVerb(s streams) *cobra.Command {
	names := slices.Sorted(maps.Keys(acpClients))
	var model, mode string
	c := &cobra.Command{
		Use: "config CLIENT", Short: "Print the configuration that makes an editor start this agent",
		Long: "Print what an editor's configuration needs so that it offers this agent. Clients:\n" + strings.Join(names, ", ") + `.
The editor's environment has the model's key: add it to env where the editor
was not started from a shell that has it.`,
		Args: exactly(1, "one of the clients "+strings.Join(names, ", ")), ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			cl, ok := acpClients[args[0]]
			if !ok {
				return fault.New("E1001", "the clients are "+strings.Join(names, ", "), "no client %q is known", args[0])
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			if real, err := filepath.EvalSymlinks(self); err == nil {
				self = real
			}
			serve := []string{"acp"}
			if mode != "" {
				serve = append(serve, "--mode", mode)
			}
			if model != "" {
				serve = append(serve, "--model", model)
			}
			fmt.Fprintf(s.err, "elfhost: this goes into %s\n", cl.file)
			_, err = fmt.Fprintln(s.out, cl.text(self, serve))
			return err
		},
	}
	c.Flags().StringVar(&mode, "mode", "", "the mode that sessions begin in")
	c.Flags().StringVarP(&model, "model", "m", "", "the model that answers")
	return c
}
