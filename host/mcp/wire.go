package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
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

// message is what a client sent, taken apart as far as it decides who handles it.
type message struct {
	id     json.RawMessage // nil: nothing is to be answered
	method string          // "": it is an answer
	params json.RawMessage // nil: none
}

// readMessage refuses what two readers could read in two ways, and what costs
// more to read than it is long.
func readMessage(b []byte) (m message, err error) {
	b = bytes.TrimLeft(b, " \t\r\n")
	if len(b) == 0 || b[0] == '[' {
		return m, errBatch
	}
	if err := checkNesting(b); err != nil {
		return m, err
	}
	if !json.Valid(b) {
		return m, errors.New("it is not JSON")
	}
	if b[0] != '{' {
		return m, errors.New("a message is an object")
	}
	answer := false
	err = checked(b, func(key string, value json.RawMessage) error {
		switch key {
		case "result", "error":
			answer = true
		case "id":
			if value[0] == '{' || value[0] == '[' || value[0] == 't' || value[0] == 'f' {
				return errors.New("an id is a string or a number")
			}
			if value[0] != 'n' {
				m.id = value
			}
		case "method":
			if value[0] != '"' {
				return errors.New("a method is a string")
			}
			m.method, _ = unquote(value)
		case "params":
			m.params = value
		}
		return nil
	})
	if err == nil && m.method == "" && m.id == nil && !answer {
		return m, errors.New("a message has a method, or answers one")
	}
	if err != nil || len(m.params) == 0 || m.params[0] != '{' {
		return m, err
	}
	return m, checked(m.params, func(string, json.RawMessage) error { return nil })
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

// checked is each, for an object in which no key comes twice, and none is
// another spelling of a member.
func checked(obj []byte, f func(key string, value json.RawMessage) error) error {
	var few [16]string // most objects have no more: no map is made for them
	keys := few[:0]
	var many map[string]bool
	return each(obj, func(key string, value json.RawMessage) error {
		if many[key] || many == nil && slices.Contains(keys, key) {
			return fmt.Errorf("the key %q comes twice", key)
		}
		switch {
		case many != nil:
			many[key] = true
		case len(keys) < len(few):
			keys = append(keys, key)
		default:
			many = map[string]bool{key: true}
			for _, k := range keys {
				many[k] = true
			}
		}
		if !slices.Contains(members, key) && slices.ContainsFunc(members, func(m string) bool { return strings.EqualFold(m, key) }) {
			return fmt.Errorf("the key %q is not spelled as the protocol has it", key)
		}
		return f(key, value)
	})
}

// each calls f with the members of an object, which has to be valid JSON, in
// their order, until f fails.
func each(obj []byte, f func(key string, value json.RawMessage) error) error {
	i := 1
	for {
		for obj[i] != '"' {
			if obj[i] == '}' {
				return nil
			}
			i++
		}
		end := stringEnd(obj, i)
		key, err := unquote(obj[i:end])
		if err != nil {
			return err
		}
		for i = end; obj[i] != ':'; i++ {
		}
		for i++; obj[i] == ' ' || obj[i] == '\t' || obj[i] == '\n' || obj[i] == '\r'; i++ {
		}
		end = valueEnd(obj, i)
		if err := f(key, obj[i:end:end]); err != nil {
			return err
		}
		i = end
	}
}

func unquote(s []byte) (string, error) {
	if bytes.IndexByte(s, '\\') < 0 && utf8.Valid(s) {
		return string(s[1 : len(s)-1]), nil
	}
	var out string
	err := json.Unmarshal(s, &out)
	return out, err
}

// stringEnd is the index behind the string that begins at i.
func stringEnd(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// valueEnd is the index behind the value that begins at i.
func valueEnd(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = stringEnd(b, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}
