package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
)

// mcpEntry is a server for an MCP client: a program that speaks stdio, or the
// address of one that runs.
type mcpEntry struct {
	command string
	args    []string
	env     map[string]string
	url     string // "": the program
}

// object is a JSON object in a client's configuration.
type object = map[string]any

// mcpClient is how one MCP client is told of a server: where its file is, and
// what stands in it.
type mcpClient struct {
	file string
	// dir is what the client puts in the place of the folder that it works in;
	// "." where it starts programs anywhere, so that one has to be named; ""
	// where it starts them in that folder.
	dir  string
	text func(mcpEntry) string
	// token is the bearer token as the client reads it: out of tokenEnv, where it
	// can; "" where it takes no address at all.
	token string
}

// tokenEnv is the variable from which clients and mcp serve take the token.
const tokenEnv = "ELFHOST_MCP_TOKEN"

func indented(v any) string {
	b, _ := json.MarshalIndent(v, "", "  ")
	return string(b)
}

// plain is the form that most clients share; more goes to a program's entry,
// and at is the address's key.
func plain(key string, more object, at string, remote object) func(mcpEntry) object {
	return func(e mcpEntry) object {
		o := object{}
		if e.url != "" {
			o[at] = e.url
			maps.Copy(o, remote)
			return object{key: object{"elfhost": o}}
		}
		o["command"], o["args"] = e.command, e.args
		if len(e.env) > 0 {
			o["env"] = e.env
		}
		maps.Copy(o, more)
		return object{key: object{"elfhost": o}}
	}
}

func bearer(token string, more object) object {
	o := object{"headers": object{"Authorization": "Bearer " + token}}
	maps.Copy(o, more)
	return o
}

func printed(f func(mcpEntry) object) func(mcpEntry) string {
	return func(e mcpEntry) string { return indented(f(e)) }
}

// mcpClients is the table of clients that `mcp config` knows, as they document
// their configuration.
var mcpClients = map[string]mcpClient{
	"claude-code": {file: ".mcp.json in the project, or: claude mcp add elfhost -- COMMAND", token: tokenEnv,
		text: printed(plain("mcpServers", object{"type": "stdio"}, "url", bearer("${"+tokenEnv+"}", object{"type": "http"})))},
	"claude-desktop": {file: "claude_desktop_config.json (Settings, Developer)", dir: ".",
		text: printed(plain("mcpServers", nil, "", nil))},
	"cursor": {file: ".cursor/mcp.json in the project", dir: "${workspaceFolder}", token: tokenEnv,
		text: printed(plain("mcpServers", nil, "url", bearer("${env:"+tokenEnv+"}", nil)))},
	"vscode": {file: ".vscode/mcp.json in the project", token: "the token that VS Code asks for", text: printed(vscode)},
	"windsurf": {file: "~/.codeium/windsurf/mcp_config.json", dir: ".", token: tokenEnv,
		text: printed(plain("mcpServers", nil, "serverUrl", bearer("${env:"+tokenEnv+"}", nil)))},
	"gemini-cli": {file: ".gemini/settings.json in the project, or ~/.gemini/settings.json", token: tokenEnv,
		text: printed(plain("mcpServers", nil, "httpUrl", bearer("$"+tokenEnv, nil)))},
	"cline": {file: "cline_mcp_settings.json (MCP Servers, Configure)", dir: ".", token: "YOUR_TOKEN",
		text: printed(plain("mcpServers", nil, "url", bearer("YOUR_TOKEN", object{"type": "streamableHttp"})))},
	"zed": {file: "settings.json", token: "YOUR_TOKEN",
		text: printed(plain("context_servers", nil, "url", bearer("YOUR_TOKEN", nil)))},
	"opencode": {file: "opencode.json", token: tokenEnv, text: printed(opencode)},
	"codex":    {file: "~/.codex/config.toml", token: tokenEnv, text: codex},
}

func vscode(e mcpEntry) object {
	o := plain("servers", object{"type": "stdio"}, "url", bearer("${input:elfhost-token}", object{"type": "http"}))(e)
	if e.url != "" {
		o["inputs"] = []object{{"type": "promptString", "id": "elfhost-token", "description": "The token of elfhost mcp serve", "password": true}}
	}
	return o
}

func opencode(e mcpEntry) object {
	o := object{"type": "local", "command": append([]string{e.command}, e.args...), "enabled": true}
	if len(e.env) > 0 {
		o["environment"] = e.env
	}
	if e.url != "" {
		o = bearer("{env:"+tokenEnv+"}", object{"type": "remote", "url": e.url, "enabled": true, "oauth": false})
	}
	return object{"mcp": object{"elfhost": o}}
}

// codex is TOML, whose strings are those of JSON.
func codex(e mcpEntry) string {
	quoted := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	if e.url != "" {
		return fmt.Sprintf("[mcp_servers.elfhost]\nurl = %s\nbearer_token_env_var = %q", quoted(e.url), tokenEnv)
	}
	out := fmt.Sprintf("[mcp_servers.elfhost]\ncommand = %s\nargs = %s", quoted(e.command), quoted(e.args))
	for _, k := range slices.Sorted(maps.Keys(e.env)) {
		out += fmt.Sprintf("\nenv.%s = %s", k, quoted(e.env[k]))
	}
	return out
}

func mcpConfigVerb(s streams) *cobra.Command {
	var dir, at string
	names := slices.Sorted(maps.Keys(mcpClients))
	c := &cobra.Command{
		Use: "config CLIENT [-- FLAG …]", Short: "Print the configuration that makes a client use these tools",
		Long: "Print what a client's configuration needs so that it offers these tools. Clients:\n" + strings.Join(names, ", ") + `.
What stands behind -- goes to ` + "`elfhost mcp serve`" + `. With --url the client speaks to
a server that runs already, in place of starting one.`,
		Example: `  elfhost mcp config claude-code
  elfhost mcp config cursor -- --tools Read,Grep,WebFetch --agent reviewer
  elfhost mcp config codex --url http://127.0.0.1:7332/mcp`,
		Args: clientAndFlags, ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			cl, ok := mcpClients[args[0]]
			if !ok {
				return fault.New("E1001", "the clients are "+strings.Join(names, ", "), "no client %q is known", args[0])
			}
			var e mcpEntry
			var err error
			if at != "" {
				e.url, err = serveURL(at)
			} else {
				e, err = cl.program(dir, args[1:])
			}
			switch {
			case err != nil:
				return err
			case e.url != "" && cl.token == "":
				return fault.New("E1001", "leave --url away: it starts the program by itself", "%s takes no address in its configuration", args[0])
			case e.url != "" && (dir != "" || len(args) > 1):
				return fault.New("E1001", "give them to `elfhost mcp serve --http`", "--dir and flags are for a program that the client starts, not for --url")
			}
			fmt.Fprintf(s.err, "elfhost: this goes into %s\n", cl.file)
			switch {
			case e.url != "" && cl.token == tokenEnv:
				fmt.Fprintf(s.err, "elfhost: set %s for the client, and for the server: elfhost mcp serve --http … --token-env %s\n", tokenEnv, tokenEnv)
			case e.url != "":
				fmt.Fprintf(s.err, "elfhost: the client takes the token that `elfhost mcp serve --http` prints\n")
			}
			_, err = fmt.Fprintln(s.out, cl.text(e))
			return err
		},
	}
	c.Flags().StringVarP(&dir, "dir", "C", "", "the folder that the tools work in; without it, the one that the client works in, or this one where the client has none")
	c.Flags().StringVar(&at, "url", "", "the address of a server that runs: `URL` of elfhost mcp serve --http")
	return c
}

// clientAndFlags takes a client's name, and behind -- what mcp serve takes.
func clientAndFlags(c *cobra.Command, args []string) error {
	n := c.ArgsLenAtDash()
	if n < 0 {
		n = len(args)
	}
	if err := exactly(1, "one of the clients "+clientNames())(c, args[:n]); err != nil {
		return err
	}
	serve := mcpServeVerb(streams{})
	if err := serve.ParseFlags(args[n:]); err != nil {
		return fault.New("E1001", "`elfhost mcp serve --help` lists them", "flags of mcp serve: %w", err)
	}
	if rest := serve.Flags().Args(); len(rest) > 0 {
		return fault.New("E1001", "`elfhost mcp serve --help` lists its flags", "mcp serve takes no %q", rest[0])
	}
	for _, own := range []string{"http", "dir"} {
		if serve.Flags().Changed(own) {
			return fault.New("E1001", "use --url or --dir before the client's name", "--%s does not go behind --", own)
		}
	}
	return nil
}

// clientNames lists the clients that the verb knows.
func clientNames() string { return strings.Join(slices.Sorted(maps.Keys(mcpClients)), ", ") }

// program is the entry of a client that starts the server.
func (cl mcpClient) program(dir string, flags []string) (e mcpEntry, err error) {
	if e.command, err = os.Executable(); err != nil {
		return e, err
	}
	if real, err := filepath.EvalSymlinks(e.command); err == nil {
		e.command = real
	}
	if dir == "" {
		dir = cl.dir
	}
	e.args = []string{"mcp", "serve"}
	if dir != "" && !strings.HasPrefix(dir, "${") {
		if dir, err = app.Workspace(dir); err != nil {
			return e, err
		}
	}
	if dir != "" {
		e.args = append(e.args, "--dir", dir)
	}
	e.args = append(e.args, flags...)
	if home := os.Getenv("ELFHOST_HOME"); home != "" {
		if home, err = filepath.Abs(home); err != nil {
			return e, err
		}
		e.env = map[string]string{"ELFHOST_HOME": home}
	}
	return e, nil
}

// serveURL checks the address of a server, and completes it.
func serveURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", fault.New("E1001", "it looks like http://127.0.0.1:7332/mcp", "%q is no address of a server", text)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/mcp"
	}
	return u.String(), nil
}
