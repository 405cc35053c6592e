package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/schema"
)

// Elicitation is a question of a server to the person.
type Elicitation struct {
	Server  string
	Message string
	Schema  json.RawMessage // of the content of an answer: a flat object
	// Defaults is the answer that the schema's own defaults make; Missing names
	// the required fields that have none.
	Defaults map[string]any
	Missing  []string
	// URL is where the server wants the person to go instead of answering here.
	// It is shown; nothing opens it. Accepting says that the person agreed.
	URL string
}

// Reply is the person's answer to an Elicitation.
type Reply struct {
	Accept  bool
	Content map[string]any // nil with Accept: the defaults
}

// Sampling is a server's request for an answer of the model.
type Sampling struct {
	Server    string
	System    string
	Messages  []Message
	MaxTokens int
}

// Message is one message of a Sampling.
type Message struct {
	Role    string // "user" or "assistant"
	Content []abi.Content
}

// Sampled is the model's answer to a Sampling.
type Sampled struct {
	Text, Model string
	Cut         bool // at MaxTokens
}

// maxAsking is how many questions of one server may wait at once. One that asks
// more is told so at once: nobody answers a thousand.
const maxAsking = 4

var errAsking = fmt.Errorf("%d questions of yours are waiting already", maxAsking)

// ask has a question of the server answered by f, one after the other, while
// the time of the calls that are going on stands still. f's context ends with
// the question's, with the connection, and with the call's that it is asked for.
func (c *conn) ask(ctx context.Context, f func(context.Context) error) error {
	if c.asking.Add(1) > maxAsking {
		c.asking.Add(-1)
		return errAsking
	}
	defer c.asking.Add(-1)
	defer c.pause()()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.gone: // nobody waits for the answer
			cancel()
		case <-ctx.Done():
		}
	}()
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.turn }()
	ctx, end := c.behind(ctx)
	defer end()
	return f(ctx)
}

// pause stops the clocks of the calls that are going on.
func (c *conn) pause() func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	done := make([]func(), 0, len(c.calls))
	for _, call := range c.calls {
		done = append(done, host.Waiting(call))
	}
	return func() {
		for _, f := range done {
			f()
		}
	}
}

// Elicit implements mcp-go's handler. What no person can answer is declined.
func (c *conn) Elicit(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	out := &mcp.ElicitationResult{}
	out.Action = mcp.ElicitationResponseActionDecline
	raw, err := json.Marshal(r.Params.RequestedSchema)
	if err != nil {
		return nil, err
	}
	e, err := NewElicitation(c.l.s.Name, r.Params.Message, raw)
	if err != nil {
		return nil, err
	}
	if r.Params.Mode == mcp.ElicitationModeURL {
		if e.URL = r.Params.URL; !webAddress(e.URL) {
			return out, nil
		}
	}
	var reply Reply
	err = c.ask(ctx, func(ctx context.Context) (err error) {
		reply, err = c.l.c.opt.Elicit(ctx, e)
		return err
	})
	if errors.Is(err, errAsking) {
		return nil, err
	}
	if err != nil {
		out.Action = mcp.ElicitationResponseActionCancel
		return out, nil
	}
	if !reply.Accept {
		return out, nil
	}
	if e.URL != "" {
		out.Action = mcp.ElicitationResponseActionAccept
		return out, nil
	}
	content, err := reply.Fitting(e)
	if err != nil {
		return nil, err
	}
	out.Action, out.Content = mcp.ElicitationResponseActionAccept, content
	return out, nil
}

// Fitting is the content of an accepted answer, as the question's schema wants it.
func (r Reply) Fitting(e Elicitation) (json.RawMessage, error) {
	if r.Content == nil {
		r.Content = e.Defaults
	}
	b, err := json.Marshal(r.Content)
	if err != nil {
		return nil, err
	}
	sch, err := schema.Compile(e.Schema)
	if err == nil {
		err = sch.Validate(b)
	}
	if err != nil {
		return nil, fmt.Errorf("the answer does not fit the schema of the question: %w", err)
	}
	return b, nil
}

// webAddress reports whether a person can be shown an address to go to.
func webAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && len(text) <= 2048 && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && plain(text)
}

// NewElicitation reads a question whose text and schema strangers wrote.
func NewElicitation(from, message string, raw json.RawMessage) (Elicitation, error) {
	e := Elicitation{Server: from, Defaults: map[string]any{}}
	e.Message, _ = told("", message, 4<<10)
	if len(raw) == 0 || string(raw) == "null" {
		raw = []byte(`{"type":"object"}`)
	}
	e.Schema, _ = cleanSchema(raw)
	if _, err := schema.Compile(e.Schema); err != nil {
		return e, fmt.Errorf("the schema of the question cannot be used: %w", err)
	}
	var s struct {
		Properties map[string]struct {
			Default any `json:"default"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if err := json.Unmarshal(e.Schema, &s); err != nil {
		return e, fmt.Errorf("the schema of the question is not that of a form: %w", err)
	}
	for name, p := range s.Properties {
		if p.Default != nil {
			e.Defaults[name] = p.Default
		}
	}
	for _, name := range s.Required {
		if _, ok := e.Defaults[name]; !ok {
			e.Missing = append(e.Missing, name)
		}
	}
	return e, nil
}

// RootsTool is the tool that telling a server the roots counts as, for rules:
// "mcp__github__list_roots". A server that has a tool of this name is told
// none, so that a rule about one is none about the other.
const RootsTool = "list_roots"

// ListRoots implements mcp-go's handler.
func (c *conn) ListRoots(ctx context.Context, _ mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	out := &mcp.ListRootsResult{Roots: []mcp.Root{}}
	if c.l.has(RootsTool) {
		return out, nil
	}
	dirs, err := c.folders(ctx)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		path := filepath.ToSlash(dir)
		if !strings.HasPrefix(path, "/") { // C:/x
			path = "/" + path
		}
		u := url.URL{Scheme: "file", Path: path}
		out.Roots = append(out.Roots, mcp.Root{URI: u.String(), Name: filepath.Base(dir)})
	}
	return out, nil
}

// folders are the roots that the server is told now. While it starts nobody is
// asked: it may hold its tools back until it is answered, and a person takes
// longer than the start may. It is told none then, and that they have changed once
// a person has agreed.
func (c *conn) folders(ctx context.Context) (dirs []string, err error) {
	c.mu.Lock()
	dirs, c.given = c.given, nil
	c.mu.Unlock()
	if dirs != nil {
		return dirs, nil
	}
	if !c.ready.Load() {
		dirs, err = c.l.c.opt.Roots(ctx, c.l.s, false)
		if !errors.Is(err, ErrPerson) {
			return dirs, err
		}
		if c.owed.Store(true); c.ready.Load() { // it was started meanwhile
			go c.giveRoots()
		}
		return nil, nil
	}
	return dirs, c.ask(ctx, func(ctx context.Context) (err error) {
		dirs, err = c.l.c.opt.Roots(ctx, c.l.s, true)
		return err
	})
}

// giveRoots asks the person for what a server was not told while it started. The
// answer is for its next question. Since 2026-07-28 it asks anyway.
func (c *conn) giveRoots() {
	if !c.owed.CompareAndSwap(true, false) || mcp.IsModernProtocol(c.rpc.ProtocolVersion()) {
		return
	}
	var dirs []string
	err := c.ask(c.l.c.ctx, func(ctx context.Context) (err error) {
		dirs, err = c.l.c.opt.Roots(ctx, c.l.s, true)
		return err
	})
	if err != nil || len(dirs) == 0 {
		return
	}
	c.mu.Lock()
	c.given = dirs
	c.mu.Unlock()
	_ = c.rpc.RootListChanges(c.l.c.ctx) // one that is gone needs none
}

// CreateMessage implements mcp-go's handler.
func (c *conn) CreateMessage(ctx context.Context, r mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	if len(r.Tools) > 0 {
		return nil, errors.New("a model with tools is not offered here")
	}
	s := Sampling{Server: c.l.s.Name, System: r.SystemPrompt, MaxTokens: r.MaxTokens}
	for _, m := range r.Messages {
		b, err := json.Marshal(m.Content)
		if err != nil {
			return nil, err
		}
		if len(b) == 0 || b[0] != '[' {
			b = append(append([]byte("["), b...), ']')
		}
		var parts []json.RawMessage
		if err := json.Unmarshal(b, &parts); err != nil {
			return nil, err
		}
		msg := Message{Role: string(m.Role)}
		for _, p := range parts {
			msg.Content = append(msg.Content, block(p))
		}
		s.Messages = append(s.Messages, msg)
	}
	var got Sampled
	err := c.ask(ctx, func(ctx context.Context) (err error) {
		got, err = c.l.c.opt.Sample(ctx, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &mcp.CreateMessageResult{Model: got.Model, StopReason: "endTurn"}
	if got.Cut {
		out.StopReason = "maxTokens"
	}
	out.Role, out.Content = mcp.RoleAssistant, mcp.NewTextContent(got.Text)
	return out, nil
}
