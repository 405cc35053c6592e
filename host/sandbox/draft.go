package sandbox

import (
	"context"

	"github.com/elfhost/elfhost/host/sandbox/compile"
)

// draft is what a plugin whose package is a Draft has beside its program.
type draft struct {
	over context.Context // done: the machine code is not wanted any more
	stop context.CancelFunc
	was  *program // the one that was interpreted; calls may still be in it
}

// interpret makes a program without machine code. It is vetted, metered and
// limited as every other; a snapshot is taken in the same interpreter.
func (p *Plugin) interpret(ctx context.Context, a *artifact) (*program, error) {
	g := &program{plugin: p, rest: a}
	if err := g.load(ctx, compile.Interpreted(a.whole), a.whole, a.img); err != nil {
		return nil, err
	}
	return g, nil
}

// complete puts machine code in the place of what is interpreted. Where none
// can be made, calls stay slow, and the log says why.
func (p *Plugin) complete(g *program) {
	defer p.calls.Done()
	next, err := p.finish(p.draft.over, g.rest)
	if err != nil {
		if p.draft.over.Err() == nil {
			p.warn("it stays interpreted: " + err.Error())
		}
		return
	}
	p.mu.Lock()
	p.ready, p.draft.was = next, g
	p.mu.Unlock()
}

func (d *draft) close(ctx context.Context) error {
	if d.was == nil {
		return nil
	}
	return d.was.close(ctx)
}
