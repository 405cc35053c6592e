package schema

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// types is a set of JSON types.
type types uint8

const (
	tNull types = 1 << iota
	tBool
	tInteger
	tFraction
	tString
	tArray
	tObject
	tAny types = 1<<iota - 1
)

var typeNames = map[string]types{
	"null": tNull, "boolean": tBool, "integer": tInteger, "number": tInteger | tFraction,
	"string": tString, "array": tArray, "object": tObject,
}

// node is a subschema with its references resolved: what coercion walks.
type node struct {
	at       string  // JSON pointer
	types    types   // what it accepts, everything that applies in place met
	same     []*node // apply to the same value, all of them
	either   [][]*node
	others   []*node // apply in place but say nothing certain: not, if, then, else, …
	props    map[string]*node
	patterns []pattern
	rest     *node // additionalProperties
	closed   bool  // additionalProperties: false
	prefix   []*node
	items    *node
	required []string

	cost  int
	state int8 // of the walk that finds cost and types: 0 new, 1 open, 2 done
}

type pattern struct {
	re   *regexp.Regexp
	node *node
}

// settle finds what a node costs and accepts with everything that applies in
// place. A schema that applies to itself is an error: no value could end it.
func (n *node) settle() error {
	switch n.state {
	case 1:
		return fmt.Errorf("the schema at %q applies to itself without end", "#"+n.at)
	case 2:
		return nil
	}
	n.state = 1
	n.cost = 1
	add := func(c *node) error {
		if err := c.settle(); err != nil {
			return err
		}
		if n.cost += c.cost; n.cost > MaxExpansion {
			return fmt.Errorf("the schema at %q expands to more than %d subschemas", "#"+n.at, MaxExpansion)
		}
		return nil
	}
	for _, c := range n.same {
		if err := add(c); err != nil {
			return err
		}
		n.types &= c.types
	}
	for _, alt := range n.either {
		var union types
		for _, c := range alt {
			if err := add(c); err != nil {
				return err
			}
			union |= c.types
		}
		n.types &= union
	}
	for _, c := range n.others {
		if err := add(c); err != nil {
			return err
		}
	}
	n.state = 2
	return nil
}

func typeOf(v any) types {
	switch v := v.(type) {
	case nil:
		return tNull
	case bool:
		return tBool
	case string:
		return tString
	case []any:
		return tArray
	case map[string]any:
		return tObject
	case json.Number:
		if _, whole := integer(string(v)); whole {
			return tInteger
		}
	}
	return tFraction
}
