package agents

import (
	"context"
	"fmt"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/plain"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
)

type spawnArgs struct {
	Prompt         string   `json:"prompt"`
	Agent          string   `json:"agent"`
	Model          string   `json:"model"`
	Background     bool     `json:"background"`
	MaxIterations  int      `json:"maxIterations"`
	PermissionMode string   `json:"permissionMode"`
	Tools          []string `json:"tools"`
}

func (r *room) spawn(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[spawnArgs](c)
	if err != nil {
		return abi.Result{}, err
	}
	s := agent.Spawn{
		Name: a.Agent, Prompt: a.Prompt, Model: a.Model, Background: a.Background,
		Steps: a.MaxIterations, Mode: host.Mode(a.PermissionMode), Tools: a.Tools, Time: r.Time,
	}
	if len(s.Tools) == 0 { // models write [] where they mean nothing
		s.Tools = nil
	}
	named := s.Tools
	if a.Agent != "" {
		d, text, err := r.definition(ctx, c, a.Agent)
		if err != nil || text != "" {
			return abi.Errorf("%s", text), err
		}
		if err := d.apply(&s); err != nil {
			return abi.Errorf("No agent was started: %v.", err), nil
		}
		named = append(append([]string{}, named...), s.Within...)
	}
	usual := child(named)
	narrower := s.Keep
	s.Keep = func(spec host.Spec) bool { return usual(spec) && (narrower == nil || narrower(spec)) }
	run, err := r.Runs.Spawn(ctx, s)
	if err != nil {
		return abi.Errorf("No agent was started: %v.", err), nil
	}
	if s.Background {
		st := run.State()
		return abi.Textf("The agent works in the background with runId %s. You are told when it has ended; subagent_status has its report then.", st.ID), nil
	}
	st, err := run.Wait(ctx)
	if err != nil {
		return abi.Result{}, err
	}
	// It is told here, so that the list need not have it.
	if seen, err := r.Runs.Status(context.WithoutCancel(ctx), agent.Current(ctx), st.ID); err == nil {
		st = seen
	}
	return result(st), nil
}

// definition finds an agent by name; text is what the model is told where
// there is none.
func (r *room) definition(ctx context.Context, c host.Call, name string) (d Definition, text string, err error) {
	var all []Definition
	if r.Definitions != nil {
		if all, err = r.Definitions(ctx, c.Rights); err != nil {
			return d, "", fmt.Errorf("reading the agent definitions: %w", err)
		}
	}
	var names []string
	for _, d := range all {
		switch {
		case !strings.EqualFold(d.Name, strings.TrimSpace(name)):
			if d.Problem == "" {
				names = append(names, d.Name)
			}
		case d.Problem != "":
			return d, fmt.Sprintf("No agent was started: the definition %s cannot be used: %s.", d.Name, d.Problem), nil
		default:
			return d, "", nil
		}
	}
	if len(names) == 0 {
		return d, fmt.Sprintf("No agent was started: there is no definition %q, and no other. Leave agent out for a general one.", plain.Line(name, 60)), nil
	}
	return d, fmt.Sprintf("No agent was started: there is no definition %q. There are: %s. Leave agent out for a general one.", plain.Line(name, 60), strings.Join(names, ", ")), nil
}

func (r *room) list(ctx context.Context, _ host.Call) (abi.Result, error) {
	s := agent.Current(ctx)
	if s == nil {
		return abi.Text("There are no sub-agents: this call was made outside of a conversation."), nil
	}
	all := r.Runs.List(s)
	if len(all) == 0 {
		return abi.Text("There are no sub-agents at work, and no reports to read."), nil
	}
	var b strings.Builder
	for _, st := range all {
		fmt.Fprintf(&b, "- %s %s", st.ID, st.Status)
		if st.Name != "" {
			fmt.Fprintf(&b, ", %s", plain.Line(st.Name, 60))
		}
		fmt.Fprintf(&b, ", %d steps: %s\n", st.Usage.Steps, plain.Line(st.Prompt, 100))
	}
	return abi.Text(b.String()), nil
}

func (r *room) status(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[struct {
		RunID string `json:"runId"`
	}](c)
	if err != nil {
		return abi.Result{}, err
	}
	s := agent.Current(ctx)
	if s == nil {
		return abi.Errorf("There are no sub-agents: this call was made outside of a conversation."), nil
	}
	st, err := r.Runs.Status(ctx, s, strings.TrimSpace(a.RunID))
	if err != nil {
		return abi.Errorf("%v. subagent_list has those of this conversation.", err), nil
	}
	return abi.Text(st.Tell()), nil
}
