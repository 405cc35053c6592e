package scan

import (
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
)

// needs looks at what the package asks for, together and each by itself.
func (c *collector) needs(needs []abi.Need) {
	has := map[abi.Capability]bool{}
	for _, n := range needs {
		has[n.Cap] = true
	}
	const where = "needs"
	out := has[abi.NetHTTP]
	switch {
	case out && has[abi.FSRead]:
		c.add("files-and-network", Look, where, "it asks to read files and to reach the network: it could send them out")
	case out && (has[abi.Exec] || has[abi.ToolCall]):
		c.add("programs-and-network", Look, where, "it asks to run programs or tools and to reach the network: it could send out what they print")
	}
	if out && has[abi.Env] {
		c.add("environment-and-network", Look, where, "it asks for variables of the environment and to reach the network: it could send them out")
	}
	if has[abi.FSWrite] && has[abi.Exec] {
		c.add("writes-and-runs", Look, where, "it asks to write files and to run programs: it could run what it wrote")
	}
	for _, n := range needs {
		for _, s := range n.Scope {
			if why := broad(n.Cap, strings.TrimSpace(s)); why != "" {
				c.add("broad-scope", Look, where, line(string(n.Cap)+" "+s, 80)+": "+why)
			}
		}
		if strings.TrimSpace(n.Reason) == "" {
			c.add("no-reason", Look, where, "it does not say why it asks for "+string(n.Cap))
		}
	}
}

// interpreters run whatever they are given, so a pattern of their arguments
// bounds nothing.
var interpreters = []string{
	"sh", "bash", "zsh", "dash", "fish", "ksh", "busybox", "env", "sudo", "doas", "xargs", "nohup", "timeout", "find",
	"python", "python3", "node", "deno", "bun", "perl", "ruby", "php", "lua", "awk", "sed", "ssh", "docker", "podman",
	"make", "npx", "npm", "uvx", "pipx", "powershell", "pwsh", "cmd", "osascript",
}

// strong are the tools that can do nearly everything.
var strong = []string{"Bash", "Shell", "Write", "Edit", "WriteFile", "EditFile", "spawn_agent", "Subagent", "skillhub_install"}

// broad says in one clause why a scope is wider than most packages need; "" if
// it is not.
func broad(cap abi.Capability, scope string) string {
	word, rest, _ := strings.Cut(scope, " ")
	switch cap {
	case abi.NetHTTP:
		host := word
		if _, h, ok := strings.Cut(word, "://"); ok {
			host = h
		}
		host, _, _ = strings.Cut(host, "/")
		stem, wild := strings.CutPrefix(host, "*.")
		switch {
		case word == "public" && (rest == "" || onlyReads(rest)):
			return "any public address"
		case word == "public":
			return "any public address, to send to as well"
		case wild && !strings.Contains(stem, "."):
			return "every host below ." + stem
		}
	case abi.FSRead:
		if scope == "/ws/**" {
			return "the whole workspace, keys and settings in it included"
		}
	case abi.FSWrite:
		if scope == "/ws/**" || strings.Count(strings.Trim(scope, "/"), "/") == 0 {
			return "the whole workspace"
		}
	case abi.Exec:
		name := word[strings.LastIndexByte(word, '/')+1:]
		if slices.Contains(interpreters, name) {
			return name + " runs whatever it is given"
		}
		if name == "*" {
			return "any program"
		}
	case abi.Env:
		if strings.HasPrefix(scope, "*") {
			return "all variables"
		}
	case abi.Secret:
		if name, host, _ := strings.Cut(scope, "@"); strings.Contains(name, "*") || strings.HasPrefix(host, "*") {
			return "more than one secret, or secrets for many hosts"
		}
	case abi.ToolCall:
		if strings.HasPrefix(scope, "*") || scope == "mcp__*" {
			return "any tool"
		}
		if slices.Contains(strong, scope) {
			return scope + " can do nearly everything"
		}
	}
	return ""
}

func onlyReads(methods string) bool {
	for m := range strings.SplitSeq(methods, ",") {
		if m = strings.TrimSpace(m); m != "GET" && m != "HEAD" {
			return false
		}
	}
	return true
}

// allowedIn finds the allowed-tools in the fields of a SKILL.md, roughly: who
// uses them reads them properly.
func allowedIn(body string) (out []string) {
	body = strings.TrimPrefix(body, "\ufeff")
	if !strings.HasPrefix(body, "---") {
		return nil
	}
	in := false
	for i, l := range strings.SplitN(body, "\n", 200) {
		l = strings.TrimRight(l, "\r ")
		key, rest, ok := strings.Cut(l, ":")
		switch {
		case i > 0 && l == "---":
			return out
		case ok && strings.TrimSpace(strings.ToLower(key)) == "allowed-tools":
			in, l = true, rest
		case in && l != "" && l[0] != ' ' && l[0] != '\t' && l[0] != '-':
			in = false
		}
		if !in {
			continue
		}
		for _, t := range strings.FieldsFunc(l, func(r rune) bool { return strings.ContainsRune(",[]\"' \t", r) }) {
			if t != "-" {
				out = append(out, t)
			}
		}
	}
	return out
}

// allowed looks at a skill's allowed-tools. They can only take rights away
// here; in other hosts they give them.
func (c *collector) allowed(tools []string) {
	for _, t := range tools {
		switch strings.ReplaceAll(t, " ", "") {
		case "*", "Bash(*)", "Bash(:*)", "Shell(*)", "Bash(**)": // "Bash" alone, which honest skills write, says no less
			c.add("allows-all", Look, "allowed-tools", "it names every command as allowed ("+line(t, 40)+"); that gives it none")
			return
		}
	}
}
