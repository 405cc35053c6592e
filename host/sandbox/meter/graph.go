package meter

import (
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// graph is the call graph: nodes are the functions (imports first) and one
// node for each distinct type of indirect call, which leads to every function
// of that type whose address is taken.
type graph struct {
	edges [][]uint32
	// order lists the defined functions so that callees come before callers,
	// members of a recursion excepted.
	order     []uint32
	recursive []bool
	taken     []bool   // functions whose address is taken
	canon     []uint32 // the kind of each type: equal ones share a number
}

// callGraph reads every body once.
func (w *rewriter) callGraph(bodies []wasmbin.Body) (*graph, error) {
	n := len(w.funcs)
	canon, kinds := w.canonicalTypes()
	taken := make([]bool, n)
	g := &graph{edges: make([][]uint32, n+kinds), recursive: make([]bool, n), taken: taken, canon: canon}
	if err := w.addressTaken(taken); err != nil {
		return nil, err
	}
	for i, b := range bodies {
		node := int(w.imported) + i
		s := b.Scan()
		for s.Next() {
			switch s.In.Op {
			case wasmbin.OpCall:
				if s.In.X >= w.imported {
					g.edges[node] = append(g.edges[node], s.In.X)
				}
			case wasmbin.OpCallIndirect:
				g.edges[node] = append(g.edges[node], uint32(n)+canon[s.In.X])
			case wasmbin.OpRefFunc:
				taken[s.In.X] = true
			}
		}
		if err := s.Err(); err != nil {
			return nil, err
		}
	}
	for f := int(w.imported); f < n; f++ {
		if taken[f] {
			k := n + int(canon[w.funcs[f]])
			g.edges[k] = append(g.edges[k], uint32(f))
		}
	}
	g.components(w.imported, uint32(n))
	return g, nil
}

// canonicalTypes numbers the types so that equal ones share a number.
func (w *rewriter) canonicalTypes() (canon []uint32, n int) {
	seen := map[string]uint32{}
	for _, t := range w.types {
		key := string(t.Params) + ">" + string(t.Results)
		id, ok := seen[key]
		if !ok {
			id = uint32(len(seen))
			seen[key] = id
		}
		canon = append(canon, id)
	}
	return canon, len(seen)
}

// addressTaken marks the functions that element segments, globals or exports
// let others call through a table.
func (w *rewriter) addressTaken(taken []bool) error {
	mark := func(expr []byte) {
		if k, ok := wasmbin.EvalConst(expr); ok && k.Op == wasmbin.OpRefFunc {
			taken[k.Index] = true
		}
	}
	for e, err := range w.in.Elements() {
		if err != nil {
			return err
		}
		for f, x := range e.Items() {
			if e.Exprs() {
				mark(x)
			} else {
				taken[f] = true
			}
		}
	}
	for g, err := range w.in.Globals() {
		if err != nil {
			return err
		}
		mark(g.Init)
	}
	// Whoever links with the module, or imports what it exports, may put an
	// exported function into a table that the module calls through.
	for e, err := range w.in.Exports() {
		if err != nil {
			return err
		}
		if e.Kind == wasmbin.Function {
			taken[e.Index] = true
		}
	}
	return nil
}

// components finds the strongly connected components (Tarjan's algorithm, with
// an explicit stack: the graph may be deeper than the host's stack).
func (g *graph) components(first, n uint32) {
	const unseen = 0
	var (
		index   = make([]uint32, len(g.edges)) // 1-based order of discovery
		low     = make([]uint32, len(g.edges))
		onStack = make([]bool, len(g.edges))
		stack   []uint32
		next    uint32
	)
	type visit struct {
		node uint32
		edge int
	}
	var work []visit
	for root := first; root < n; root++ {
		if index[root] != unseen {
			continue
		}
		work = append(work[:0], visit{node: root})
		for len(work) > 0 {
			v := &work[len(work)-1]
			u := v.node
			if v.edge == 0 && index[u] == unseen {
				next++
				index[u], low[u] = next, next
				stack, onStack[u] = append(stack, u), true
			}
			if v.edge < len(g.edges[u]) {
				to := g.edges[u][v.edge]
				v.edge++
				if index[to] == unseen {
					work = append(work, visit{node: to})
				} else if onStack[to] {
					low[u] = min(low[u], index[to])
				}
				continue
			}
			work = work[:len(work)-1]
			if len(work) > 0 {
				p := work[len(work)-1].node
				low[p] = min(low[p], low[u])
			}
			if low[u] == index[u] {
				stack = g.pop(stack, onStack, u, n)
			}
		}
	}
}

// pop takes the component of root off the stack.
func (g *graph) pop(stack []uint32, onStack []bool, root, n uint32) []uint32 {
	at := len(stack) - 1
	for stack[at] != root {
		at--
	}
	for _, u := range stack[at:] {
		onStack[u] = false
		if u >= n {
			continue
		}
		g.order = append(g.order, u)
		g.recursive[u] = len(stack)-at > 1
		if !g.recursive[u] {
			for _, to := range g.edges[u] {
				g.recursive[u] = g.recursive[u] || to == u
			}
		}
	}
	return stack[:at]
}
