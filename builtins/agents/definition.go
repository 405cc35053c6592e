package agents

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/builtins/internal/frontmatter"
	"github.com/elfhost/elfhost/builtins/internal/plain"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/policy"
)

// Definition is an agent that a person, or a project, has written down: a
// Markdown file whose text is the agent's instructions. It gives no rights: a
// child of any definition is still bounded by its parent.
type Definition struct {
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	Model       string    `json:"model,omitempty"`
	Effort      string    `json:"effort,omitempty"`
	Tools       []string  `json:"allowedTools,omitempty"` // nil: the usual ones
	Without     []string  `json:"disallowedTools,omitempty"`
	Mode        host.Mode `json:"permissionMode,omitempty"`
	Steps       int       `json:"maxIterations,omitempty"`
	Servers     []string  `json:"mcpServerIds,omitempty"` // of the session's MCP servers; nil: all, empty: none
	Direct      []Server  `json:"directMcpServers,omitempty"`
	File        string    `json:"file"` // virtual path
	Project     bool      `json:"project,omitempty"`
	Problem     string    `json:"problem,omitempty"` // why it cannot be used
	Warnings    []string  `json:"warnings,omitempty"`
	Text        string    `json:"-"`
}

// Server is a stdio MCP server that a definition brings along. It names a
// program, so that one from a project counts only where the folder is trusted.
type Server struct {
	Name    string            `json:"name"`
	Command string            `json:"command"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Cwd     string            `json:"cwd,omitempty"`
}

// ParseDefinition reads a file. name is its name without the ending, which the
// fields may better. acp says which dialect's tools the lists shall name.
func ParseDefinition(b []byte, name string, acp bool) Definition {
	d := Definition{Name: plain.Line(name, 64)}
	doc, err := frontmatter.Parse(b)
	if err != nil {
		d.Problem = err.Error()
		return d
	}
	for _, w := range doc.Warnings {
		d.warn("%s", w)
	}
	d.Text = strings.TrimSpace(doc.Body)
	f := doc.Fields
	if n := d.text(f, "name", 64); n != "" {
		d.Name = n
	}
	d.Description = d.text(f, "description", 1024)
	d.chooses(f)
	d.limits(f, acp)
	d.servers(f)
	if d.Text == "" && d.Problem == "" {
		d.Problem = "it has no instructions"
	}
	return d
}

func (d *Definition) warn(format string, args ...any) {
	if len(d.Warnings) < 16 {
		d.Warnings = append(d.Warnings, plain.Line(fmt.Sprintf(format, args...), 300))
	}
}

func (d *Definition) text(f frontmatter.Fields, key string, most int) string {
	s, err := f.Text(key)
	if err != nil {
		d.warn("%v", err)
	}
	return plain.Line(s, most)
}

// chooses reads model, effort and mode. Names of models that only one vendor's agent
// knows mean the parent's model.
func (d *Definition) chooses(f frontmatter.Fields) {
	switch m := d.text(f, "model", 200); m {
	case "", "inherit":
	case "sonnet", "opus", "haiku":
		d.warn("the model %q is not written as provider/name; the caller's model is used", m)
	default:
		d.Model = m
	}
	switch e := strings.ToLower(d.text(f, "effort", 40)); e {
	case "", "default", "inherit":
	case "none", "low", "medium", "high":
		d.Effort = e
	case "xhigh", "max": // other agents have more of them
		d.Effort = "high"
	default:
		d.warn("there is no effort %q: it is one of none, low, medium, high; the caller's is used", e)
	}
	switch m := d.text(f, "permissionMode", 40); m {
	case "":
	case "default":
		d.Mode = host.ModeAsk
	case "bypass", "bypassPermissions":
		d.Mode = host.ModeAuto
	case "plan", "ask", "acceptEdits", "auto":
		d.Mode = host.Mode(m)
	default:
		d.Problem = fmt.Sprintf("there is no permission mode %q: use plan, ask, acceptEdits or auto", m)
	}
	for _, key := range []string{"maxIterations", "maxTurns"} {
		n, set, err := f.Int(key)
		switch {
		case err != nil || set && n < 1:
			d.warn("%s is not a number of steps", key)
		case set:
			d.Steps = n
		}
	}
}

// limits reads the tools. An entry that cannot be read is left out, which
// leaves the agent with less.
func (d *Definition) limits(f frontmatter.Fields, acp bool) {
	read := func(keys ...string) (out []string) {
		for _, key := range keys {
			tools, set, warnings := f.Tools(key)
			for _, w := range warnings {
				d.warn("%s", w)
			}
			if !set {
				continue
			}
			out = []string{}
			for _, t := range tools {
				t = translate(t, acp)
				if _, err := policy.ParsePattern(t); err != nil {
					d.warn("%s: %v; it was left out", key, err)
					continue
				}
				out = append(out, t)
			}
			return out
		}
		return nil
	}
	d.Tools = read("allowedTools", "tools")
	d.Without = read("disallowedTools")
}

func (d *Definition) servers(f frontmatter.Fields) {
	if v, ok := f.Get("mcpServerIds"); ok && v != nil {
		ids, err := f.List("mcpServerIds")
		if err != nil {
			d.warn("%v; it was read as none", err)
		}
		d.Servers = append([]string{}, ids...)
	}
	v, _ := f.Get("directMcpServers")
	switch v := v.(type) {
	case nil:
	case []any: // a list of servers with names
		for _, x := range v {
			one, ok := x.(frontmatter.Fields)
			if !ok {
				d.warn("directMcpServers holds something that is no server")
				continue
			}
			name, _ := one.Text("name")
			d.direct(name, one)
		}
	case frontmatter.Fields: // servers by name
		for _, x := range v {
			one, ok := x.Value.(frontmatter.Fields)
			if !ok {
				d.warn("directMcpServers.%s is no server", x.Key)
				continue
			}
			d.direct(x.Key, one)
		}
	default:
		d.warn("directMcpServers is no list of servers")
	}
}

var errServer = errors.New("a server has a name and a command")

func (d *Definition) direct(name string, f frontmatter.Fields) {
	s := Server{Name: strings.TrimSpace(name)}
	var errs [4]error
	s.Command, errs[0] = f.Text("command")
	s.Cwd, errs[1] = f.Text("cwd")
	if v, ok := f.Get("args"); ok && v != nil {
		if _, list := v.([]any); !list {
			errs[2] = errors.New("args is no list")
		}
		s.Args, _ = f.List("args")
	}
	env, _ := f.Get("env")
	if pairs, ok := env.(frontmatter.Fields); ok {
		s.Env = map[string]string{}
		for _, p := range pairs {
			if v, ok := p.Value.(string); ok {
				s.Env[p.Key] = v
			}
		}
	}
	if s.Name == "" || s.Command == "" {
		errs[3] = errServer
	}
	if err := errors.Join(errs[:]...); err != nil || len(d.Direct) >= 16 {
		d.warn("the MCP server %q was left out: %v", s.Name, err)
		return
	}
	d.Direct = append(d.Direct, s)
}

// Request is what starts an agent of this definition, in no looser a mode.
func (d Definition) Request(mode host.Mode) (agent.Spawn, error) {
	s := agent.Spawn{Mode: mode}
	return s, d.apply(&s)
}

// apply narrows a request to the definition.
func (d Definition) apply(s *agent.Spawn) error {
	s.Agent, s.Name, s.System = d.Name, d.Name, d.Text
	if s.Model == "" {
		s.Model = d.Model
	}
	if s.Effort == "" {
		s.Effort = d.Effort
	}
	if d.Steps > 0 && (s.Steps == 0 || d.Steps < s.Steps) {
		s.Steps = d.Steps
	}
	mode := s.Mode
	switch mode {
	case "default":
		mode = host.ModeAsk
	case "bypass", "bypassPermissions":
		mode = host.ModeAuto
	case "", host.ModePlan, host.ModeAsk, host.ModeAcceptEdits, host.ModeAuto:
	default:
		return fmt.Errorf("there is no permission mode %q: use plan, ask, acceptEdits or auto", plain.Line(string(mode), 40))
	}
	s.Mode = mode.Narrower(d.Mode)
	s.Within = d.Tools
	s.Without = append(s.Without, d.Without...)
	if d.Servers != nil {
		ids := slices.Clone(d.Servers)
		for _, own := range d.Direct {
			ids = append(ids, own.Name)
		}
		s.Keep = func(spec host.Spec) bool {
			return spec.Origin.Source != host.MCP || slices.Contains(ids, spec.Origin.Name)
		}
	}
	return nil
}

// twins are the two names of one tool, and what other agents call it.
var twins = [...]struct{ tinyelf, acp string }{
	{"Read", "ReadFile"}, {"Write", "WriteFile"}, {"Edit", "EditFile"}, {"Bash", "Shell"}, {"BashJob", "ShellJob"},
}

// looking are tools for which the acp dialect has its search.
var looking = []string{"Grep", "Glob", "ListDir"}

var foreign = map[string]string{"LS": "ListDir", "MultiEdit": "Edit", "TodoWrite": "Plan", "Task": "spawn_agent", "BashOutput": "BashJob", "KillShell": "BashJob"}

// translate writes a rule in the words of the session's dialect.
func translate(rule string, acp bool) string {
	name, arg, has := strings.Cut(rule, "(")
	if n, ok := foreign[name]; ok {
		name = n
	}
	for _, t := range twins {
		switch {
		case acp && name == t.tinyelf:
			name = t.acp
		case acp && slices.Contains(looking, name):
			name = "search"
		case !acp && name == t.acp:
			name = t.tinyelf
		}
	}
	if has {
		return name + "(" + arg
	}
	return name
}
