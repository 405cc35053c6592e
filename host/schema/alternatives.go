package schema

import (
	"slices"
)

func (c *coercion) alternatives(n *node) []*node {
	alts := alternativesOf(n)
	c.left -= len(alts)
	return alts
}

// alternativesOf lists n and what applies in place, branches included. It is
// bounded by MaxExpansion.
func alternativesOf(n *node) []*node {
	if len(n.same) == 0 && len(n.either) == 0 {
		return []*node{n}
	}
	seen := map[*node]bool{n: true}
	out := []*node{n}
	add := func(list []*node) {
		for _, c := range list {
			if !seen[c] {
				seen[c] = true
				out = append(out, c)
			}
		}
	}
	for i := 0; i < len(out); i++ {
		add(out[i].same)
		for _, alt := range out[i].either {
			add(alt)
		}
	}
	return out
}

// union is one node for several schemas of the same value, of which any may
// be the one that counts. Nil: nothing is known about the value.
func union(nodes []*node) *node {
	switch len(nodes) {
	case 0:
		return nil
	case 1:
		return nodes[0]
	}
	u := &node{either: [][]*node{nodes}}
	for _, n := range nodes {
		u.types |= n.types
	}
	return u
}

// memberOf finds the schemas that say something about a key.
func memberOf(alts []*node, key string) *node {
	var found []*node
	for _, n := range alts {
		own := len(found)
		if p := n.props[key]; p != nil {
			found = append(found, p)
		}
		for _, p := range n.patterns {
			if p.re.MatchString(key) {
				found = append(found, p.node)
			}
		}
		if len(found) == own && n.rest != nil && !n.closed {
			found = append(found, n.rest)
		}
	}
	return union(found)
}

func itemOf(alts []*node, i int) *node {
	var found []*node
	for _, n := range alts {
		if i < len(n.prefix) {
			found = append(found, n.prefix[i])
		} else if n.items != nil {
			found = append(found, n.items)
		}
	}
	return union(found)
}

func requires(alts []*node, key string) bool {
	return slices.ContainsFunc(alts, func(n *node) bool { return slices.Contains(n.required, key) })
}
