package app

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/audit"
	"github.com/elfhost/elfhost/internal/fault"
)

func (a *App) openAudit(context.Context) error {
	key, err := audit.Key(a.auditKey())
	if err != nil {
		return fault.Wrap("E1501", "`elfhost doctor` checks the folders", err)
	}
	log, err := audit.Open(a.AuditDir(), audit.Options{Key: key, Secrets: a.secretValues})
	if err != nil {
		return fault.Wrap("E1502", "`elfhost audit verify` names the first bad record", err)
	}
	a.Audit = log
	a.closing(log.Close)
	return nil
}

// AuditDir is where the audit log lies.
func (a *App) AuditDir() string { return filepath.Join(a.Paths.State, "audit") }

func (a *App) auditKey() string { return filepath.Join(a.Paths.State, "audit.key") }

func (a *App) openGate(context.Context) error {
	own, err := a.session()
	if err != nil {
		return err
	}
	if a.grants, err = a.openGrants(); err != nil {
		return err
	}
	mode := a.opt.Mode
	if mode == "" {
		mode = host.Mode(a.Config.Mode)
	}
	a.Gate = &host.Gate{
		Policy: a.Policy, Grants: own, Granted: a.granted,
		Approver: a.opt.Approver, Memory: a.grants, Audit: a.record,
	}
	if mode != "" {
		if err := a.Gate.Switch(mode); err != nil {
			return fault.Wrap("E1001", "the modes are plan, ask, acceptEdits and auto", err)
		}
	}
	return nil
}

// record writes a verdict to the audit log. A log that cannot be written stops
// the session's next call rather than let it go unrecorded: see Health.
func (a *App) record(v host.Verdict) {
	r := audit.Record{
		Event: audit.EventVerdict, Session: v.Call.Caller.Session, Agent: v.Call.Caller.Agent,
		Call: v.Call.ID, Tool: v.Call.Tool, Source: string(v.Origin.Source), Plugin: v.Origin.Name,
		Digest: v.Origin.Digest, Caller: v.Call.Caller.Plugin, By: v.By, Rule: v.Rule, Where: v.Where, Reason: v.Reason,
		Outcome: audit.Denied,
	}
	if v.Allowed {
		r.Outcome = audit.Allowed
	}
	if v.Use != nil {
		r.Event = audit.EventUse
		r.Cap, r.Verb, r.Target, r.N = string(v.Use.Cap), v.Use.Verb, v.Use.Target, v.Use.N
	} else {
		r.Args = string(v.Call.Args)
	}
	if err := a.Audit.Append(r); err != nil {
		a.note("the audit log cannot be written: %v", err)
	}
}

// keep is the filter of --tools.
func (a *App) keep(s host.Spec) bool {
	return a.opt.Tools == nil || slices.Contains(a.opt.Tools, s.Name)
}

func (a *App) register(ctx context.Context) error {
	all := host.New(host.Options{Gate: a.Gate, Spill: a.spill, Log: a.opt.Log})
	for _, step := range steps {
		tools, err := step.tools(ctx, a)
		if err != nil {
			return fmt.Errorf("registering the tools of %s: %w", step.name, err)
		}
		if err := all.Add(tools...); err != nil {
			return fmt.Errorf("registering the tools of %s: %w", step.name, err)
		}
	}
	a.Registry = all
	if a.opt.Tools != nil {
		for _, name := range a.opt.Tools {
			if !all.Has(name) {
				return fault.New("E1301", "`elfhost tools` lists them", "--tools names %q, which is no tool here", name)
			}
		}
		a.Registry = all.Filter(a.keep)
	}
	return nil
}
