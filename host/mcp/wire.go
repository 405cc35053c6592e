package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bounds of what a client may send.
const (
	maxMessage = 8 << 20 // bytes
	maxNesting = 64
)

var (
	errBatch   = errors.New("batches are not taken: send one message")
	errNesting = fmt.Errorf("a message nests at most %d deep", maxNesting)
)

// names of members that decide what a message does. encoding/json takes any
// spelling of them, other readers do not: one spelling is taken here.
var members = []string{"jsonrpc", "id", "method", "params", "result", "error", "name", "arguments", "uri", "cursor", "_meta"}

// checkMessage refuses what two readers could read in two ways, and what costs
// more to read than it is long. It looks at every byte once.
func checkMessage(b []byte) error {
	b = bytes.TrimLeft(b, " \t\r\n")
	if len(b) == 0 || b[0] == '[' {
		return errBatch
	}
	if err := checkNesting(b); err != nil {
		return err
	}
	if !json.Valid(b) {
		return errors.New("it is not JSON")
	}
	if b[0] != '{' {
		return errors.New("a message is an object")
	}
	params, err := checkKeys(b)
	if err != nil || len(params) == 0 || params[0] != '{' {
		return err
	}
	_, err = checkKeys(params)
	return err
}

func checkNesting(b []byte) error {
	depth, inside := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case inside:
		case c == '{' || c == '[':
			if depth++; depth > maxNesting {
				return errNesting
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// checkKeys looks at the keys of one object, and finds its params.
func checkKeys(obj []byte) (params json.RawMessage, err error) {
	d := json.NewDecoder(bytes.NewReader(obj))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, _ := t.(string)
		if seen[key] {
			return nil, fmt.Errorf("the key %q comes twice", key)
		}
		seen[key] = true
		if !slices.Contains(members, key) && slices.ContainsFunc(members, func(m string) bool { return strings.EqualFold(m, key) }) {
			return nil, fmt.Errorf("the key %q is not spelled as the protocol has it", key)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		switch {
		case key == "params":
			params = value
		case key == "id" && (value[0] == '{' || value[0] == '[' || value[0] == 't' || value[0] == 'f'):
			return nil, errors.New("an id is a string or a number")
		}
	}
	return params, nil
}
