package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxDepth bounds the nesting of JSON that a guest hands over. Other readers
// of the same bytes (schema validators, clients of MCP) recurse.
const maxDepth = 128

// checkJSON accepts what every reader reads in the same way: valid UTF-8, no
// key twice in an object, bounded depth, and numbers that a 64-bit float
// holds. It returns the keys of the outermost object.
func checkJSON(b []byte, depth int) (top []string, err error) {
	if !utf8.Valid(b) {
		return nil, errors.New("not valid UTF-8")
	}
	if !json.Valid(b) { // iterative, and bounded in depth by itself
		return nil, errors.New("not valid JSON")
	}
	s := jsonScan{b: b, depth: depth}
	if err := s.run(); err != nil {
		return nil, err
	}
	return s.top, nil
}

// jsonScan walks over text that is known to be valid JSON.
type jsonScan struct {
	b     []byte
	i     int
	depth int
	stack []level
	top   []string
}

// level is an open object or array. keys is nil for an array.
type level struct {
	keys   map[string]bool
	object bool
}

func (s *jsonScan) run() error {
	expectKey := false
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case '{', '[':
			if len(s.stack) >= s.depth {
				return fmt.Errorf("nested deeper than %d levels", s.depth)
			}
			s.stack = append(s.stack, level{object: c == '{'})
			expectKey = c == '{'
		case '}', ']':
			s.stack = s.stack[:len(s.stack)-1]
			expectKey = false
		case ',':
			expectKey = s.stack[len(s.stack)-1].object
		case '"':
			raw := s.str()
			if expectKey {
				if err := s.key(raw); err != nil {
					return err
				}
				expectKey = false
			}
			continue
		default:
			if c == '-' || c >= '0' && c <= '9' {
				if err := s.number(); err != nil {
					return err
				}
				continue
			}
		}
		s.i++
	}
	return nil
}

// str passes over a string and returns it with its quotes.
func (s *jsonScan) str() []byte {
	from := s.i
	for s.i++; s.b[s.i] != '"'; s.i++ {
		if s.b[s.i] == '\\' {
			s.i++
		}
	}
	s.i++
	return s.b[from:s.i]
}

func (s *jsonScan) key(raw []byte) error {
	var k string
	if err := json.Unmarshal(raw, &k); err != nil {
		return err
	}
	at := &s.stack[len(s.stack)-1]
	if at.keys[k] {
		return fmt.Errorf("the key %q is there twice", k)
	}
	if at.keys == nil {
		at.keys = map[string]bool{}
	}
	at.keys[k] = true
	if len(s.stack) == 1 {
		s.top = append(s.top, k)
	}
	return nil
}

func (s *jsonScan) number() error {
	from := s.i
	for s.i < len(s.b) && (s.b[s.i] >= '0' && s.b[s.i] <= '9' || s.b[s.i] == '-' || s.b[s.i] == '+' ||
		s.b[s.i] == '.' || s.b[s.i] == 'e' || s.b[s.i] == 'E') {
		s.i++
	}
	text := s.b[from:s.i]
	if len(text) <= 15 { // no exponent fits that leaves the range, but for e
		plain := true
		for _, c := range text {
			plain = plain && c != 'e' && c != 'E'
		}
		if plain {
			return nil
		}
	}
	if len(text) > 1024 {
		return fmt.Errorf("a number of %d digits", len(text))
	}
	if _, err := strconv.ParseFloat(string(text), 64); err != nil {
		return fmt.Errorf("the number %.40s is out of range", text)
	}
	return nil
}
