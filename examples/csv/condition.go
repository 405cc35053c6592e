package main

import (
	"regexp"
	"strings"

	"github.com/elfhost/elfhost/pdk"
)

type condition struct {
	Column string `json:"column"`
	Op     string `json:"op" desc:"eq and ne compare text or numbers, lt to ge numbers where both are; contains ignores case; matches takes a regular expression (RE2)." enum:"eq,ne,lt,le,gt,ge,contains,matches,empty,filled"`
	Value  string `json:"value,omitempty" desc:"What the cell is compared with."`
}

// filter is a function that says whether a row is kept.
func filter(t *table, conds []condition) (func([]string) bool, error) {
	var all []func([]string) bool
	for _, c := range conds {
		at, err := t.columns([]string{c.Column})
		if err != nil {
			return nil, err
		}
		test, err := c.test()
		if err != nil {
			return nil, err
		}
		all = append(all, func(row []string) bool { return test(row[at[0]]) })
	}
	return func(row []string) bool {
		for _, f := range all {
			if !f(row) {
				return false
			}
		}
		return true
	}, nil
}

func (c condition) test() (func(string) bool, error) {
	order := func(ok func(int) bool) func(string) bool {
		return func(cell string) bool { return cell != "" && ok(compare(cell, c.Value)) }
	}
	switch c.Op {
	case "eq":
		return func(cell string) bool { return compare(cell, c.Value) == 0 }, nil
	case "ne":
		return func(cell string) bool { return compare(cell, c.Value) != 0 }, nil
	case "lt":
		return order(func(n int) bool { return n < 0 }), nil
	case "le":
		return order(func(n int) bool { return n <= 0 }), nil
	case "gt":
		return order(func(n int) bool { return n > 0 }), nil
	case "ge":
		return order(func(n int) bool { return n >= 0 }), nil
	case "contains":
		part := strings.ToLower(c.Value)
		return func(cell string) bool { return strings.Contains(strings.ToLower(cell), part) }, nil
	case "matches":
		re, err := regexp.Compile(c.Value)
		if err != nil {
			return nil, pdk.Failf("%q is not a regular expression: %v.", c.Value, err)
		}
		return re.MatchString, nil
	case "empty":
		return func(cell string) bool { return strings.TrimSpace(cell) == "" }, nil
	}
	return func(cell string) bool { return strings.TrimSpace(cell) != "" }, nil
}
