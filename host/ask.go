package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/elfhost/elfhost/host/policy"
)

func (g *Gate) askCall(ctx context.Context, s Spec, c Call, ruling policy.Ruling, v *Verdict) *Denied {
	a := Ask{Call: c, Spec: s, Why: why(c.Caller), Now: ruling.Why, Risks: ruling.Risks, Rules: rulesFor(s, ruling.Suggest)}
	a.Final = len(a.Rules) == 0 || c.Caller.Plugin != "" || ruling.Rule != ""
	d := g.ask(ctx, a, v)
	if d != nil && !a.Final {
		d.Allow = command(a.Rules[0])
	}
	return d
}

// askEach asks about a program that nothing holds: once, and never for longer.
func (g *Gate) askEach(ctx context.Context, s Spec, c Call, ruling policy.Ruling, v *Verdict) *Denied {
	now, risk := "no kernel sandbox works on this machine, so each command is asked about", "it runs unsandboxed, with all the rights of the person"
	if g.Terminal != "" {
		now = "commands run in " + g.Terminal + ", so each one is asked about"
		risk = "it runs in " + g.Terminal + ", outside the kernel sandbox, with all the rights of the person"
	}
	return g.ask(ctx, Ask{
		Call: c, Spec: s, Why: why(c.Caller), Final: true, Now: now, Risks: append([]string{risk}, ruling.Risks...),
	}, v)
}

// askUnclear asks, in auto mode too, about a command to which the critical
// list could not be applied. Where nobody is there the model is told what to
// write instead.
func (g *Gate) askUnclear(ctx context.Context, s Spec, c Call, ruling policy.Ruling, v *Verdict) *Denied {
	ruling.Why = ruling.Unclear
	d := g.askCall(ctx, s, c, ruling, v)
	if d != nil && v.By == "nobody" {
		d.Why = ruling.Unclear + ", so that it may be one which is always refused, and nobody is there to ask; write the programs, and what they delete, out in the command"
	}
	return d
}

func why(c Caller) string {
	by := "the model"
	switch {
	case c.Plugin != "":
		by = "the plugin " + c.Plugin
	case c.Server != "":
		by = "the MCP server " + c.Server
	case c.Agent != "":
		by = "the agent " + c.Agent
	case c.Person:
		by = "the person who called it"
	}
	if c.Step > 0 {
		return fmt.Sprintf("asked by %s in step %d", by, c.Step)
	}
	return "asked by " + by
}

// ask puts a question, or joins one that is being asked, and remembers the answer.
func (g *Gate) ask(ctx context.Context, a Ask, v *Verdict) *Denied {
	d := &Denied{Call: a.Call, Origin: a.Spec.Origin, Use: a.Use}
	if g.Approver == nil {
		if defers(a) {
			v.By, v.Reason = "nobody", "it prepares, and waits for a person"
			return nil
		}
		v.By, d.Layer, d.Why = "nobody", "nobody", "it needs a person's consent, and nobody is there to ask"
		return d
	}
	v.By, d.Layer = "person", "person"
	answer, err := g.root().put(ctx, g.Approver, a)
	switch {
	case ctx.Err() != nil:
		d.Why = "the call was cancelled while a person was asked"
		return d
	case errors.Is(err, ErrNothingToAsk) && defers(a):
		v.By, v.Reason = "nobody", err.Error()
		return nil
	case err != nil:
		d.Why = fmt.Sprintf("the question was not answered: %v", err)
		return d
	case !answer.Allow && answer.Reason != "":
		d.Why = "the person refused and says: " + answer.Reason
		return d
	case !answer.Allow:
		d.Why = "the person refused"
		return d
	}
	v.Rule, v.Reason = g.remember(ctx, a, answer)
	return nil
}

// ErrNothingToAsk is an Approver's answer to a question about a tool that waits
// for a person: there is nothing to agree to, and the tool itself says why.
var ErrNothingToAsk = errors.New("there is nothing to agree to")

// defers reports whether a call may be made without an answer, because it leaves
// what it is about unused.
func defers(a Ask) bool {
	src, ok := deferring[a.Spec.Name]
	return ok && src == a.Spec.Origin.Source && a.Use == nil && a.Call.Caller.Plugin == ""
}

// remember keeps an answer as long as the person said. Only a rule that was
// shown is kept.
func (g *Gate) remember(ctx context.Context, a Ask, answer Answer) (rule, reason string) {
	shown := slices.ContainsFunc(a.Rules, answer.Rule.equal)
	if answer.Scope != Session && answer.Scope != Project || !shown || a.Final {
		return "", ""
	}
	if answer.Scope == Project && g.Memory != nil {
		err := g.Memory.Remember(ctx, answer.Rule)
		if err == nil {
			return answer.Rule.String(), ""
		}
		reason = fmt.Sprintf("kept for the session only: %v", err)
	}
	if m, ok := memoryOf(ctx); ok {
		if err := m.Remember(ctx, answer.Rule); err != nil {
			return "", fmt.Sprintf("kept for this call only: %v", err)
		}
		return answer.Rule.String(), reason
	}
	root := g.root()
	root.state.mu.Lock()
	defer root.state.mu.Unlock()
	if !slices.ContainsFunc(root.state.rules, answer.Rule.equal) {
		root.state.rules = append(root.state.rules, answer.Rule)
	}
	return answer.Rule.String(), reason
}
