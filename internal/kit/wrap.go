package kit

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/elfhost/elfhost/host/foreign"
	"github.com/elfhost/elfhost/internal/config/manifest"
)

// Program says how a WASI program becomes a tool. In Args, Stdin and Files,
// {name} is a parameter, {name...} one argument for each item of a list, and
// {?name} a switch. Words of one Args item that has several belong together and
// are left out when a parameter of theirs is absent.
type Program struct {
	Name, Description string
	Tool              string // "": the name
	Args              []string
	Stdin             string
	Files             map[string]string // path in the sandbox → text
	Read, Write       []string          // scopes of fs.read and fs.write
}

var placeholder = regexp.MustCompile(`\{(\??)([A-Za-z_][A-Za-z0-9_]*)(\.\.\.)?\}`)

// Wrap writes the elf.toml of a WASI program.
func Wrap(wasm []byte, p Program) (string, error) {
	format, _, err := foreign.Look(wasm)
	if err != nil {
		return "", err
	}
	if format != foreign.Program {
		is := "a module of elf/1, or none that elfhost runs"
		if format != "" {
			is = "a plugin of the format " + format
		}
		return "", fmt.Errorf("it is no WASI program (a module with _start that imports WASI preview 1 alone) but %s", is)
	}
	if p.Tool == "" {
		p.Tool = strings.ReplaceAll(p.Name, "-", "_")
	}
	text, err := p.toml()
	if err != nil {
		return "", err
	}
	if _, err := manifest.Read([]byte(text), "elf.toml"); err != nil {
		return "", err
	}
	return text, nil
}

func (p Program) toml() (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "abi = \"elf/1\"\nname = %s\nversion = \"0.1.0\"\ndescription = %s\n", quote(p.Name), quote(p.Description))
	for _, n := range []struct {
		cap, why string
		scope    []string
	}{{"fs.read", "reads the files that it is given", p.Read}, {"fs.write", "writes the files that it makes", p.Write}} {
		if len(n.scope) > 0 {
			fmt.Fprintf(&b, "\n[[needs]]\ncap = %s\nscope = [%s]\nreason = %s\n", quote(n.cap), quoted(n.scope), quote(n.why))
		}
	}
	fmt.Fprintf(&b, "\n[[tools]]\nname = %s\ndescription = %s\n", quote(p.Tool), quote(p.Description))
	var args []string
	for _, a := range p.Args {
		if words := strings.Fields(a); len(words) > 1 {
			args = append(args, "["+quoted(words)+"]")
		} else {
			args = append(args, quote(a))
		}
	}
	fmt.Fprintf(&b, "args = [%s]\n", strings.Join(args, ", "))
	if p.Stdin != "" {
		fmt.Fprintf(&b, "stdin = %s\n", quote(p.Stdin))
	}
	if len(p.Files) > 0 {
		var files []string
		for path, text := range p.Files {
			files = append(files, quote(path)+" = "+quote(text))
		}
		sort.Strings(files)
		fmt.Fprintf(&b, "files = { %s }\n", strings.Join(files, ", "))
	}
	input, err := p.input()
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "input = '''%s'''\n", input)
	return b.String(), nil
}

func quoted(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = quote(s)
	}
	return strings.Join(out, ", ")
}

// input is the schema of the parameters that are named. Those of an argument
// that stands alone are required.
func (p Program) input() ([]byte, error) {
	type property struct {
		Type  string            `json:"type"`
		Items map[string]string `json:"items,omitempty"`
	}
	props := map[string]property{}
	required := []string{}
	add := func(text string, must bool) error {
		for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
			next := property{Type: "string"}
			switch {
			case m[1] == "?":
				next.Type, must = "boolean", false
			case m[3] != "":
				next, must = property{"array", map[string]string{"type": "string"}}, false
			}
			if had, ok := props[m[2]]; ok && had.Type != next.Type {
				return fmt.Errorf("the parameter %q is used as %s and as %s", m[2], had.Type, next.Type)
			}
			props[m[2]] = next
			if must && !slices.Contains(required, m[2]) {
				required = append(required, m[2])
			}
		}
		return nil
	}
	for _, a := range p.Args {
		if err := add(a, len(strings.Fields(a)) == 1); err != nil {
			return nil, err
		}
	}
	if err := add(p.Stdin, true); err != nil {
		return nil, err
	}
	for _, text := range p.Files {
		if err := add(text, true); err != nil {
			return nil, err
		}
	}
	slices.Sort(required)
	return json.MarshalIndent(map[string]any{
		"type": "object", "properties": props, "required": required, "additionalProperties": false,
	}, "", "  ")
}
