package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/mcp"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/schema"
	"github.com/elfhost/elfhost/internal/term"
)

// former is an approver that can have a form filled in: the terminal's.
type former interface {
	Fill(context.Context, host.Ask, []term.Field) (map[string]any, bool, error)
}

// elicitor is one that passes a form on as it is: the client's of mcp serve.
type elicitor interface {
	Elicit(ctx context.Context, text string, e mcp.Elicitation) (mcp.Reply, error)
}

// maxFields bounds a form: nobody fills in more.
const maxFields = 20

// What a server's wishes count as, for rules: "mcp__github__elicit". A rule that
// denies one is the end of it; none that allows one spares the question, whose
// answer is the person's own.
const (
	elicitTool = "elicit"
	sampleTool = "create_message"
)

// ruled refuses, and writes down, what a rule denies a server.
func (a *App) ruled(server, tool string, args any) error {
	name := mcp.Name(server, tool)
	r := policy.Judge(a.Policy.Rules(), name, policy.Subject{})
	if r.Effect != policy.Deny {
		return nil
	}
	b, err := json.Marshal(args)
	if err != nil {
		return err
	}
	call := host.Call{Tool: name, Args: b, Caller: host.Caller{Session: a.Session, Server: server}}
	err = a.record(host.Verdict{Call: call, Origin: host.Origin{Source: host.MCP, Name: server}, By: "policy", Rule: r.Rule, Where: r.Where, Reason: r.Why})
	return errors.Join(fmt.Errorf("%s is refused: %s", name, r.Why), err)
}

// elicit has the person answer a server's question.
func (a *App) elicit(ctx context.Context, e mcp.Elicitation) (mcp.Reply, error) {
	if err := a.ruled(e.Server, elicitTool, map[string]any{"question": e.Message}); err != nil {
		return mcp.Reply{}, nil // declined; why is nothing that the server has to know
	}
	return a.fillIn(ctx, host.Origin{Source: host.MCP, Name: e.Server}, e)
}

// elicitPlugin is elicit for a plugin's question, inside a call of it.
func (a *App) elicitPlugin(ctx context.Context, from host.Origin, message string, schema json.RawMessage) (content json.RawMessage, ok bool, err error) {
	defer host.Waiting(ctx)()
	e, err := mcp.NewElicitation(from.Name, message, schema)
	if err != nil {
		return nil, false, err
	}
	r, err := a.fillIn(ctx, from, e)
	if err != nil || !r.Accept {
		return nil, false, err
	}
	content, err = r.Fitting(e)
	return content, err == nil, err
}

// fillIn has the person answer field by field where the front end can ask for
// text, else with the question's own defaults, if the person agrees to those
// and nothing is missing. An address is shown and not opened.
func (a *App) fillIn(ctx context.Context, from host.Origin, e mcp.Elicitation) (mcp.Reply, error) {
	if e.URL != "" {
		ok, err := a.askFor(ctx, from, "have you go to a web page (copy the address; nothing opens it)",
			map[string]any{"question": e.Message, "address": e.URL}, []string{"what you type there goes to whoever runs that page"})
		return mcp.Reply{Accept: ok}, err
	}
	fields, risks, err := formOf(e.Schema)
	if err != nil {
		return mcp.Reply{}, err
	}
	const what = "have an answer to its question"
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	ask, err := a.askOf(from, what, map[string]any{"question": e.Message, "fields": names}, append(risks, "it gets what you type"))
	if err != nil {
		return mcp.Reply{}, err
	}
	var reply mcp.Reply
	switch by := a.opt.Approver.(type) {
	case former:
		if len(fields) == 0 {
			return a.agree(ctx, from, what, e, risks)
		}
		reply.Content, reply.Accept, err = by.Fill(ctx, ask, fields)
	case elicitor:
		reply, err = by.Elicit(ctx, elicitText(ask, e.Message), e)
	default:
		return a.agree(ctx, from, what, e, risks)
	}
	reply.Accept = reply.Accept && err == nil
	if aerr := a.recordMCP(ask, what, reply.Accept); aerr != nil {
		return mcp.Reply{}, aerr
	}
	return reply, err
}

// agree asks whether the question's own defaults are the answer.
func (a *App) agree(ctx context.Context, from host.Origin, what string, e mcp.Elicitation, risks []string) (mcp.Reply, error) {
	if len(e.Missing) > 0 {
		return mcp.Reply{}, nil
	}
	ok, err := a.askFor(ctx, from, what, map[string]any{"question": e.Message, "answer": e.Defaults}, risks)
	return mcp.Reply{Accept: ok}, err
}

// elicitText says whose question it is before the question is told.
func elicitText(a host.Ask, message string) string {
	text := "elfhost: " + a.Why + "."
	for _, r := range a.Risks {
		text += "\n! " + r
	}
	return term.Lines(text + "\n\n" + message)
}

// property is one field of a question's schema.
type property struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`
	Enum        []string        `json:"enum"`
	EnumNames   []string        `json:"enumNames"`
	OneOf       []option        `json:"oneOf"`
	Items       struct {
		Enum  []string `json:"enum"`
		AnyOf []option `json:"anyOf"`
	} `json:"items"`
}

type option struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// formOf makes the fields of a question, in the order in which they stand.
func formOf(raw json.RawMessage) (fields []term.Field, risks []string, err error) {
	var s struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, nil, fmt.Errorf("the question's schema is not that of a form: %w", err)
	}
	if len(s.Properties) == 0 {
		return nil, nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(s.Properties))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, errors.New("the question's schema has no fields that can be read")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		var one json.RawMessage
		if err := d.Decode(&one); err != nil {
			return nil, nil, err
		}
		name := fmt.Sprint(key)
		f, err := fieldOf(name, one, slices.Contains(s.Required, name))
		if err != nil {
			return nil, nil, fmt.Errorf("the field %q of the question: %w", name, err)
		}
		if len(fields) == maxFields {
			return nil, nil, fmt.Errorf("the question has more than %d fields", maxFields)
		}
		fields = append(fields, f)
		if secretive(name + " " + f.Label) {
			risks = append(risks, "it asks for "+name+": a server must not ask for passwords, keys or tokens in this way")
		}
	}
	return fields, risks, nil
}

// secretive reports whether a field seems to ask for what nobody should type
// here (the specification of elicitation forbids servers to ask).
func secretive(text string) bool {
	low := strings.ToLower(text)
	return slices.ContainsFunc([]string{"password", "passwd", "passphrase", "secret", "token", "api key", "apikey", "api_key", "credential", "private key", "card number", "cvv", "pin code"},
		func(w string) bool { return strings.Contains(low, w) })
}

func fieldOf(name string, raw json.RawMessage, required bool) (term.Field, error) {
	var p property
	if err := json.Unmarshal(raw, &p); err != nil {
		return term.Field{}, err
	}
	sch, err := schema.Compile(raw)
	if err != nil {
		return term.Field{}, err
	}
	values, titles := p.options()
	f := term.Field{Name: name, Required: required, Choices: titles, Label: name}
	for _, more := range []string{p.Title, p.Description} {
		if more != "" && more != name {
			f.Label += " · " + more
		}
	}
	switch {
	case p.Type == "array":
		f.Label += " (numbers, with commas between)"
	case p.Type != "string" && p.Type != "":
		f.Label += " (" + p.Type + ")"
	}
	f.Default = defaultText(p, values)
	f.Read = func(text string) (any, error) {
		v, err := p.read(text, values)
		if err != nil {
			return nil, err
		}
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		return v, sch.Validate(b)
	}
	return f, nil
}

// options are the values that a field may have, and how they are shown.
func (p property) options() (values, titles []string) {
	for _, o := range append(slices.Clone(p.OneOf), p.Items.AnyOf...) {
		values, titles = append(values, o.Const), append(titles, o.Title)
	}
	for i, v := range append(slices.Clone(p.Enum), p.Items.Enum...) {
		values = append(values, v)
		if i < len(p.EnumNames) {
			v = p.EnumNames[i]
		}
		titles = append(titles, v)
	}
	for i, t := range titles {
		if t == "" {
			titles[i] = values[i]
		}
	}
	return values, titles
}

// defaultText is the schema's default as a person would type it.
func defaultText(p property, values []string) string {
	number := func(v string) string {
		if i := slices.Index(values, v); i >= 0 {
			return strconv.Itoa(i + 1)
		}
		return v
	}
	var one string
	var many []string
	switch {
	case len(p.Default) == 0 || string(p.Default) == "null":
		return ""
	case json.Unmarshal(p.Default, &one) == nil:
		return number(one)
	case json.Unmarshal(p.Default, &many) == nil:
		for i := range many {
			many[i] = number(many[i])
		}
		return strings.Join(many, ",")
	}
	return string(p.Default)
}

// read makes a value of what was typed.
func (p property) read(text string, values []string) (any, error) {
	text = strings.TrimSpace(text)
	choose := func(t string) (string, error) {
		t = strings.TrimSpace(t)
		if n, err := strconv.Atoi(t); err == nil && n >= 1 && n <= len(values) {
			return values[n-1], nil
		}
		if slices.Contains(values, t) {
			return t, nil
		}
		return "", fmt.Errorf("choose a number from 1 to %d", len(values))
	}
	switch {
	case p.Type == "array":
		out := []string{}
		for part := range strings.SplitSeq(text, ",") {
			v, err := choose(part)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case len(values) > 0:
		return choose(text)
	case p.Type == "boolean":
		switch strings.ToLower(text) {
		case "y", "yes", "true":
			return true, nil
		case "n", "no", "false":
			return false, nil
		}
		return nil, errors.New("answer yes or no")
	case p.Type == "integer" || p.Type == "number":
		if _, err := strconv.ParseFloat(text, 64); err != nil || len(text) > 40 || !json.Valid([]byte(text)) {
			return nil, errors.New("answer with a number")
		}
		return json.Number(text), nil
	}
	return text, nil
}

// What one server may have of the model in a session.
const (
	samplingAnswer = 4096    // tokens of one answer
	samplingTotal  = 100_000 // in and out
)

// sample lets a server use the background model, if the person agrees, within
// a budget.
func (a *App) sample(ctx context.Context, q mcp.Sampling) (mcp.Sampled, error) {
	if a.ruled(q.Server, sampleTool, q) != nil {
		return mcp.Sampled{}, errors.New("the person refused") // by a rule, which the server need not know
	}
	a.mu.Lock()
	left := samplingTotal - a.sampled[q.Server]
	a.mu.Unlock()
	if left <= 0 {
		return mcp.Sampled{}, fmt.Errorf("this server has used its %d tokens of this session", samplingTotal)
	}
	chosen, err := a.background(ctx)
	if err != nil {
		return mcp.Sampled{}, err
	}
	if q.MaxTokens <= 0 || q.MaxTokens > samplingAnswer {
		q.MaxTokens = samplingAnswer
	}
	ok, err := a.askMCP(ctx, q.Server, "use your model", q, []string{
		fmt.Sprintf("it costs tokens of %s: at most %d for this answer, and %d more for this server in this session", chosen.Name, q.MaxTokens, left),
		"the server sees the answer",
	})
	if err != nil || !ok {
		return mcp.Sampled{}, errors.Join(errors.New("the person refused"), err)
	}
	req := sandbox.ModelRequest{System: q.System, MaxTokens: int64(q.MaxTokens)}
	for _, m := range q.Messages {
		req.Messages = append(req.Messages, sandbox.ModelMessage{Role: m.Role, Content: m.Content})
	}
	got, err := a.answer(ctx, policy.Rights{}, req)
	if err != nil {
		return mcp.Sampled{}, err
	}
	a.mu.Lock()
	if a.sampled == nil {
		a.sampled = map[string]int64{}
	}
	a.sampled[q.Server] += got.TokensIn + got.TokensOut
	a.mu.Unlock()
	return mcp.Sampled{Text: got.Text, Model: got.Model, Cut: got.Stop == "max_tokens"}, nil
}
