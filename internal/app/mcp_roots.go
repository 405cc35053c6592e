package app

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/mcp"
	"github.com/elfhost/elfhost/host/policy"
)

// roots tells a server which folder is worked in. That is a call through the
// gate like others, so that rules about it can be written and remembered. A
// program that was started in the folder, or with it as an argument, knows it
// by that; a rule may deny it or have it asked about all the same.
//
// Without ask, what a person would have to be asked is mcp.ErrPerson.
func (a *App) roots(ctx context.Context, s mcp.Server, ask bool) ([]string, error) {
	args, err := json.Marshal(map[string][]string{"folders": {a.Dir}})
	if err != nil {
		return nil, err
	}
	spec := host.Spec{
		Name: mcp.Name(s.Name, mcp.RootsTool), Title: "Tell the server the workspace's folder", Kind: host.KindOther,
		Origin: host.Origin{Source: host.MCP, Name: s.Name},
	}
	call := host.Call{Tool: spec.Name, Args: args, Caller: host.Caller{Session: a.Session, Server: s.Name}}
	if rule := policy.Judge(a.Policy.Rules(), spec.Name, policy.Subject{}); rule.Rule == "" && rule.Effect == policy.Ask && a.knows(s) {
		err = a.record(host.Verdict{Call: call, Origin: spec.Origin, Allowed: true, By: "grants", Reason: "it was started with the folder"})
	} else {
		gate := a.Gate
		if !ask {
			gate = gate.Child(gate.Current())
			gate.Approver = nil
			gate.Audit = func(v host.Verdict) error {
				if !v.Allowed && v.By == "nobody" { // it is not decided yet
					return nil
				}
				return a.record(v)
			}
		}
		err = gate.Check(ctx, spec, call)
	}
	var no *host.Denied
	if errors.As(err, &no) && ctx.Err() == nil {
		if !ask && no.Layer == "nobody" && a.opt.Approver != nil {
			return nil, mcp.ErrPerson
		}
		return nil, nil // which tells nothing, also not that somebody refused
	}
	if err != nil {
		return nil, err
	}
	return []string{a.Dir}, nil
}

// knows reports whether a server is a program of this machine that was given
// the workspace.
func (a *App) knows(s mcp.Server) bool {
	if s.URL != "" {
		return false
	}
	rel, err := filepath.Rel(s.Dir, a.Dir)
	return err == nil && filepath.IsLocal(rel) || slices.Contains(s.Args, a.Dir)
}
