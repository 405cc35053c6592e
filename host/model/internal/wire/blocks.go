package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

// Object is what goes back to a vendor as the arguments of a past call. It
// must be an object: what the model wrote may be anything, and a server that
// parses it would refuse the whole conversation.
func Object(args string) json.RawMessage {
	if strings.TrimSpace(args) == "" {
		return json.RawMessage("{}")
	}
	var o map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &o) == nil && o != nil {
		return json.RawMessage(args)
	}
	b, _ := json.Marshal(map[string]string{"malformed_arguments": args})
	return b
}

var unsafeName = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// Name is a past call's tool as every vendor accepts it. A model may have
// called something that is no name, and the conversation must go on.
func Name(name string) string {
	name = unsafeName.ReplaceAllString(name, "_")
	if name == "" {
		return "unnamed"
	}
	return name[:min(len(name), 64)]
}

// Schema is a tool's input schema, or that of an object without properties.
func Schema(s json.RawMessage) json.RawMessage {
	if len(s) == 0 || string(s) == "null" {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return s
}

// Plain is the text of a block that is no text: links and embedded resources.
// Images and sound give a note; a vendor's adapter handles those it can send.
func Plain(c abi.Content) string {
	switch c.Type {
	case abi.TypeText:
		return c.Text
	case abi.TypeResourceLink:
		return strings.TrimSpace(fmt.Sprintf("[%s](%s) %s", first(c.Title, c.Name, c.URI), c.URI, c.Description))
	case abi.TypeResource:
		if c.Resource == nil {
			return ""
		}
		if c.Resource.Text != "" {
			return c.Resource.Text
		}
		return fmt.Sprintf("(%d bytes of %s at %s)", len(c.Resource.Blob), first(c.Resource.MIMEType, "data"), c.Resource.URI)
	case abi.TypeImage, abi.TypeAudio:
		return fmt.Sprintf("(%s of type %s, %d bytes, which cannot be shown here)", c.Type, first(c.MIMEType, "unknown"), len(c.Data))
	}
	return ""
}

// Text joins the texts of a result, with notes for what is no text; skip
// leaves out the blocks that the adapter sends in another way. It is never
// empty, since vendors refuse that.
func Text(r abi.Result, skip func(abi.Content) bool) string {
	var parts []string
	for _, c := range r.Content {
		if skip == nil || !skip(c) {
			if s := Plain(c); s != "" {
				parts = append(parts, s)
			}
		}
	}
	s := strings.Join(parts, "\n")
	if s == "" && len(r.Structured) > 0 {
		return string(r.Structured)
	}
	if s == "" {
		return "(no output)"
	}
	return s
}

// Image reports whether a block is an image that vendors take.
func Image(c abi.Content) bool {
	switch c.MIMEType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return c.Type == abi.TypeImage && len(c.Data) > 0
	}
	return false
}

// DataURL is an image inline.
func DataURL(c abi.Content) string {
	return "data:" + c.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(c.Data)
}

// Native is a block's data for this provider, nil if it is another's.
func Native(b model.Block, provider string) json.RawMessage {
	if b.Native == nil || b.Native.Provider != provider {
		return nil
	}
	return b.Native.Data
}

func first(s ...string) string {
	for _, v := range s {
		if v != "" {
			return v
		}
	}
	return ""
}
