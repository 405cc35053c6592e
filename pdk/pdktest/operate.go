package pdktest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/pdk"
)

// Operate implements [pdk.Host].
func (h *Host) Operate(ctx context.Context, module, op string, header json.RawMessage, body []byte) (any, []byte, error) {
	reply, data, err := h.operate(ctx, module+"."+op, header, body)
	if err == nil {
		return reply, data, nil
	}
	var known *pdk.Error
	var code abi.Code
	switch {
	case errors.As(err, &known):
	case errors.As(err, &code):
		err = &pdk.Error{Op: module + "." + op, Code: code}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		err = &pdk.Error{Op: module + "." + op, Code: abi.ErrDeadline, Detail: err.Error()}
	default:
		err = &pdk.Error{Op: module + "." + op, Code: abi.ErrUnavailable, Detail: err.Error()}
	}
	return nil, nil, err
}

type empty struct{}

func (h *Host) operate(ctx context.Context, op string, header json.RawMessage, body []byte) (any, []byte, error) {
	switch op {
	case "elf:log.write":
		return h.log(header, body)
	case "elf:progress.report":
		var p abi.Progress
		if err := strict(header, &p); err != nil {
			return nil, nil, err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.seen = append(h.seen, p)
		return empty{}, nil, nil
	case "elf:net.http":
		return h.fetch(ctx, header, body)
	case "elf:model.generate":
		return h.generate(ctx, header, body)
	case "elf:kv.get", "elf:kv.set", "elf:kv.delete", "elf:kv.list":
		return h.store(op, header, body)
	case "elf:env.get":
		return named(h.Env, header, func(_, value string) string { return value })
	case "elf:secret.placeholder":
		return named(h.Secrets, header, func(name, _ string) string { return placeholder(name) })
	case "elf:exec.run":
		return h.run(ctx, header, body)
	case "elf:tool.call":
		return h.callTool(ctx, header, body)
	}
	return nil, nil, abi.ErrUnsupported
}

// strict decodes a header as the host does: an unknown key is a mistake.
func strict(header json.RawMessage, v any) error {
	dec := json.NewDecoder(bytes.NewReader(header))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", abi.ErrInvalid, err)
	}
	return nil
}

// named answers from a map of settings: absent altogether is a missing grant.
func named(m map[string]string, header json.RawMessage, show func(name, value string) string) (any, []byte, error) {
	var req struct {
		Name string `json:"name"`
	}
	if err := strict(header, &req); err != nil {
		return nil, nil, err
	}
	if m == nil {
		return nil, nil, abi.ErrDenied
	}
	value, ok := m[req.Name]
	if !ok {
		return nil, nil, abi.ErrNotFound
	}
	return empty{}, []byte(show(req.Name, value)), nil
}

func (h *Host) log(header json.RawMessage, body []byte) (any, []byte, error) {
	var req struct {
		Level string `json:"level"`
	}
	if err := strict(header, &req); err != nil {
		return nil, nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	line := req.Level + ": " + string(body)
	h.logs = append(h.logs, line)
	h.t.Log(line)
	return empty{}, nil, nil
}

func (h *Host) store(op string, header json.RawMessage, body []byte) (any, []byte, error) {
	var req struct {
		Key    string `json:"key"`
		Prefix string `json:"prefix"`
		After  string `json:"after"`
	}
	if err := strict(header, &req); err != nil {
		return nil, nil, err
	}
	if h.KV == nil {
		return nil, nil, abi.ErrDenied
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if op == "elf:kv.list" {
		keys := []string{}
		for k := range h.KV {
			if strings.HasPrefix(k, req.Prefix) && k > req.After {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		return map[string]any{"keys": keys}, nil, nil
	}
	if n := len(req.Key); n < 1 || n > 512 {
		return nil, nil, abi.ErrInvalid
	}
	value, ok := h.KV[req.Key]
	switch {
	case op == "elf:kv.set":
		h.KV[req.Key] = bytes.Clone(body)
		return empty{}, nil, nil
	case !ok:
		return nil, nil, abi.ErrNotFound
	case op == "elf:kv.delete":
		delete(h.KV, req.Key)
		return empty{}, nil, nil
	}
	return empty{}, value, nil
}

func (h *Host) generate(ctx context.Context, header json.RawMessage, body []byte) (any, []byte, error) {
	var req struct {
		Messages  []pdk.Message `json:"messages"`
		System    string        `json:"system"`
		MaxTokens int           `json:"max_tokens"`
		Images    []struct {
			MIMEType string `json:"mime_type"`
			Length   int    `json:"length"`
		} `json:"images"`
	}
	if err := strict(header, &req); err != nil {
		return nil, nil, err
	}
	if h.Model == nil {
		return nil, nil, abi.ErrUnavailable
	}
	p := pdk.Prompt{System: req.System, Messages: req.Messages, MaxTokens: req.MaxTokens}
	for _, i := range req.Images {
		if i.Length < 0 || i.Length > len(body) {
			return nil, nil, abi.ErrInvalid
		}
		p.Images = append(p.Images, pdk.Image{MIMEType: i.MIMEType, Data: body[:i.Length]})
		body = body[i.Length:]
	}
	p.Text = string(body)
	c, err := h.Model(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	return map[string]any{"stop": c.Stop, "model": c.Model, "tokens_in": c.TokensIn, "tokens_out": c.TokensOut}, []byte(c.Text), nil
}

func (h *Host) run(ctx context.Context, header json.RawMessage, body []byte) (any, []byte, error) {
	var req struct {
		Argv      []string `json:"argv"`
		Dir       string   `json:"dir"`
		TimeoutMS int64    `json:"timeout_ms"`
	}
	if err := strict(header, &req); err != nil {
		return nil, nil, err
	}
	if h.Exec == nil {
		return nil, nil, abi.ErrDenied
	}
	if len(req.Argv) == 0 {
		return nil, nil, abi.ErrInvalid
	}
	f, err := h.Exec(ctx, pdk.Command{Argv: req.Argv, Dir: req.Dir, Stdin: body, Timeout: time.Duration(req.TimeoutMS) * time.Millisecond})
	if err != nil {
		return nil, nil, err
	}
	return map[string]any{
		"exit_code": f.ExitCode, "signal": f.Signal, "stdout": len(f.Stdout), "stderr": len(f.Stderr),
		"truncated": f.Truncated, "timed_out": f.TimedOut,
	}, slices.Concat(f.Stdout, f.Stderr), nil
}

func (h *Host) callTool(ctx context.Context, header json.RawMessage, body []byte) (any, []byte, error) {
	var req struct {
		Tool string `json:"tool"`
	}
	if err := strict(header, &req); err != nil {
		return nil, nil, err
	}
	if h.Tools == nil {
		return nil, nil, abi.ErrDenied
	}
	run, ok := h.Tools[req.Tool]
	if !ok {
		return nil, nil, abi.ErrNotFound
	}
	r, err := run(ctx, body)
	if err != nil {
		r = abi.Errorf("%s", err)
	}
	data, err := json.Marshal(r)
	return map[string]any{"is_error": r.IsError}, data, err
}
