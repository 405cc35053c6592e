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

	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
)

// mcpClient is how one MCP client is told of a server: where its file is, and
// what stands in it for a program that speaks stdio.
type mcpClient struct {
	file string
	text func(command string, args []string) string
}

func servers(key string, entry func(string, []string) map[string]any) func(string, []string) string {
	return func(command string, args []string) string {
		b, _ := json.MarshalIndent(map[string]any{key: map[string]any{"elfhost": entry(command, args)}}, "", "  ")
		return string(b)
	}
}

func plainEntry(command string, args []string) map[string]any {
	return map[string]any{"command": command, "args": args}
}

func typedEntry(command string, args []string) map[string]any {
	return map[string]any{"type": "stdio", "command": command, "args": args}
}

// mcpClients is the table of clients that `mcp config` knows.
var mcpClients = map[string]mcpClient{
	"claude-code":    {".mcp.json in the project, or: claude mcp add elfhost -- COMMAND", servers("mcpServers", typedEntry)},
	"claude-desktop": {"claude_desktop_config.json (Settings, Developer)", servers("mcpServers", plainEntry)},
	"cursor":         {"~/.cursor/mcp.json, or .cursor/mcp.json in the project", servers("mcpServers", plainEntry)},
	"vscode":         {".vscode/mcp.json in the project", servers("servers", typedEntry)},
	"windsurf":       {"~/.codeium/windsurf/mcp_config.json", servers("mcpServers", plainEntry)},
	"gemini-cli":     {"~/.gemini/settings.json", servers("mcpServers", plainEntry)},
	"cline":          {"cline_mcp_settings.json (MCP Servers, Configure)", servers("mcpServers", plainEntry)},
	"zed": {"settings.json", servers("context_servers", func(c string, a []string) map[string]any {
		return map[string]any{"source": "custom", "command": c, "args": a}
	})},
	"opencode": {"opencode.json", servers("mcp", func(c string, a []string) map[string]any {
		return map[string]any{"type": "local", "command": append([]string{c}, a...), "enabled": true}
	})},
	"codex": {"~/.codex/config.toml", func(c string, a []string) string {
		b, _ := json.Marshal(a)
		return fmt.Sprintf("[mcp_servers.elfhost]\ncommand = %q\nargs = %s", c, b)
	}},
}

func mcpConfigVerb(s streams) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "config CLIENT", Short: "Print the configuration that makes a client use these tools",
		Long: "Print what a client's configuration needs so that it offers these tools. Clients:\n" + strings.Join(slices.Sorted(maps.Keys(mcpClients)), ", ") + ".",
		Args: exactly(1, "a client's name"), ValidArgs: slices.Sorted(maps.Keys(mcpClients)),
		RunE: func(_ *cobra.Command, args []string) error {
			cl, ok := mcpClients[args[0]]
			if !ok {
				return fault.New("E1001", "the clients are "+strings.Join(slices.Sorted(maps.Keys(mcpClients)), ", "), "no client %q is known", args[0])
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			if real, err := filepath.EvalSymlinks(self); err == nil {
				self = real
			}
			serve := []string{"mcp", "serve"}
			if dir != "" {
				root, err := app.Workspace(dir)
				if err != nil {
					return err
				}
				serve = append(serve, "--dir", root)
			}
			fmt.Fprintf(s.err, "elfhost: this goes into %s\n", cl.file)
			_, err = fmt.Fprintln(s.out, cl.text(self, serve))
			return err
		},
	}
	c.Flags().StringVarP(&dir, "dir", "C", "", "the folder that the tools work in; without it, the one that the client starts elfhost in")
	return c
}
