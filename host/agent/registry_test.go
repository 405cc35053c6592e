package agent

import (
	"context"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
)

type tools map[string]host.Tool

func registry(list ...host.Tool) tools {
	r := tools{}
	for _, t := range list {
		r[t.Spec().Name] = t
	}
	return r
}

func (r tools) All() []host.Tool {
	var out []host.Tool
	for _, t := range r {
		out = append(out, t)
	}
	return out
}

func (r tools) Get(name string) (host.Tool, bool) { t, ok := r[name]; return t, ok }

func (r tools) Invoke(ctx context.Context, c host.Call) abi.Result {
	t, ok := r[c.Tool]
	if !ok {
		return abi.Errorf("There is no tool named %q.", c.Tool)
	}
	res, err := t.Call(ctx, c)
	if err != nil {
		return abi.Errorf("%v", err)
	}
	return res
}
