package meter

import (
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// code rewrites every body, callees before callers, so that the cost of a
// trivial function is known where it is called.
func (w *rewriter) code() error {
	bodies := make([]wasmbin.Body, 0, w.stats.Functions)
	for b, err := range w.in.Bodies() {
		if err != nil {
			return err
		}
		if b, err = thread(b); err != nil {
			return err
		}
		bodies = append(bodies, b)
	}
	g, err := w.callGraph(bodies)
	if err != nil {
		return err
	}
	c := &costs{imported: w.imported, free: make([]int, len(w.funcs)), indirect: make([]int, len(w.types)), canon: g.canon}
	for f := range w.imported {
		if g.taken[f] {
			c.indirect[g.canon[w.funcs[f]]] = hostCall
		}
	}
	out := make([][]byte, len(bodies))
	for _, f := range g.order {
		i := f - w.imported
		p, err := survey(bodies[i], c)
		if err != nil {
			return err
		}
		e := emitter{rewriter: w, plan: p, typ: w.funcs[f], recursive: g.recursive[f]}
		e.free = !e.recursive && p.entry <= trivial && len(p.turns) == 0 && !p.looping() && p.bulk == 0
		if e.free {
			c.free[f] = p.entry
			w.stats.Free++
			if k := g.canon[w.funcs[f]]; g.taken[f] {
				c.indirect[k] = max(c.indirect[k], p.entry)
			}
		}
		if e.recursive {
			w.stats.Recursive++
		}
		if out[i], err = e.body(bodies[i]); err != nil {
			return err
		}
	}
	w.stats.CodeIn = w.in.Size(wasmbin.CodeSection)
	w.out.Set(wasmbin.CodeSection, uint32(len(out)), out...)
	w.stats.CodeOut = w.out.Size(wasmbin.CodeSection)
	return nil
}

func (p *plan) looping() bool {
	for _, l := range p.loops {
		if l.turns > 0 {
			return true
		}
	}
	return false
}
