package pdk_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/pdk"
	"github.com/elfhost/elfhost/pdk/pdktest"
)

type unit string

func (u unit) MarshalText() ([]byte, error) { return []byte(u), nil }

type common struct {
	Dir string `json:"dir,omitempty" description:"Where to look."`
}

type node struct {
	Label    string  `json:"label"`
	Children []*node `json:"children,omitempty"`
}

type everything struct {
	common
	Mode    string            `json:"mode" desc:"How." enum:"fast,slow"`
	Count   int               `json:"count,omitempty" desc:"How many." min:"1" max:"10" default:"5"`
	Size    uint8             `json:"size"`
	Ratio   *float64          `json:"ratio"`
	Yes     bool              `json:"yes,omitzero"`
	Tags    []string          `json:"tags" enum:"a,b"`
	Levels  []int             `json:"levels,omitempty" enum:"1,2"`
	Pair    [2]int            `json:"pair,omitempty"`
	Labels  map[string]common `json:"labels,omitempty"`
	Any     any               `json:"any,omitempty"`
	Raw     json.RawMessage   `json:"raw,omitempty"`
	Blob    []byte            `json:"blob,omitempty"`
	When    time.Time         `json:"when,omitzero"`
	Unit    unit              `json:"unit,omitempty"`
	Big     int64             `json:"big,string,omitempty"`
	Tree    *node             `json:"tree"`
	Hidden  string            `json:"-"`
	Untaged string
	private int
}

func init() {
	pdk.Tool(pdk.Spec{Name: "everything", Description: "d", ReadOnly: true}, func(_ context.Context, in everything) (everything, error) { return in, nil })
	pdk.Tool(pdk.Spec{Name: "tree"}, func(_ context.Context, in node) (string, error) { return in.Label, nil })
	pdk.Tool(pdk.Spec{Name: "fails"}, func(context.Context, struct{}) (string, error) {
		return "", pdk.Failf("The disk is full. Try /ws/%s.", "tmp")
	})
	pdk.Tool(pdk.Spec{Name: "panics"}, func(context.Context, struct{}) (string, error) { panic("boom") })
	pdk.Tool(pdk.Spec{Name: "list"}, func(context.Context, struct{}) ([]int, error) { return []int{1, 2}, nil })
	pdk.Tool(pdk.Spec{Name: "image"}, func(context.Context, struct{}) (abi.Content, error) {
		return abi.Content{Type: abi.TypeImage, Data: []byte{1}, MIMEType: "image/png"}, nil
	})
}

func schemaOf(t *testing.T, tool string) string {
	t.Helper()
	for _, d := range pdk.Describe().Tools {
		if d.Name == tool {
			return string(d.Input)
		}
	}
	t.Fatalf("no tool %q", tool)
	return ""
}

func TestSchema(t *testing.T) {
	got := schemaOf(t, "everything")
	for _, want := range []string{
		`{"type":"object","properties":{"dir":{"type":"string","description":"Where to look."},"mode":{"type":"string","description":"How.","enum":["fast","slow"]}`,
		`"count":{"type":"integer","description":"How many.","default":5,"minimum":1,"maximum":10}`,
		`"size":{"type":"integer","minimum":0}`,
		`"ratio":{"type":"number"}`,
		`"yes":{"type":"boolean"}`,
		`"tags":{"type":"array","items":{"type":"string","enum":["a","b"]}}`,
		`"levels":{"type":"array","items":{"type":"integer","enum":[1,2]}}`,
		`"pair":{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":2}`,
		`"labels":{"type":"object","additionalProperties":{"type":"object","properties":{"dir"`,
		`"any":{},"raw":{},"blob":{"type":"string","contentEncoding":"base64"}`,
		`"when":{"type":"string","format":"date-time"},"unit":{"type":"string"},"big":{"type":"string"}`,
		`"tree":{"$ref":"#/$defs/node"},"Untaged":{"type":"string"}}`,
		`"required":["mode","size","tags","Untaged"]`,
		`"additionalProperties":false,"$defs":{"node":{"type":"object","properties":{"label":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["label"],"additionalProperties":false}}}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the schema lacks\n%s\nin\n%s", want, got)
		}
	}
	_ = everything{private: 1}
	if strings.Contains(got, "Hidden") || strings.Contains(got, "private") {
		t.Errorf("a hidden field is in the schema: %s", got)
	}
	if got := schemaOf(t, "tree"); !strings.HasPrefix(got, `{"$ref":"#/$defs/node","$defs":{"node":{`) {
		t.Errorf("a type that contains itself: %s", got)
	}
}

func TestDescribe(t *testing.T) {
	for _, d := range pdk.Describe().Tools {
		if d.Name == "everything" && (!d.ReadOnly || d.Output == nil) {
			t.Errorf("%+v", d)
		}
		if d.Name == "tree" && d.Output != nil {
			t.Error("a tool that answers text has no output schema")
		}
	}
}

func TestCall(t *testing.T) {
	h := pdktest.New(t)
	for _, c := range []struct {
		tool, args string
		isError    bool
		text       string
	}{
		{"tree", `{"label":"x"}`, false, "x"},
		{"tree", ``, false, ""},
		{"tree", `{"lable":"x"}`, true, `The arguments do not fit the tool: unknown field "lable".`},
		{"tree", `{"label":"x"}{}`, true, "There is more than one JSON value in the arguments."},
		{"fails", `{}`, true, "The disk is full. Try /ws/tmp."},
		{"panics", `{}`, true, "The tool panics failed inside: boom"},
		{"absent", `{}`, true, `This plugin has no tool "absent".`},
		{"list", `{}`, false, "[1,2]"},
	} {
		r := h.Call(c.tool, c.args)
		if r.IsError != c.isError || r.Text() != c.text {
			t.Errorf("%s(%s) = %v %q, want %v %q", c.tool, c.args, r.IsError, r.Text(), c.isError, c.text)
		}
	}
	if r := h.Call("everything", map[string]any{"mode": "fast", "size": 1, "tags": nil, "Untaged": ""}); !json.Valid(r.Structured) {
		t.Errorf("structured = %s", r.Structured)
	}
	if r := h.Call("image", "{}"); len(r.Content) != 1 || r.Content[0].MIMEType != "image/png" {
		t.Errorf("image = %+v", r)
	}
}

func TestMistakesOfTheAuthor(t *testing.T) {
	mistake := func(name string, register func()) {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it was accepted")
				}
			}()
			register()
		})
	}
	mistake("twice", func() {
		pdk.Tool(pdk.Spec{Name: "tree"}, func(context.Context, node) (string, error) { return "", nil })
	})
	mistake("no name", func() { pdk.Tool(pdk.Spec{}, func(context.Context, node) (string, error) { return "", nil }) })
	mistake("no struct", func() {
		pdk.Tool(pdk.Spec{Name: "n"}, func(context.Context, string) (string, error) { return "", nil })
	})
}
