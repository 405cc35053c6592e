package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/audit"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
)

func (a *App) openAudit(context.Context) error {
	key, err := audit.Key(AuditKeyFile(a.Paths))
	if err != nil {
		return fault.Wrap("E1501", checksFolders, err)
	}
	log, err := audit.Open(AuditDir(a.Paths), audit.Options{Key: key, Scrub: func(s string) string {
		if a.Secrets == nil { // not opened yet
			return s
		}
		return a.Secrets.Scrub.String(s)
	}})
	var file *fs.PathError
	switch {
	case errors.As(err, &file): // says nothing of what is in the log
		return fault.Wrap("E1501", checksFolders, err)
	case err != nil:
		return fault.Wrap("E1502", "`elfhost audit verify` names the first bad record", err)
	}
	a.Audit = log
	a.closing(log.Close)
	return nil
}

func (a *App) openGate(context.Context) error {
	own, err := a.session()
	if err != nil {
		return err
	}
	if a.grants, err = a.openGrants(); err != nil {
		return err
	}
	mode := a.opt.Mode
	if set, err := a.Config.Explain("mode"); mode == "" && err == nil && len(set) > 0 && set[0].Layer != "default" {
		mode = host.Mode(a.Config.Mode)
	}
	a.hub = &hubTools{app: a}
	approver := a.opt.Approver
	if approver != nil {
		approver = installAsker{approver, a.hub}
	}
	a.Gate = &host.Gate{
		Policy: a.Policy, Grants: own, Granted: a.granted, Workspace: a.Dir,
		Approver: approver, Memory: a.grants, Audit: a.record,
	}
	if err := a.openHooks(); err != nil {
		return err
	}
	return a.start(mode)
}

// start puts the session into its mode. Without one it is ask, or where a
// policy forbids that, the most careful that is allowed.
func (a *App) start(mode host.Mode) error {
	var allowed []string
	for _, m := range []host.Mode{host.ModeAsk, host.ModePlan, host.ModeAcceptEdits, host.ModeAuto} {
		if a.Policy.ModeAllowed(string(m)) == nil {
			allowed = append(allowed, string(m))
		}
	}
	if mode == "" {
		mode = host.ModeAsk
		if len(allowed) > 0 {
			mode = host.Mode(allowed[0])
		}
	}
	err := a.Gate.Switch(mode)
	switch {
	case err == nil:
		return nil
	case slices.Contains([]host.Mode{host.ModeAsk, host.ModePlan, host.ModeAcceptEdits, host.ModeAuto}, mode):
		return fault.Wrap("E1204", "the modes that are allowed here: "+cmp.Or(strings.Join(allowed, ", "), "none"), err)
	}
	return fault.Wrap("E1001", "the modes are plan, ask, acceptEdits and auto", err)
}

// record writes a verdict to the audit log; a call whose verdict cannot be
// written does not happen.
func (a *App) record(v host.Verdict) error {
	r := audit.Record{
		Event: audit.EventVerdict, Session: v.Call.Caller.Session, Agent: v.Call.Caller.Agent,
		Call: v.Call.ID, Tool: v.Call.Tool, Source: string(v.Origin.Source), Plugin: v.Origin.Name,
		Digest: v.Origin.Digest, Caller: v.Call.Caller.Plugin, By: v.By, Rule: v.Rule, Where: v.Where, Reason: v.Reason,
		Outcome: audit.Denied,
	}
	scrub := a.Secrets.Scrub.String
	if v.Allowed {
		r.Outcome = audit.Allowed
	}
	if v.Use != nil {
		r.Event = audit.EventUse
		r.Cap, r.Verb, r.Target, r.N = string(v.Use.Cap), v.Use.Verb, scrub(v.Use.Target), v.Use.N
	} else {
		r.Args = scrub(string(v.Call.Args))
	}
	return errors.Join(a.Audit.Append(r), a.keepApproval(v))
}

// KeepReceipt writes what a sandboxed call cost to the audit log, a moment
// later: what was decided about it is there already.
func (a *App) KeepReceipt(r abi.Receipt) {
	rec := audit.Record{Event: audit.EventReceipt, Session: a.Session, Call: r.Call, Tool: r.Tool, Plugin: r.Plugin, Digest: r.Digest, Receipt: &r}
	if err := a.Audit.Soon(rec); err != nil {
		a.note("the audit log cannot be written: %v", err)
	}
}

// KeepGrant writes to the audit log that a person gave or took a right.
func (a *App) KeepGrant(what string) {
	if err := a.Audit.Append(audit.Record{Event: audit.EventGrant, Session: a.Session, By: "person", Reason: what}); err != nil {
		a.note("the audit log cannot be written: %v", err)
	}
}

// AuditKeyFile is where the key lies that the audit log is verified with.
func AuditKeyFile(p config.Paths) string { return filepath.Join(p.State, "audit.key") }

// AuditDir is where the audit log lies.
func AuditDir(p config.Paths) string { return filepath.Join(p.State, "audit") }

// notACP are builtin tools that the acp dialect does not have: its search looks
// for files too, its Subagent waits for its children, and sessions are the
// editor's.
var notACP = []string{
	"ListDir", "Glob", "Grep", "subagent_list", "subagent_status",
	"SessionsSpawn", "SessionsList", "SessionsSend", "SessionsHistory", "SessionsYield",
}

// keep is the filter of --tools; without it, the dialect's.
func (a *App) keep(s host.Spec) bool {
	if a.opt.Tools == nil {
		return !a.acp() || s.Origin.Source != host.Builtin || !slices.Contains(notACP, s.Name)
	}
	return slices.Contains(a.opt.Tools, s.Name)
}

func (a *App) register(ctx context.Context) error {
	all := host.New(a.registryOptions(a.Gate))
	a.all = all
	a.Registry = all
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
			if !all.Has(name) && !a.servesTool(name) {
				return fault.New("E1301", "`elfhost tools` lists them", "--tools names %q, which is no tool here", name)
			}
		}
	}
	if a.opt.Tools != nil || a.acp() {
		a.Registry = all.Filter(a.keep)
	}
	return nil
}
