package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/elfhost/elfhost/host"
)

// Question is a question of the Gate as a person is shown it.
type Question struct {
	Text  string
	Once  Choice
	Rule  Choice // what would be remembered; empty: nothing is
	No    string
	Never string // no, for the rest of the session
}

// Choice is an answer that allows, and what it says.
type Choice struct {
	Text   string
	Answer host.Answer
}

// The identifiers of the four answers.
const (
	allowOnce    = "allow_once"
	allowAlways  = "allow_always"
	rejectOnce   = "reject_once"
	rejectAlways = "reject_always"
)

var (
	errTooLong   = errors.New("the question is too long to be shown whole")
	errCancelled = errors.New("the person was asked, and the turn was cancelled")
)

// never is what the model is told of what the person does not want to be asked again.
const never = "not now and not for the rest of this session; it will not be asked again"

// Approve implements host.Approver: session/request_permission, one at a time.
func (c *Client) Approve(ctx context.Context, a host.Ask) (host.Answer, error) {
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return host.Answer{}, ctx.Err()
	}
	if c.ses.Load() == nil {
		return host.Answer{}, errors.New("the session is not open yet")
	}
	if c.never(a) {
		return host.Answer{Reason: never}, nil
	}
	q, ok := c.srv.Show(a)
	if !ok {
		return host.Answer{}, errTooLong
	}
	sh, own := c.subject(a)
	answer, err := c.put(ctx, a, q, sh)
	switch allowed := err == nil && answer.Allow; {
	case own && allowed: // nobody else will say how it ended
		c.update(sdk.UpdateToolCall(sh.id, sdk.WithUpdateStatus(sdk.ToolCallStatusCompleted)))
	case own:
		c.update(sdk.UpdateToolCall(sh.id, sdk.WithUpdateStatus(sdk.ToolCallStatusFailed)))
	case allowed: // it was shown as waiting
		c.update(sdk.UpdateToolCall(sh.id, sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress)))
	}
	return answer, err
}

// subject is the call that a question is about. Questions about other things
// (a call that a plugin makes, an MCP server's wish) are shown as calls of their own.
func (c *Client) subject(a host.Ask) (sh *shown, own bool) {
	who := a.Call.Caller
	c.mu.Lock()
	from, child := c.runs[who.Session]
	c.asked++
	n := c.asked
	c.mu.Unlock()
	if a.Call.ID != "" && who.Plugin == "" && (child || who.Session == c.ses.Load().ID) {
		return c.announce(c.key(from, a.Call.ID), a.Call.Tool, a.Call.Args), false
	}
	return c.announce(fmt.Sprintf("question-%d", n), a.Spec.Name, a.Call.Args), true
}

func (c *Client) put(ctx context.Context, a host.Ask, q Question, sh *shown) (host.Answer, error) {
	content := []sdk.ToolCallContent{c.srv.fence(q.Text)}
	if a.Use == nil {
		var old *string
		if sh.path != "" && read(sh.args).Content != nil {
			old, _ = c.now(ctx, sh.path)
		}
		if d, ok := c.preview(old, sh); ok {
			content = append(content, d)
		}
	}
	kind, title := kindOf(a.Spec), c.title(sh)
	r, err := sdk.SendRequest[sdk.RequestPermissionResponse](c.srv.conn, ctx, sdk.ClientMethodSessionRequestPermission, sdk.RequestPermissionRequest{
		SessionId: c.id(), Options: q.options(),
		ToolCall: sdk.ToolCallUpdate{
			ToolCallId: sh.id, Title: &title, Kind: &kind, Status: sdk.Ptr(sdk.ToolCallStatusPending),
			Content: content, Locations: c.locations(sh), RawInput: c.srv.raw(a.Call.Args),
		},
	})
	switch {
	case ctx.Err() != nil:
		return host.Answer{}, ctx.Err()
	case err != nil:
		return host.Answer{}, fmt.Errorf("%s did not answer: %s", c.Name(), c.reason(err))
	case r.Outcome.Selected == nil:
		return host.Answer{}, errCancelled
	}
	return c.answer(a, q, string(r.Outcome.Selected.OptionId))
}

func (q Question) options() []sdk.PermissionOption {
	out := []sdk.PermissionOption{{OptionId: allowOnce, Kind: sdk.PermissionOptionKindAllowOnce, Name: q.Once.Text}}
	if q.Rule.Text != "" {
		out = append(out, sdk.PermissionOption{OptionId: allowAlways, Kind: sdk.PermissionOptionKindAllowAlways, Name: q.Rule.Text})
	}
	return append(out,
		sdk.PermissionOption{OptionId: rejectOnce, Kind: sdk.PermissionOptionKindRejectOnce, Name: q.No},
		sdk.PermissionOption{OptionId: rejectAlways, Kind: sdk.PermissionOptionKindRejectAlways, Name: q.Never})
}

// answer takes a choice; one that was not offered is no answer.
func (c *Client) answer(a host.Ask, q Question, id string) (host.Answer, error) {
	switch {
	case id == allowOnce:
		return q.Once.Answer, nil
	case id == allowAlways && q.Rule.Text != "":
		return q.Rule.Answer, nil
	case id == rejectOnce:
		return host.Answer{}, nil
	case id == rejectAlways:
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.rejected == nil {
			c.rejected = map[string]bool{}
		}
		c.rejected[about(a)] = true
		return host.Answer{Reason: never}, nil
	}
	return host.Answer{}, fmt.Errorf("%s chose an answer that was not offered", c.Name())
}

func (c *Client) never(a host.Ask) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rejected[about(a)]
}

// about is the same for questions that a person would take for one: those that
// the same rule covers, or else those about the same thing.
func about(a host.Ask) string {
	if len(a.Rules) > 0 {
		return a.Spec.Name + "\x00" + a.Rules[0].String()
	}
	what, args := "", string(a.Call.Args)
	if a.Use != nil {
		b, err := json.Marshal(a.Use)
		if err == nil {
			what, args = string(b), ""
		}
	}
	return a.Spec.Name + "\x00" + string(a.Spec.Origin.Source) + "\x00" + a.Spec.Origin.Name + "\x00" + what + "\x00" + args
}
