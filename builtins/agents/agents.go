// Package agents has the tools that start other agents: spawn_agent,
// subagent_list and subagent_status, and Subagent under the name and
// parameters of ACP clients; and it reads agent definitions.
//
// What a child may do is decided in host/agent, by the meet of parent and
// request. What is here can only ask for less.
package agents

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/plain"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/policy"
)

//go:embed tools/*.md tools/*.json
var texts embed.FS

// Options of the tools.
type Options struct {
	Runs *agent.Runs
	// Definitions are the agents that can be named; nil: none. It is asked at
	// each call, with the rights of the call.
	Definitions func(ctx context.Context, rights policy.Rights) ([]Definition, error)
	// Known are the definitions that the tool's description names.
	Known []Definition
	// Time is how long one sub-agent may work. 0: an hour.
	Time time.Duration
	// ACP selects Subagent in place of spawn_agent.
	ACP bool
}

// room is what the tools of one session share.
type room struct{ Options }

func (o Options) withDefaults() Options {
	if o.Time == 0 {
		o.Time = time.Hour
	}
	return o
}

// Spawner makes spawn_agent, or Subagent, of one session.
func Spawner(o Options) host.Tool {
	r := &room{o.withDefaults()}
	if o.ACP {
		s := tool.Spec(texts, "Subagent", host.KindOther)
		s.Parallel, s.MaxOutput = true, -1 // each report is clipped by itself
		return &tool.Func{S: s, Run: r.subagent}
	}
	s := tool.Spec(texts, "spawn_agent", host.KindOther)
	s.Parallel = true
	s.Description += describe(o.Known)
	return &tool.Func{S: s, Run: r.spawn}
}

// Queries makes subagent_list and subagent_status of one session.
func Queries(o Options) []host.Tool {
	r := &room{o}
	list, status := tool.Spec(texts, "subagent_list", host.KindRead), tool.Spec(texts, "subagent_status", host.KindRead)
	list.Parallel, status.Parallel = true, true
	return []host.Tool{&tool.Func{S: list, Run: r.list}, &tool.Func{S: status, Run: r.status}}
}

// describe lists the definitions for the tool's description, in 4 KiB.
func describe(known []Definition) string {
	var b strings.Builder
	for _, d := range known {
		if d.Problem != "" {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\n\nAgents that are defined here (for the parameter agent):")
		}
		if b.Len() > 4<<10 {
			b.WriteString("\n- and others")
			break
		}
		fmt.Fprintf(&b, "\n- %s: %s", d.Name, plain.Line(d.Description, 300))
	}
	return b.String()
}

// own are the tools that a child has without being named: files, shell, web.
var own = []string{
	"Read", "Write", "Edit", "ListDir", "Glob", "Grep", "Bash", "BashJob",
	"ReadFile", "WriteFile", "EditFile", "Shell", "ShellJob", "search", "rg", "file_outline",
	"WebSearch", "WebFetch", "ImageAnalysis",
}

// client are the tools of Subagent's children.
var client = []string{
	"ReadFile", "WriteFile", "EditFile", "ListDir", "Glob", "Grep", "Shell", "ShellJob", "Plan", "search", "rg", "file_outline",
}

// never are the tools that no child gets, named or not: they speak for the
// person's own session, or change what is installed.
var never = []string{"Notify", "SessionsSpawn", "SessionsSend", "SessionsYield", "skillhub_install"}

// child is the filter of spawn_agent's children. What is named explicitly may
// be more than the usual set; it is still among the parent's.
func child(named []string) func(host.Spec) bool {
	var patterns []policy.Pattern
	for _, n := range named {
		if p, err := policy.ParsePattern(n); err == nil && !strings.Contains(n, "*") {
			patterns = append(patterns, p)
		} else if err == nil && strings.HasPrefix(p.String(), "mcp__") || err == nil && strings.Contains(p.String(), "(") {
			patterns = append(patterns, p)
		}
	}
	return func(s host.Spec) bool {
		switch {
		case slices.Contains(never, s.Name):
			return false
		case host.Inheritable(s):
			return true
		case ours(s) && slices.Contains(own, s.Name):
			return true
		}
		return slices.ContainsFunc(patterns, func(p policy.Pattern) bool { return p.Names(s.Name) })
	}
}

// ours are tools whose names can be believed.
func ours(s host.Spec) bool {
	return s.Origin.Source == host.Builtin || s.Origin.Source == host.Bundled
}

// result tells a finished run.
func result(st agent.RunState) abi.Result {
	res := abi.Text(st.Tell())
	res.IsError = st.Status != agent.Completed
	return res
}
