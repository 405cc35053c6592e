// Package scripted is a model without a model: its turns come from a file.
// It drives the demo and golden tests through the same loop as any other
// model; the tools that it calls are real.
// docs/scripted.md has the file's format.
package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/elfhost/elfhost/host/model"
)

// Script is a parsed file. It is a model.Model, keeps no state, and finds its
// place from the conversation, so that a resumed session goes on where it was.
type Script struct {
	name  string
	turns []turn
}

type file struct {
	Turn []turn `toml:"turn" json:"turn"`
}

type turn struct {
	When     when              `toml:"when" json:"when"`
	Always   bool              `toml:"always" json:"always"`
	Capture  map[string]string `toml:"capture" json:"capture"`
	Thinking string            `toml:"thinking" json:"thinking"`
	Text     string            `toml:"text" json:"text"`
	Call     []call            `toml:"call" json:"call"`
	Stop     string            `toml:"stop" json:"stop"`
	Usage    *usage            `toml:"usage" json:"usage"`
	Error    string            `toml:"error" json:"error"`
	Delay    string            `toml:"delay" json:"delay"`

	captures map[string]*regexp.Regexp
	delay    time.Duration
}

type call struct {
	Tool string         `toml:"tool" json:"tool"`
	Args map[string]any `toml:"args" json:"args"`
	Raw  *string        `toml:"raw" json:"raw"`
}

type usage struct {
	Input  int64 `toml:"input" json:"input"`
	Output int64 `toml:"output" json:"output"`
}

type when struct {
	Tool     string `toml:"tool" json:"tool"`
	Contains string `toml:"contains" json:"contains"`
	Lacks    string `toml:"lacks" json:"lacks"`
	Matches  string `toml:"matches" json:"matches"`
	Error    *bool  `toml:"error" json:"error"`
	Prompt   string `toml:"prompt" json:"prompt"`
	System   string `toml:"system" json:"system"`
	Offered  string `toml:"offered" json:"offered"`
	Effort   string `toml:"effort" json:"effort"`
	Images   int    `toml:"images" json:"images"`

	matches *regexp.Regexp
}

var stops = map[string]model.StopReason{
	"end": model.StopEnd, "calls": model.StopCalls, "length": model.StopLength,
	"refusal": model.StopRefusal, "pause": model.StopPause,
}

var codes = map[string]model.Code{
	"auth": model.ErrAuth, "quota": model.ErrQuota, "rate": model.ErrRateLimit, "overload": model.ErrOverload,
	"server": model.ErrServer, "truncated": model.ErrTruncated, "window": model.ErrWindow,
}

// Parse reads a script; name stands in errors.
func Parse(name string, data []byte) (*Script, error) {
	var f file
	if err := decode(data, &f); err != nil {
		return nil, fmt.Errorf("reading script %q: %w", name, err)
	}
	if len(f.Turn) == 0 {
		return nil, fmt.Errorf("reading script %q: it has no turn", name)
	}
	for i := range f.Turn {
		if err := f.Turn[i].prepare(); err != nil {
			return nil, fmt.Errorf("reading script %q: turn %d: %w", name, i+1, err)
		}
	}
	return &Script{name: name, turns: f.Turn}, nil
}

func decode(data []byte, f *file) error {
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' {
		d := json.NewDecoder(bytes.NewReader(trimmed))
		d.DisallowUnknownFields()
		return d.Decode(f)
	}
	d := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	err := d.Decode(f)
	var strict *toml.StrictMissingError
	var syntax *toml.DecodeError
	switch {
	case errors.As(err, &strict) && len(strict.Errors) > 0:
		row, _ := strict.Errors[0].Position()
		return fmt.Errorf("line %d: unknown key %q", row, strings.Join(strict.Errors[0].Key(), "."))
	case errors.As(err, &syntax):
		row, col := syntax.Position()
		return fmt.Errorf("line %d, column %d: %w", row, col, err)
	}
	return err
}

// prepare checks a turn and compiles its expressions.
func (t *turn) prepare() error {
	var err error
	if t.When.Matches != "" {
		if t.When.matches, err = regexp.Compile(t.When.Matches); err != nil {
			return fmt.Errorf("when.matches: %w", err)
		}
	}
	t.captures = map[string]*regexp.Regexp{}
	for name, expr := range t.Capture {
		if t.captures[name], err = regexp.Compile(expr); err != nil {
			return fmt.Errorf("capture.%s: %w", name, err)
		}
	}
	if t.Delay != "" {
		if t.delay, err = time.ParseDuration(t.Delay); err != nil {
			return fmt.Errorf("delay: %w", err)
		}
	}
	if _, ok := stops[t.Stop]; !ok && t.Stop != "" {
		return fmt.Errorf("unknown stop %q", t.Stop)
	}
	if _, ok := codes[t.Error]; !ok && t.Error != "" {
		return fmt.Errorf("unknown error %q", t.Error)
	}
	for i, c := range t.Call {
		if c.Tool == "" {
			return fmt.Errorf("call %d names no tool", i+1)
		}
		if c.Raw != nil && c.Args != nil {
			return fmt.Errorf("call %d has both args and raw", i+1)
		}
	}
	return nil
}
