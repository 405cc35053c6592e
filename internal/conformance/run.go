package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
)

// Host answers requests: another program, or this one.
type Host interface {
	// Ask is given one request at a time. An error means that the host did not
	// answer; the next request may go to a new one.
	Ask(ctx context.Context, r Request) (Response, error)
}

// Outcome is how one case went.
type Outcome struct {
	Name    string `json:"name"`
	Section string `json:"section"`
	OK      bool   `json:"ok"`
	Skipped string `json:"skipped,omitempty"` // why it was left out
	Why     string `json:"why,omitempty"`     // what was wrong
}

// Run holds a host against the suite, or against the cases whose names contain
// one of the texts, and tells of each outcome. The error is that of a host that
// cannot be spoken to at all.
func (s *Suite) Run(ctx context.Context, h Host, only []string, tell func(Outcome)) error {
	hello, err := h.Ask(ctx, Request{Do: doHello})
	if err != nil {
		return err
	}
	if hello.ABI != s.ABI {
		return fmt.Errorf("the host speaks %q, and the suite is of %q", hello.ABI, s.ABI)
	}
	for i := range s.Cases {
		c := &s.Cases[i]
		if len(only) > 0 && !slices.ContainsFunc(only, func(t string) bool { return strings.Contains(c.Name, t) }) {
			continue
		}
		o := Outcome{Name: c.Name, Section: c.Section}
		if lack := c.lacks(hello.Lacks); lack != "" {
			o.OK, o.Skipped = true, "the host has no "+lack
			tell(o)
			continue
		}
		err := s.one(ctx, h, c)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if o.OK = err == nil; err != nil {
			o.Why = err.Error()
		}
		tell(o)
	}
	return nil
}

func (c *Case) lacks(lacks []string) string {
	for _, n := range c.Needs {
		if slices.Contains(lacks, n.Cap) {
			return n.Cap
		}
	}
	return ""
}

func (s *Suite) one(ctx context.Context, h Host, c *Case) error {
	wasm, err := s.Wasm(c)
	if err != nil {
		return err
	}
	tools := c.Tools
	if tools == nil {
		tools = []string{}
	}
	needs := c.Needs
	if needs == nil {
		needs = []Need{}
	}
	loaded, err := h.Ask(ctx, Request{Do: doLoad, Wasm: wasm, Manifest: &Manifest{ABI: s.ABI, Name: "conformance", Needs: needs, Tools: tools, Limits: c.Limits}})
	if err != nil {
		return fmt.Errorf("loading: %w", err)
	}
	defer h.Ask(ctx, Request{Do: doUnload})
	switch {
	case loaded.Loaded && c.Load == "refused":
		return errors.New("it was loaded, and must be refused")
	case !loaded.Loaded && c.Load == "":
		return fmt.Errorf("it was refused: %s", loaded.Error)
	case !loaded.Loaded:
		return nil
	}
	for _, t := range c.Offers {
		if !slices.Contains(loaded.Tools, t) {
			return fmt.Errorf("it offers %q, and must offer %q", loaded.Tools, t)
		}
	}
	before := ""
	for i := range c.Calls {
		k := &c.Calls[i]
		r, err := h.Ask(ctx, Request{Do: doCall, Tool: k.Tool, Args: k.args(), Grants: k.Grants, World: k.world()})
		if err == nil {
			err = k.judge(r, before)
		}
		if err != nil {
			return fmt.Errorf("call %d, %s: %w", i+1, k.Tool, err)
		}
		if r.Result != nil {
			before = r.Result.Text()
		}
	}
	return nil
}

func (k *Call) args() json.RawMessage {
	if k.Args == nil {
		return json.RawMessage("{}")
	}
	return k.Args
}

func (k *Call) world() *World {
	return &World{Files: k.Files, HTTP: k.HTTP, Env: k.Env, Secrets: k.Secrets, Model: k.Model, Tools: k.Tools}
}

// judge holds an answer against what must come of the call.
func (k *Call) judge(r Response, before string) error {
	if k.Ends != "" {
		switch {
		case r.Ended == "":
			return fmt.Errorf("it answered %s, and must end", show(r.Result))
		case k.Ends != "any" && r.Ended != k.Ends:
			return fmt.Errorf("it ended with %q (%s), and must end with %q", r.Ended, r.Error, k.Ends)
		}
		return nil
	}
	if r.Ended != "" || r.Result == nil {
		return fmt.Errorf("it ended with %q: %s", r.Ended, r.Error)
	}
	text := r.Result.Text()
	switch {
	case r.Result.IsError != k.Error:
		return fmt.Errorf("isError is %v, and must be %v: %q", r.Result.IsError, k.Error, text)
	case k.Want != nil && text != *k.Want:
		return fmt.Errorf("it answered %q, and must answer %q", text, *k.Want)
	case !strings.Contains(text, k.Contains):
		return fmt.Errorf("it answered %q, which must contain %q", text, k.Contains)
	case k.OneOf != nil && !slices.Contains(k.OneOf, text):
		return fmt.Errorf("it answered %q, and must answer one of %q", text, k.OneOf)
	case k.As != nil && !equal([]byte(text), k.As):
		return fmt.Errorf("it answered %s, and must answer %s", text, k.As)
	case k.JSON != nil && !equal(r.Result.Structured, k.JSON):
		return fmt.Errorf("the structured content is %s, and must be %s", r.Result.Structured, k.JSON)
	case k.Unlike && text == before:
		return fmt.Errorf("it answered %q again", text)
	case k.UnlikeOr != "" && text == before && text != k.UnlikeOr:
		return fmt.Errorf("it answered %q again", text)
	case k.Same && text != before:
		return fmt.Errorf("it answered %q, and %q before", text, before)
	}
	if k.Blocks != nil {
		var got []string
		for _, b := range r.Result.Content {
			got = append(got, b.Type)
		}
		if !slices.Equal(got, k.Blocks) {
			return fmt.Errorf("the content is %q, and must be %q", got, k.Blocks)
		}
	}
	for name, want := range k.Written {
		if got, ok := r.Files[name]; !ok || got != want {
			return fmt.Errorf("the file %q is %q, and must be %q", name, got, want)
		}
	}
	return nil
}

func equal(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func show(r *abi.Result) string {
	if r == nil {
		return "nothing"
	}
	return fmt.Sprintf("%q", r.Text())
}
