package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/internal/config/strict"
	"github.com/pelletier/go-toml/v2"
)

// OtherServers is the file in which other agents name a project's MCP servers.
const OtherServers = ".mcp.json"

// ProjectServer is an MCP server that a project names. Naming starts nothing.
type ProjectServer struct {
	Name, File string
	MCPServer
}

// ProjectServers reads what MCP servers a project names, by name: those of
// .elfhost/config.toml, then those of .mcp.json. read gives a file by its path
// below the project.
func ProjectServers(project string, read func(path string) ([]byte, bool)) ([]ProjectServer, error) {
	seen := map[string]bool{}
	var out []ProjectServer
	for _, from := range []struct {
		path  string
		parse func(b []byte, file string) (map[string]MCPServer, error)
	}{{projectConfig, ownServers}, {OtherServers, otherServers}} {
		b, ok := read(from.path)
		if !ok {
			continue
		}
		file := filepath.Join(project, filepath.FromSlash(from.path))
		servers, err := from.parse(b, file)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			if !seen[strings.ToLower(name)] {
				seen[strings.ToLower(name)] = true
				out = append(out, ProjectServer{Name: name, File: file, MCPServer: servers[name]})
			}
		}
	}
	return out, nil
}

func ownServers(b []byte, file string) (map[string]MCPServer, error) {
	c, err := projectAlone(b, file)
	return c.MCP.Servers, err
}

// projectAlone is a project's configuration as it would count once trusted.
func projectAlone(b []byte, file string) (*Config, error) {
	c := &Config{origin: map[string]origin{}}
	setDefaults(reflect.ValueOf(c).Elem())
	return c, c.layer(b, source{layer: "project", file: file, project: true, trusted: true})
}

// ProjectWidens lists what a project's config.toml sets, beside its servers,
// that may count only once the person trusts it, as "key = value".
func ProjectWidens(b []byte, file string) (out []string, err error) {
	c, err := projectAlone(b, file)
	if err != nil {
		return nil, err
	}
	rows, err := c.Explain("")
	for _, r := range rows {
		if r.Layer == "project" && !strings.HasPrefix(r.Key, "mcp.") && r.Key != "dialect" {
			out = append(out, r.Key+" = "+r.Value)
		}
	}
	return out, err
}

// otherServers reads .mcp.json. Keys that this program does not know are left:
// the file is other programs'. A server that cannot be used is an error when it
// is trusted, not here.
func otherServers(b []byte, file string) (map[string]MCPServer, error) {
	if len(b) > strict.MaxFile {
		return nil, strict.TooLarge(file)
	}
	var doc struct {
		Servers map[string]struct {
			Type     string            `json:"type"`
			Command  string            `json:"command"`
			Args     []string          `json:"args"`
			Env      map[string]string `json:"env"`
			Cwd      string            `json:"cwd"`
			URL      string            `json:"url"`
			Headers  map[string]string `json:"headers"`
			Disabled bool              `json:"disabled"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), &doc); err != nil {
		return nil, &strict.Error{File: file, Err: err}
	}
	out := map[string]MCPServer{}
	for name, s := range doc.Servers {
		m := MCPServer{Command: s.Command, Args: s.Args, Env: s.Env, Cwd: s.Cwd, URL: s.URL, Headers: s.Headers, Disabled: s.Disabled}
		switch s.Type {
		case "sse", "stdio", "http":
			m.Transport = s.Type
		case "streamable-http", "streamableHttp":
			m.Transport = "http"
		}
		v := reflect.ValueOf(&m).Elem()
		setDefault(v.FieldByName("Timeout"), field("Timeout"))
		setDefault(v.FieldByName("Startup"), field("Startup"))
		out[name] = m
	}
	return out, nil
}

func field(name string) reflect.StructField {
	f, _ := reflect.TypeFor[MCPServer]().FieldByName(name)
	return f
}

// Check judges a server that was not read from a config.toml.
func (s MCPServer) Check(name string) error {
	err := s.check(name, "", nil)
	var e *strict.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// AddServer writes a server into a config.toml, which must not have it yet.
// Everything else in the file stays as it was written.
func AddServer(file, name string, s MCPServer) error {
	if err := s.Check(name); err != nil {
		return err
	}
	b, _, err := strict.ReadIfPresent(file)
	if err != nil {
		return err
	}
	var c Config
	if _, err := strict.Decode(b, file, &c); err != nil {
		return err
	}
	if _, taken := c.MCP.Servers[name]; taken {
		return fmt.Errorf("%s already has an MCP server %q: %w", file, name, fs.ErrExist)
	}
	text, err := s.toml(name)
	if err != nil {
		return err
	}
	if len(b) > 0 && !bytes.HasSuffix(b, []byte("\n")) {
		b = append(b, '\n')
	}
	if len(b) > 0 {
		b = append(b, '\n')
	}
	return replace(file, append(b, text...))
}

// toml is the server as tables of config.toml.
func (s MCPServer) toml(name string) ([]byte, error) {
	plain := map[string]any{}
	tables := map[string]map[string]string{}
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		key, f := v.Type().Field(i).Tag.Get("toml"), v.Field(i)
		switch {
		case f.IsZero():
		case f.Kind() == reflect.Map:
			tables[key] = f.Interface().(map[string]string)
		case f.Kind() == reflect.Struct: // a duration
			plain[key] = f.Interface().(strict.Duration).String()
		default:
			plain[key] = f.Interface()
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "[mcp.servers.%s]\n", name)
	b, err := toml.Marshal(plain)
	if err != nil {
		return nil, err
	}
	out.Write(b)
	for _, key := range slices.Sorted(maps.Keys(tables)) {
		fmt.Fprintf(&out, "[mcp.servers.%s.%s]\n", name, key)
		if b, err = toml.Marshal(tables[key]); err != nil {
			return nil, err
		}
		out.Write(b)
	}
	return out.Bytes(), nil
}

// RemoveServer takes a server's tables out of a config.toml.
func RemoveServer(file, name string) error {
	b, _, err := strict.ReadIfPresent(file)
	if err != nil {
		return err
	}
	var c Config
	if _, err := strict.Decode(b, file, &c); err != nil {
		return err
	}
	if _, ok := c.MCP.Servers[name]; !ok {
		return fmt.Errorf("%s has no MCP server %q: %w", file, name, fs.ErrNotExist)
	}
	out := cutTables(string(b), "mcp.servers."+name)
	var after Config
	if _, err := strict.Decode([]byte(out), file, &after); err != nil || len(after.MCP.Servers) != len(c.MCP.Servers)-1 {
		return &strict.Error{File: file, Err: fmt.Errorf("the server %q is written in a way that only a person can take out; edit the file", name)}
	}
	return replace(file, []byte(out))
}

// cutTables leaves out the lines of a table and of those below it.
func cutTables(text, table string) string {
	var out []string
	skip := false
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "[") {
			head, _, _ := strings.Cut(strings.TrimLeft(trimmed, "["), "]")
			head = strings.NewReplacer(" ", "", `"`, "", "'", "").Replace(head)
			skip = head == table || strings.HasPrefix(head, table+".")
		}
		if !skip {
			out = append(out, line)
		}
	}
	return strings.TrimRight(strings.Join(out, ""), "\n") + "\n"
}

// replace writes a file whole, once what would be in it can be read.
func replace(file string, b []byte) error {
	var c Config
	ls, err := strict.Decode(b, file, &c)
	if err == nil {
		err = check(&c, file, ls)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return strict.WriteFile(file, b)
}

// Expand fills in ${NAME} and ${NAME:-default}, as .mcp.json has them. A name
// that is not set and has no default is an error.
func Expand(text string, env func(string) string) (string, error) {
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "${")
		out.WriteString(before)
		if !ok {
			return out.String(), nil
		}
		name, after, ok := strings.Cut(rest, "}")
		if !ok {
			return "", errors.New("a ${ without its }")
		}
		name, def, has := strings.Cut(name, ":-")
		v := env(name)
		if v == "" && !has {
			return "", fmt.Errorf("the variable %s is not set", name)
		}
		if v == "" {
			v = def
		}
		out.WriteString(v)
		text = after
	}
}
