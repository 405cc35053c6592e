package sandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/elfhost/elfhost/abi"
)

// Link is a module that the modules of a Format import functions of, by its
// name. It goes through the same stages, and has a sandbox of its own: its
// memory is not the caller's. In one call of a tool it is one instance, under
// the budget, the rights and the state of that call.
type Link struct {
	Name    string
	Package Package // with a Format of its own; its tools and needs do not count
}

// links are the linked modules of a package, each a plugin without tools.
func (p *Plugin) links() map[string]*Plugin {
	if p.pkg.Format == nil || len(p.pkg.Format.Links) == 0 {
		return nil
	}
	out := map[string]*Plugin{}
	for _, k := range p.pkg.Format.Links {
		l := p.loader.plugin(k.Package, p.limits, p.needs)
		l.ops = p.ops
		out[k.Name] = l
	}
	return out
}

// Linked calls a function of a linked module for the guest. A failure spends
// the call, as one of the guest itself does.
func (g *Guest) Linked(ctx context.Context, module, export string, params ...uint64) ([]uint64, error) {
	c, here := g.call, g.mod
	if c.tape != nil {
		return nil, fmt.Errorf("calls of linked modules are neither recorded nor replayed: %w", abi.ErrUnsupported)
	}
	in, err := c.link(ctx, module)
	if err != nil {
		return nil, fmt.Errorf("the module %q: %w", module, err)
	}
	f := in.mod.ExportedFunction(export)
	if f == nil {
		return nil, fmt.Errorf("the module %q has no function %q", module, export)
	}
	res, err := f.Call(ctx, params...)
	g.mod = here // its host functions spoke for the other module
	if err != nil {
		c.broken = true
		return nil, guestError(ctx, err)
	}
	return res, nil
}

// link is the call's instance of a linked module.
func (c *call) link(ctx context.Context, module string) (*instance, error) {
	if in := c.linked[module]; in != nil {
		return in, nil
	}
	p := c.plugin.linked[module]
	if p == nil {
		return nil, errors.New("it is not linked")
	}
	prog, err := p.program(ctx, nil)
	if err != nil {
		return nil, err
	}
	state := c.foreign
	in, err := prog.get(ctx, c)
	c.foreign = state // a plain instance was initialised, and dropped its own
	if err != nil {
		return nil, err
	}
	if c.linked == nil {
		c.linked = map[string]*instance{}
	}
	c.linked[module] = in
	return in, nil
}

// unlink gives the instances of linked modules back.
func (c *call) unlink(ctx context.Context, failed bool) {
	for _, in := range c.linked {
		in.used(c)
		in.program.put(ctx, c, in, failed || c.broken)
	}
	c.linked = nil
}
