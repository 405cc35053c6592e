package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

type keyHeader struct {
	Key string `json:"key"`
}

func (c *call) kv(key string) (*reach.KV, error) {
	if c.plugin.loader.KV == nil {
		return nil, fmt.Errorf("this host keeps no values for plugins: %w", abi.ErrUnsupported)
	}
	return c.plugin.loader.KV, checkKey(key)
}

func opKVGet(ctx context.Context, c *call, h keyHeader, _ []byte) (any, []byte, error) {
	kv, err := c.kv(h.Key)
	if err != nil {
		return nil, nil, err
	}
	v, err := kv.Get(ctx, c.rights, c.plugin.id(), h.Key)
	if err != nil {
		return nil, nil, err
	}
	return struct{}{}, v, nil
}

func opKVSet(ctx context.Context, c *call, h keyHeader, body []byte) (any, []byte, error) {
	kv, err := c.kv(h.Key)
	if err == nil {
		err = kv.Set(ctx, c.rights, c.plugin.id(), h.Key, body)
	}
	return nil, nil, err
}

func opKVDelete(ctx context.Context, c *call, h keyHeader, _ []byte) (any, []byte, error) {
	kv, err := c.kv(h.Key)
	if err == nil {
		_, err = kv.Get(ctx, c.rights, c.plugin.id(), h.Key) // a missing key is an error of elf/1
	}
	if err == nil {
		err = kv.Delete(ctx, c.rights, c.plugin.id(), h.Key)
	}
	return nil, nil, err
}

type kvListHeader struct {
	Prefix string `json:"prefix"`
	After  string `json:"after"`
	Limit  int    `json:"limit"`
}

type kvListReply struct {
	Keys []string `json:"keys"`
	More bool     `json:"more,omitempty"`
}

func opKVList(ctx context.Context, c *call, h kvListHeader, _ []byte) (any, []byte, error) {
	kv, err := c.kv("-")
	if err != nil {
		return nil, nil, err
	}
	if h.Limit < 0 {
		return nil, nil, invalid("limit is not below zero")
	}
	keys, err := kv.Keys(ctx, c.rights, c.plugin.id(), h.Prefix)
	if err != nil {
		return nil, nil, err
	}
	limit := 1000
	if h.Limit > 0 {
		limit = min(limit, h.Limit)
	}
	r := kvListReply{Keys: []string{}}
	for _, k := range keys {
		if h.After != "" && k <= h.After {
			continue
		}
		if r.More = len(r.Keys) == limit; r.More {
			break
		}
		r.Keys = append(r.Keys, k)
	}
	return r, nil, nil
}

type execHeader struct {
	Argv      []string `json:"argv"`
	Dir       string   `json:"dir"`
	TimeoutMS int64    `json:"timeout_ms"`
}

type execReply struct {
	ExitCode  int    `json:"exit_code"`
	Signal    string `json:"signal,omitempty"`
	Stdout    int    `json:"stdout"`
	Stderr    int    `json:"stderr"`
	Truncated bool   `json:"truncated,omitempty"`
	TimedOut  bool   `json:"timed_out,omitempty"`
}

// opExec runs a program where the kernel can hold it, and nowhere else: a
// plugin's program must not reach what the plugin cannot.
func opExec(ctx context.Context, c *call, h execHeader, body []byte) (any, []byte, error) {
	l := c.plugin.loader
	if l.Runner == nil || l.Runner.Sandbox.Kind == "" {
		return nil, nil, fmt.Errorf("programs of plugins need a kernel sandbox, and none works on this machine: %w", abi.ErrUnsupported)
	}
	if len(h.Argv) == 0 || h.Argv[0] == "" || h.TimeoutMS < 0 {
		return nil, nil, invalid("argv names a program, and timeout_ms is not below zero")
	}
	p := reach.Program{Argv: h.Argv, Timeout: time.Duration(h.TimeoutMS) * time.Millisecond}
	if l.Tree != nil {
		if tree := l.Tree(c.from.Caller); tree != nil {
			dir := h.Dir
			if dir == "" {
				dir = "/ws"
			}
			var err error
			if p.Dir, err = tree.Host(dir); err != nil {
				return nil, nil, fmt.Errorf("the folder %q: %w", dir, abi.ErrNotFound)
			}
			p.ReadOnly = !c.rights.Grants.Below(abi.FSWrite, dir)
		}
	}
	if len(body) > 0 {
		p.Stdin = bytes.NewReader(body)
	}
	x, err := l.Runner.Run(ctx, c.rights, p)
	if err != nil {
		return nil, nil, err
	}
	return execReply{ExitCode: x.Code, Signal: x.Signal, Stdout: len(x.Output), Truncated: x.Truncated, TimedOut: x.TimedOut}, x.Output, nil
}

// opTool calls another tool, with rights that both have. A tool of a plugin
// that is already waiting in the chain of calls is refused: it would be entered
// again from a function it called, and a chain could go on for ever.
func opTool(ctx context.Context, c *call, h toolHeader, body []byte) (any, []byte, error) {
	l := c.plugin.loader
	if l.Invoke == nil {
		return nil, nil, fmt.Errorf("this host calls no tools for plugins: %w", abi.ErrUnsupported)
	}
	if err := c.rights.Check(ctx, policy.Use{Cap: abi.ToolCall, Target: h.Tool}); err != nil {
		return nil, nil, err
	}
	if len(body) > 0 && !json.Valid(body) {
		return nil, nil, invalid("the arguments are not JSON")
	}
	caller := c.from.Caller
	caller.Plugin = c.plugin.pkg.Manifest.Name
	caller.Depth++
	n := host.Call{ID: fmt.Sprintf("%s/%d", c.from.ID, c.hostCalls), Tool: h.Tool, Args: body, Caller: caller,
		Rights: c.rights, Progress: c.from.Progress}
	c.leave() // a call that waits for another must not keep the other one waiting
	res := l.Invoke(ctx, n)
	if err := c.enter(ctx); err != nil {
		return nil, nil, err
	}
	if c.reentered {
		c.reentered = false
		return nil, nil, fmt.Errorf("the tool %q belongs to a plugin that is already in this chain of calls: %w", h.Tool, abi.ErrReentrant)
	}
	out, err := json.Marshal(res)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the result of %q: %w", h.Tool, abi.ErrInternal)
	}
	if int64(len(out)) > maxFrame {
		return nil, nil, fmt.Errorf("the result of %q has %d bytes: %w", h.Tool, len(out), abi.ErrTooLarge)
	}
	return toolReply{IsError: res.IsError}, out, nil
}
