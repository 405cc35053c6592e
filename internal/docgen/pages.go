package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
)

const made = "<!-- Made from the code by `make docs`. -->\n"

// tools lists every tool of both dialects, with its schema as a table and one
// example that is run while the page is made.
func tools(ctx context.Context) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(made + "# Tools\n\nEach is called through the same door: the agent's loop, `elfhost call`, and plugins with `tool.call`. *Free* tools are never asked about; the rest ask, unless a rule or the mode allows them.\n")
	seen := map[string]bool{}
	for _, d := range []struct{ name, title string }{
		{"tinyelf", "The default dialect"}, {"acp", "The acp dialect (`--dialect acp`)"},
	} {
		fmt.Fprintf(&b, "\n## %s\n", d.title)
		if err := dialect(ctx, &b, d.name, seen); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

func dialect(ctx context.Context, b *bytes.Buffer, name string, seen map[string]bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := newStage(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	if err := s.perform(ctx, seen); err != nil {
		return err
	}
	var also []string
	for _, t := range s.Registry.All() {
		if t.Spec().Defer { // another name of a tool
			continue
		}
		spec := t.Spec()
		if seen[spec.Name] {
			also = append(also, "`"+spec.Name+"`")
			continue
		}
		seen[spec.Name] = true
		if err := s.page(b, spec); err != nil {
			return fmt.Errorf("%s: %w", spec.Name, err)
		}
	}
	if len(also) > 0 {
		fmt.Fprintf(b, "\nAs in the default dialect: %s.\n", strings.Join(also, ", "))
	}
	return nil
}

// schemaDoc is the part of a schema that a table shows.
type schemaDoc struct {
	Properties map[string]struct {
		Type        any    `json:"type"`
		Description string `json:"description"`
		Enum        []any  `json:"enum"`
	} `json:"properties"`
	Required []string `json:"required"`
}

func (st *stage) page(b *bytes.Buffer, s host.Spec) error {
	asks := "asks"
	if s.Safe() {
		asks = "free"
	}
	origin := string(s.Origin.Source)
	if s.Origin.Name != "" {
		origin += " plugin " + s.Origin.Name
	}
	fmt.Fprintf(b, "\n### %s\n\n*%s, %s.* %s\n", s.Name, origin, asks, strings.TrimSpace(s.Description))
	if err := parameters(b, s.Input); err != nil {
		return err
	}
	e, ok := st.said[s.Name]
	if !ok {
		return errors.New("it has no example: add one to examples.go")
	}
	fmt.Fprintf(b, "\n```console\n$ elfhost call %s '%s'\n%s\n```\n", s.Name, e.args, strings.TrimRight(e.text, "\n"))
	return nil
}

func parameters(b *bytes.Buffer, input json.RawMessage) error {
	var sc schemaDoc
	if err := json.Unmarshal(input, &sc); err != nil {
		return err
	}
	names, err := order(input)
	if err != nil || len(names) == 0 {
		return err
	}
	b.WriteString("\n| parameter | type | |\n|---|---|---|\n")
	for _, n := range names {
		p := sc.Properties[n]
		need := ""
		for _, r := range sc.Required {
			if r == n {
				need = "**required.** "
			}
		}
		typ := fmt.Sprint(p.Type)
		if list, ok := p.Type.([]any); ok {
			typ = strings.Trim(fmt.Sprint(list), "[]")
		}
		if p.Type == nil {
			typ = "any"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s%s |\n", n, typ, need, strings.ReplaceAll(strings.ReplaceAll(p.Description, "\n", " "), "|", `\|`))
	}
	return nil
}

// order is the properties' own order in the schema's text.
func order(input json.RawMessage) ([]string, error) {
	var top struct {
		Properties json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(input, &top); err != nil || top.Properties == nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(top.Properties))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	var out []string
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			return nil, err
		}
		out = append(out, fmt.Sprint(k))
	}
	return out, nil
}

func errorCodes(context.Context) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(made + "# Error codes\n\n`elfhost explain CODE` prints the same, offline. The exit status is part of the command line's contract.\n\n| code | exit | | what it means and what to do |\n|---|---|---|---|\n")
	for _, c := range fault.Codes() {
		fmt.Fprintf(&b, "| %s | %d | %s | %s |\n", c.ID, c.Exit, c.Title, strings.ReplaceAll(c.Explain, "|", `\|`))
	}
	return b.Bytes(), nil
}

func configKeys(context.Context) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(made + "# Configuration\n\n`config.toml` in the user's configuration folder, and `.elfhost/config.toml` in a project, which counts for less: keys marked *user* are read from the user's file alone, keys marked *trust* from a project only once a person trusts the folder, keys marked *narrow* before that only where they allow less. `elfhost config explain KEY` says which file and line won.\n\n| key | type | default | | |\n|---|---|---|---|---|\n")
	for _, k := range config.Keys() {
		who := ""
		switch {
		case k.User:
			who = "user"
		case k.Trust:
			who = "trust"
		case k.Narrow:
			who = "narrow"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", k.Name, k.Type, k.Default, who, strings.ReplaceAll(k.Doc, "|", `\|`))
	}
	b.WriteString("\n## Policies\n\n`policy.toml` of the system, of the user, of a project, and the file that `ELFHOST_POLICY` names: each narrows the others, and a denial of any wins ([SECURITY.md](../SECURITY.md)). Keys marked *system* count in the system's alone, keys marked *user* in the system's and the user's. `elfhost policy check FILE` says what is wrong with one.\n\n| key | type | default | | |\n|---|---|---|---|---|\n")
	for _, k := range config.PolicyKeys() {
		who := ""
		switch {
		case k.System:
			who = "system"
		case k.User:
			who = "user"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", k.Name, k.Type, k.Default, who, strings.ReplaceAll(k.Doc, "|", `\|`))
	}
	return b.Bytes(), nil
}
