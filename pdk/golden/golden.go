// Package golden reads the golden cases of a plugin: calls, what the host
// answers meanwhile, and what must come of it. `elfhost plugin test` runs them
// in the sandbox, pdktest.Cases natively.
package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
)

// Dir holds a project's cases, one JSON file each.
const Dir = "testdata/cases"

// Case is one call and what must come of it. A file that has "events" is a
// recording of `elfhost call --record` instead.
type Case struct {
	Tool   string          `json:"tool"`
	Args   json.RawMessage `json:"args"`
	Grants []string        `json:"grants"` // "fs.read /ws/**"; nothing is granted but these

	// What the host answers. There is no other world: a request that HTTP does
	// not name finds nobody.
	Files   map[string]string   `json:"files"` // of the workspace, before the call
	Copy    map[string]string   `json:"copy"`  // likewise: files of the project, by the name in the workspace
	HTTP    map[string]Response `json:"http"`  // by "URL" or "METHOD URL"
	Env     map[string]string   `json:"env"`
	Secrets map[string]string   `json:"secrets"`
	KV      map[string]string   `json:"kv"`
	Model   *string             `json:"model"` // what the model says, whatever it is asked
	Tools   map[string]string   `json:"tools"` // the text of their results

	// Want is the whole text, Contains a part of it, JSON the structured answer.
	Want     *string         `json:"want"`
	Contains string          `json:"contains"`
	JSON     json.RawMessage `json:"json"`
	Error    bool            `json:"error"` // the answer is an error
	// Written are files of the workspace after the call.
	Written map[string]string `json:"written"`

	// SandboxOnly: the case is about rights or limits, which a native test has not.
	SandboxOnly bool `json:"sandbox_only"`

	Name      string          `json:"-"` // of its file
	Recording json.RawMessage `json:"-"` // nil: an ordinary case
}

// Response is what a server answers.
type Response struct {
	Status  int               `json:"status"` // 0: 200
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// maxCase bounds a file, in bytes: a recording holds what the module read.
const maxCase = 64 << 20

// Read reads the cases of the project in dir, by name.
func Read(dir string) ([]Case, error) {
	names, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(Dir), "*.json"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var out []Case
	for _, name := range names {
		b, err := readFile(name)
		if err != nil {
			return nil, fmt.Errorf("the case %q: %w", name, err)
		}
		c, err := Parse(b)
		if err == nil {
			err = c.take(dir)
		}
		if err != nil {
			return nil, fmt.Errorf("the case %q: %w", name, err)
		}
		c.Name = strings.TrimSuffix(filepath.Base(name), ".json")
		out = append(out, c)
	}
	return out, nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return bounded(f)
}

func bounded(f *os.File) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(f, maxCase+1))
	if err == nil && len(b) > maxCase {
		err = fmt.Errorf("it has more than %d bytes", maxCase)
	}
	return b, err
}

// Parse reads one case. A key that it does not know is an error: a misspelt
// expectation would expect nothing.
func Parse(b []byte) (c Case, err error) {
	var head struct {
		Events json.RawMessage `json:"events"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return c, place(b, err)
	}
	if head.Events != nil {
		return Case{Recording: b}, nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, place(b, err)
	}
	switch {
	case c.Tool == "":
		return c, errors.New(`it names no "tool"`)
	case c.Want == nil && c.Contains == "" && c.JSON == nil && !c.Error && len(c.Written) == 0:
		return c, errors.New(`it expects nothing: give "want", "contains", "json", "written" or "error"`)
	}
	for name := range c.Copy {
		if _, twice := c.Files[name]; twice {
			return c, fmt.Errorf("the file %q is in \"files\" and in \"copy\"", name)
		}
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return c, fmt.Errorf("the file %q lies outside the workspace", name)
		}
	}
	for name := range c.Files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return c, fmt.Errorf("the file %q lies outside the workspace", name)
		}
	}
	for name := range c.Written {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return c, fmt.Errorf("the file %q lies outside the workspace", name)
		}
	}
	return c, nil
}

// take reads what the case copies out of the project in dir.
func (c *Case) take(dir string) error {
	if len(c.Copy) == 0 {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for name, from := range c.Copy {
		f, err := root.Open(filepath.FromSlash(from))
		if err != nil {
			return err
		}
		b, err := bounded(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("the file %q: %w", from, err)
		}
		if c.Files == nil {
			c.Files = map[string]string{}
		}
		c.Files[name] = string(b)
	}
	return nil
}

// place says in which line JSON is wrong.
func place(b []byte, err error) error {
	var at int64 = -1
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &typ):
		at = typ.Offset
	}
	if at < 0 || at > int64(len(b)) {
		return err
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(b[:at], []byte("\n")), err)
}

// Answer is what the host answers to a request, if the case says.
func (c *Case) Answer(method, url string) (Response, bool) {
	r, ok := c.HTTP[method+" "+url]
	if !ok {
		r, ok = c.HTTP[url]
	}
	if r.Status == 0 {
		r.Status = 200
	}
	return r, ok
}

// Lay puts the case's files into a folder.
func (c *Case) Lay(workspace string) error {
	for name, text := range c.Files {
		full := filepath.Join(workspace, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Compare says how an outcome differs from what is wanted; nil: it does not.
func (c *Case) Compare(r abi.Result, workspace string) error {
	text := r.Text()
	switch {
	case r.IsError != c.Error && c.Error:
		return fmt.Errorf("it answers %q, and an error is wanted", text)
	case r.IsError != c.Error:
		return fmt.Errorf("it answers with the error %q", text)
	case c.Want != nil && text != *c.Want:
		return fmt.Errorf("it answers %q, want %q", text, *c.Want)
	case !strings.Contains(text, c.Contains):
		return fmt.Errorf("it answers %q, want something with %q", text, c.Contains)
	case c.JSON != nil && !sameJSON(r.Structured, c.JSON):
		return fmt.Errorf("it answers %s, want %s", r.Structured, c.JSON)
	}
	for name, want := range c.Written {
		b, err := readFile(filepath.Join(workspace, filepath.FromSlash(name)))
		if errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("it did not write %q", name)
		}
		if err != nil {
			return fmt.Errorf("reading what it wrote to %q failed", name)
		}
		if string(b) != want {
			return fmt.Errorf("it wrote %q to %q, want %q", b, name, want)
		}
	}
	return nil
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, err1 := json.Marshal(x)
	q, err2 := json.Marshal(y)
	return err1 == nil && err2 == nil && bytes.Equal(p, q)
}
