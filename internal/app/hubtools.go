package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/elfhost/elfhost/builtins/skills"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/skillhub"
)

// installer is the tool whose question is the install screen.
const installer = "skillhub_install"

// hubTools search hubs and install from them for the model. What a person
// agreed to waits here for the call that it was about.
type hubTools struct {
	app *App

	mu     sync.Mutex
	agreed map[string]agreement // by the call's ID
}

// agreement is a package that a person looked at, and what they give to it.
type agreement struct {
	*Candidate
	grants []policy.Grant
}

// hubStep makes skillhub_search and skillhub_install.
func hubStep(_ context.Context, a *App) ([]host.Tool, error) { return skills.HubTools(a.hub), nil }

// installAsker puts the install screen in the place of the installer's question.
type installAsker struct {
	host.Approver
	hub *hubTools
}

// Approve asks about a package once it is fetched and verified.
func (i installAsker) Approve(ctx context.Context, q host.Ask) (host.Answer, error) {
	if q.Use != nil || q.Spec.Name != installer || q.Spec.Origin.Source != host.Builtin {
		return i.Approver.Approve(ctx, q)
	}
	c, err := i.hub.prepare(ctx, q.Call)
	if err != nil {
		return host.Answer{}, fmt.Errorf("%w: %w", host.ErrNothingToAsk, err)
	}
	answer, err := i.ask(ctx, q, c)
	if err != nil || !answer.Allow {
		return answer, errors.Join(err, c.Close())
	}
	return answer, nil
}

func (i installAsker) ask(ctx context.Context, q host.Ask, c *Candidate) (host.Answer, error) {
	text, err := c.Screen()
	if err != nil {
		return host.Answer{}, err
	}
	asked := c.Asked()
	q.Screen, q.Final, q.Rules = text, true, nil
	q.Choices = []string{"install it, and grant everything that it asks for", "install it, and grant nothing"}
	if len(asked) == 0 {
		q.Choices = []string{"install it"}
	}
	answer, err := i.Approver.Approve(ctx, q)
	if err != nil || !answer.Allow {
		return answer, err
	}
	if answer.Choice != 0 {
		asked = nil
	}
	return answer, i.hub.agree(q.Call.ID, agreement{c, asked})
}

// prepare fetches what a call names.
func (h *hubTools) prepare(ctx context.Context, c host.Call) (*Candidate, error) {
	var args struct {
		ID      string `json:"skillId"`
		Version string `json:"version"`
	}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return nil, err
	}
	ref, err := skills.HubRef(args.ID, args.Version)
	if err != nil {
		return nil, err
	}
	p, err := h.app.Prepare(ctx, ref, InstallOptions{})
	if err == nil && p.Old != nil && p.Old.Digest == p.Pin.Digest && p.Old.Disabled == "" {
		return nil, errors.Join(errors.New("it is installed already"), p.Close())
	}
	return p, err
}

// agree keeps what a person agreed to until its call comes.
func (h *hubTools) agree(call string, a agreement) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.agreed == nil {
		h.agreed = map[string]agreement{}
	}
	old, was := h.agreed[call]
	h.agreed[call] = a
	if was {
		return old.Close()
	}
	return nil
}

// take gives what was agreed about a call, once.
func (h *hubTools) take(call string) (agreement, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a, ok := h.agreed[call]
	delete(h.agreed, call)
	return a, ok
}

// close drops what was agreed to and never called.
func (h *hubTools) close(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, a := range h.agreed {
		errs = append(errs, a.Close())
	}
	h.agreed = nil
	return errors.Join(errs...)
}

// Search is skills.Hub's.
func (h *hubTools) Search(ctx context.Context, query string, limit int) (skills.Found, error) {
	set, err := h.app.Hubs()
	if err != nil {
		return skills.Found{}, err
	}
	out := skills.Found{Hubs: len(set.Remotes())}
	if out.Hubs == 0 {
		return out, nil
	}
	found, err := set.Search(ctx, query, limit)
	out.Listings, out.Notes = found.Listings, found.Notes
	return out, err
}

// Install is skills.Hub's.
func (h *hubTools) Install(ctx context.Context, call string, ref skillhub.Ref) (skills.Outcome, error) {
	if a, ok := h.take(call); ok {
		defer a.Close()
		if err := a.Commit(ctx, a.grants, nil); err != nil {
			return skills.Outcome{}, err
		}
		return h.outcome(a.Candidate, a.grants, ""), nil
	}
	c, err := h.app.Prepare(ctx, ref, InstallOptions{})
	if err != nil {
		return skills.Outcome{}, err
	}
	defer c.Close()
	if c.Old != nil && c.Old.Digest == c.Pin.Digest {
		out := h.outcome(c, parseGrants(c.Old.Grants, ""), c.Old.Disabled)
		out.Already = true
		return out, nil
	}
	if err := c.Store(ctx); err != nil {
		return skills.Outcome{}, err
	}
	return h.outcome(c, nil, Unasked), nil
}

// outcome says what became of a package; disabled is why it is not used.
func (h *hubTools) outcome(c *Candidate, grants []policy.Grant, disabled string) skills.Outcome {
	out := skills.Outcome{
		Name: c.Manifest.Name, Version: c.Manifest.Version, Publisher: c.Pin.Publisher, Signed: c.Pin.Signer != "",
		Digest: c.Pin.Digest, Kind: c.contents.Kind(), Disabled: disabled,
		Enable: "elfhost plugin enable " + c.Manifest.Name, Tools: h.app.registered(c.Manifest.Name),
	}
	if c.Old != nil && c.Old.Digest != c.Pin.Digest {
		out.Enable = "elfhost plugin update " + c.Manifest.Name
	}
	for _, g := range c.Asked() {
		out.Asks = append(out.Asks, g.String())
	}
	for _, g := range grants {
		out.Granted = append(out.Granted, g.String())
	}
	for _, f := range c.Findings {
		out.Findings = append(out.Findings, f.Says)
	}
	return out
}

// registered are the names under which a package's tools can be called.
func (a *App) registered(name string) []string {
	packs := a.installs.now.Load().packs
	i := slices.IndexFunc(packs, func(p *installedPack) bool { return p.manifest.Name == name })
	if i < 0 {
		return nil
	}
	return packs[i].names
}
