package frontmatter

import (
	"fmt"
	"strconv"
	"strings"
)

// Field is one key with its value: nil, a string, a []any of values, or Fields.
type Field struct {
	Key   string
	Value any
}

// Fields are the keys in the order of the file. The methods take a key in any
// of the spellings that are in use: allowed-tools, allowed_tools, allowedTools.
type Fields []Field

func fold(key string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(key))
}

// add keeps the first of keys that mean the same.
func (f *Fields) add(key string, v any) bool {
	if _, twice := f.Get(key); twice {
		return false
	}
	*f = append(*f, Field{key, v})
	return true
}

// Get gives a key's value.
func (f Fields) Get(key string) (any, bool) {
	key = fold(key)
	for _, x := range f {
		if fold(x.Key) == key {
			return x.Value, true
		}
	}
	return nil, false
}

// Text gives a value in words, "" when it is missing or empty.
func (f Fields) Text(key string) (string, error) {
	switch v, _ := f.Get(key); v := v.(type) {
	case nil:
		return "", nil
	case string:
		return strings.TrimSpace(v), nil
	case []any:
		var words []string
		for _, x := range v {
			s, ok := x.(string)
			if !ok {
				return "", fmt.Errorf("%s is no text", key)
			}
			words = append(words, strings.TrimSpace(s))
		}
		return strings.Join(words, ", "), nil
	}
	return "", fmt.Errorf("%s is no text", key)
}

// Bool reads the words for yes and no that YAML and its users know. Any other
// value is an error, never a silent no.
func (f Fields) Bool(key string) (value, set bool, err error) {
	v, ok := f.Get(key)
	if !ok || v == nil {
		return false, false, nil
	}
	s, _ := v.(string)
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "yes", "on", "y", "1":
		return true, true, nil
	case "false", "no", "off", "n", "0":
		return false, true, nil
	}
	return false, false, fmt.Errorf("%s is %.40q, which is neither yes nor no", key, fmt.Sprint(v))
}

// Int reads a whole number.
func (f Fields) Int(key string) (value int, set bool, err error) {
	v, ok := f.Get(key)
	if !ok || v == nil {
		return 0, false, nil
	}
	s, _ := v.(string)
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		return 0, false, fmt.Errorf("%s is %.40q, which is no whole number", key, fmt.Sprint(v))
	}
	return n, true, nil
}

// List reads a list: of YAML, or of words between commas.
func (f Fields) List(key string) ([]string, error) {
	switch v, _ := f.Get(key); v := v.(type) {
	case nil:
		return nil, nil
	case string:
		var out []string
		for part := range strings.SplitSeq(v, ",") {
			if part = unquote(part); part != "" {
				out = append(out, part)
			}
		}
		return out, nil
	case []any:
		var out []string
		for _, x := range v {
			s, ok := x.(string)
			if !ok {
				return nil, fmt.Errorf("%s holds something that is no text", key)
			}
			if s = strings.TrimSpace(s); s != "" {
				out = append(out, s)
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s is no list", key)
}
