package mcp

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
)

// direct carries out the plain call of a tool for a client that shook hands:
// mcp-go would read the message five times and the answer twice. ok is false
// for everything that is more than that, which goes the long way.
func (b *Bridge) direct(ctx context.Context, c *stdioClient, m message, after *later) (answer any, ok bool) {
	if m.method != string(mcp.MethodToolsCall) || !c.Initialized() || mcp.IsModernProtocol(c.ProtocolVersion()) || len(m.params) == 0 || m.params[0] != '{' {
		return nil, false
	}
	q := request{later: after}
	plain := true
	err := each(m.params, func(key string, value json.RawMessage) error {
		switch {
		case key == "name" && value[0] == '"':
			q.tool, _ = unquote(value)
		case key == "arguments":
			q.args = value
		case key == "_meta" && value[0] == '{':
			return each(value, func(key string, value json.RawMessage) error {
				plain = plain && key == "progressToken" && (value[0] == '"' || value[0] == '-' || value[0] >= '0' && value[0] <= '9')
				q.token = value
				return nil
			})
		default:
			plain = false
		}
		return nil
	})
	if s, known := b.opt.Registry.Spec(q.tool); err != nil || !plain || !known || s.Defer {
		return nil, false
	}
	q.peer = &peer{srv: b.srv, alone: true, elicits: c.GetClientCapabilities().Elicitation != nil}
	res, refused := b.invoke(ctx, q)
	line, err := encodeAnswer(m.id, res, refused)
	if err != nil {
		line, err = encodeAnswer(m.id, abi.Errorf("The tool's answer cannot be sent: %v.", err), nil)
	}
	return json.RawMessage(line), err == nil
}

// textBlock is the content block that most answers are of.
type textBlock struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

type wireAnswer struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  wireResult      `json:"result"`
}

type wireResult struct {
	Content    []any           `json:"content"`
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
}

// encodeAnswer is a line that says the same as answerOf through mcp-go.
func encodeAnswer(id json.RawMessage, res abi.Result, refused []host.Denied) ([]byte, error) {
	a := wireAnswer{JSONRPC: "2.0", ID: id, Result: wireResult{Content: make([]any, 0, len(res.Content)), Structured: res.Structured, IsError: res.IsError}}
	for _, c := range append(res.Content[:len(res.Content):len(res.Content)], allowing(refused)...) {
		if c.Type == abi.TypeText {
			a.Result.Content = append(a.Result.Content, textBlock{c.Type, c.Text, noted(c.Annotations)})
		} else {
			a.Result.Content = append(a.Result.Content, contentOf(c))
		}
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(a); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// noted gives annotations as the protocol has them, and nothing for others.
func noted(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	a := &mcp.Annotations{}
	if json.Unmarshal(raw, a) != nil {
		return nil
	}
	b, err := json.Marshal(a)
	if err != nil {
		return nil
	}
	return b
}
