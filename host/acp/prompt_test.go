package acp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/elfhost/elfhost/abi"
)

// A prompt is what its blocks say that they are, or is refused in words that
// name what is wrong.
func TestPromptBlocks(t *testing.T) {
	svg := base64.StdEncoding.EncodeToString([]byte(`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><circle r="1"/></svg>`))
	long := base64.StdEncoding.EncodeToString([]byte("<svg>" + strings.Repeat(" ", maxDrawing) + "</svg>"))
	latin := base64.StdEncoding.EncodeToString([]byte("<svg><text>\xe9</text></svg>"))
	for name, c := range map[string]struct{ blocks, want, err string }{
		"text":               {`{"type":"text","text":"hi"}`, "hi", ""},
		"blank beside text":  {`{"type":"text","text":" \n"},{"type":"text","text":"hi"}`, "hi", ""},
		"blank":              {`{"type":"text","text":" \n"}`, "", "the prompt is empty"},
		"no text":            {`{"type":"text"}`, "", "the prompt is empty"},
		"unknown":            {`{"type":"video","uri":"file:///a.mp4"}`, "", `no block of the type "video"`},
		"unknown, with text": {`{"type":"thought","text":"hidden"}`, "", `no block of the type "thought"`},
		"no type":            {`{"text":"hi"}`, "", `no block of the type ""`},
		"audio":              {`{"type":"audio","data":"aGk=","mimeType":"audio/wav"}`, "", "no audio"},
		"a hollow resource":  {`{"type":"resource","resource":{"uri":"file:///a"}}`, "", "neither a text nor a blob"},
		"SVG":                {`{"type":"image","data":"` + svg + `","mimeType":"image/svg+xml"}`, "<circle", ""},
		"SVG, with its set":  {`{"type":"image","data":"` + svg + `","mimeType":"image/SVG+xml; charset=utf-8"}`, "<circle", ""},
		"SVG, as a resource": {`{"type":"resource","resource":{"uri":"file:///a.svg","blob":"` + svg + `","mimeType":"image/svg+xml"}}`, "<circle", ""},
		"SVG, too long":      {`{"type":"image","data":"` + long + `","mimeType":"image/svg+xml"}`, "", "256 KiB at the most"},
		"SVG, not UTF-8":     {`{"type":"image","data":"` + latin + `","mimeType":"image/svg+xml"}`, "", "not UTF-8"},
	} {
		params := json.RawMessage(`{"sessionId":"s","prompt":[` + c.blocks + `]}`)
		got, err := []abi.Content(nil), knownBlocks(params)
		if err == nil {
			var p sdk.PromptRequest
			if err = json.Unmarshal(params, &p); err == nil {
				got, err = contentOf(p.Prompt)
			}
		}
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, %+v", name, err, got)
		case c.err == "" && (err != nil || len(got) != 1 || got[0].Type != abi.TypeText || !strings.Contains(got[0].Text, c.want)):
			t.Errorf("%s: %v, %+v", name, err, got)
		}
	}
}

// The refusal is the server's: before the SDK reads the blocks.
func TestUnknownBlocksAreRefused(t *testing.T) {
	s := &server{ctx: context.Background(), sessions: map[string]*session{}, out: &output{w: io.Discard}}
	_, err := s.dispatch(context.Background(), request{}, sdk.AgentMethodSessionPrompt, json.RawMessage(`{"sessionId":"s","prompt":[{"type":"video","text":"x"}]}`))
	var e *Error
	if !errors.As(err, &e) || e.Kind != Invalid || !strings.Contains(e.Text, `"video"`) {
		t.Errorf("%v", err)
	}
}
