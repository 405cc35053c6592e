package wasicmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/elfhost/elfhost/abi"
)

// values are the parameters of a call.
type values map[string]json.RawMessage

// has reports whether a parameter is there and says yes.
func (v values) has(name string) bool {
	s := string(v[name])
	return s != "" && s != "null" && s != "false"
}

// text is a parameter as a program reads it.
func (v values) text(name string) (string, error) {
	raw := v[name]
	var s string
	if len(raw) > 0 && raw[0] == '"' {
		if err := json.Unmarshal(raw, &s); err != nil {
			return "", fmt.Errorf("the parameter %q: %w", name, err)
		}
	} else {
		s = string(raw)
	}
	return s, nil
}

// group expands arguments that belong together; false: they are left out.
func (v values) group(items []string) (out []string, present bool, err error) {
	for _, item := range items {
		name, ok := alone(item)
		switch {
		case ok && strings.HasPrefix(name, "?"):
			if !v.has(name[1:]) {
				return nil, false, nil
			}
			continue
		case ok && strings.HasSuffix(name, "..."):
			if name = strings.TrimSuffix(name, "..."); !v.has(name) {
				return nil, false, nil
			}
			list, err := v.list(name)
			if err != nil {
				return nil, false, err
			}
			out = append(out, list...)
			continue
		}
		s, present, err := v.fill(item)
		if err != nil || !present {
			return nil, false, err
		}
		if strings.IndexByte(s, 0) >= 0 {
			return nil, false, fmt.Errorf("an argument of a program cannot hold a NUL: %w", abi.ErrInvalid)
		}
		out = append(out, s)
	}
	return out, true, nil
}

func (v values) list(name string) ([]string, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(v[name], &items); err != nil {
		return nil, fmt.Errorf("the parameter %q is no array: %w", name, abi.ErrInvalid)
	}
	var out []string
	for _, it := range items {
		s, err := values{"": it}.text("")
		if err != nil {
			return nil, err
		}
		if strings.IndexByte(s, 0) >= 0 {
			return nil, fmt.Errorf("an argument of a program cannot hold a NUL: %w", abi.ErrInvalid)
		}
		out = append(out, s)
	}
	return out, nil
}

// alone is the name in a text that is one placeholder and nothing else.
func alone(s string) (string, bool) {
	in, ok := strings.CutPrefix(s, "{")
	in, ok2 := strings.CutSuffix(in, "}")
	return in, ok && ok2 && in != "" && !strings.ContainsAny(in, "{}")
}

// fill replaces the placeholders of a text; false: one of them is absent.
func (v values) fill(s string) (string, bool, error) {
	var b strings.Builder
	present := true
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		if strings.HasPrefix(s[i+1:], s[i:i+1]) { // doubled
			b.WriteByte(s[i])
			s = s[i+2:]
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if s[i] == '}' || end < 2 {
			return "", false, errors.New("a brace of the manifest is not closed; a brace itself is written twice")
		}
		name := s[i+1 : i+end]
		if !v.has(name) && string(v[name]) != "false" {
			present = false
		}
		text, err := v.text(name)
		if err != nil {
			return "", false, err
		}
		b.WriteString(text)
		s = s[i+end+1:]
	}
	return b.String(), present, nil
}

// Names lists the parameters that a program's texts use, for checks of a
// manifest. The error is for a text that cannot be read.
func Names(p abi.Program) ([]string, error) {
	seen := map[string]bool{}
	var out []string
	note := func(s string) error {
		if name, ok := alone(s); ok {
			s = "{" + strings.TrimSuffix(strings.TrimPrefix(name, "?"), "...") + "}"
		}
		_, _, err := values{}.fill(s)
		for rest := strings.ReplaceAll(strings.ReplaceAll(s, "{{", ""), "}}", ""); err == nil; {
			_, after, ok := strings.Cut(rest, "{")
			if !ok {
				break
			}
			name, tail, _ := strings.Cut(after, "}")
			if !seen[name] {
				seen[name] = true
				out = append(out, name)
			}
			rest = tail
		}
		return err
	}
	for _, g := range p.Args {
		for _, s := range g {
			if err := note(s); err != nil {
				return nil, fmt.Errorf("the argument %q: %w", s, err)
			}
		}
	}
	if err := note(p.Stdin); err != nil {
		return nil, fmt.Errorf("stdin: %w", err)
	}
	for name, s := range p.Files {
		if !strings.HasPrefix(name, "/") {
			return nil, fmt.Errorf("the file %q has no absolute name", name)
		}
		if err := note(s); err != nil {
			return nil, fmt.Errorf("the file %q: %w", name, err)
		}
	}
	return out, nil
}
