package pdk

import "context"

// Prompt asks the host's background model. It needs the capability model, and
// its tokens are charged to the call's budget.
type Prompt struct {
	System    string
	Messages  []Message // either these, ending with a user's message, or Text alone
	Text      string    // appended to the last user message; the place for long material
	Images    []Image   // go with the last user message
	MaxTokens int       // of the answer; zero: the host's choice
}

// Message is one turn of a conversation. Role is "user" or "assistant".
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Image is an encoded picture.
type Image struct {
	MIMEType string
	Data     []byte
}

// Completion is the model's answer.
type Completion struct {
	Text      string
	Stop      string // why it ended
	Model     string // which one answered
	TokensIn  int
	TokensOut int
}

// Complete asks the background model. Where none is set up, the error is
// abi.ErrUnavailable: a tool should do what it can without.
func Complete(ctx context.Context, p Prompt) (Completion, error) {
	type image struct {
		MIMEType string `json:"mime_type"`
		Length   int    `json:"length"`
	}
	header := struct {
		Messages  []Message `json:"messages,omitempty"`
		System    string    `json:"system,omitempty"`
		MaxTokens int       `json:"max_tokens,omitempty"`
		Images    []image   `json:"images,omitempty"`
	}{Messages: p.Messages, System: p.System, MaxTokens: p.MaxTokens}
	size := len(p.Text)
	for _, i := range p.Images {
		size += len(i.Data)
	}
	body := make([]byte, 0, size)
	for _, i := range p.Images {
		header.Images = append(header.Images, image{i.MIMEType, len(i.Data)})
		body = append(body, i.Data...)
	}
	body = append(body, p.Text...)
	var reply struct {
		Stop      string `json:"stop"`
		Model     string `json:"model"`
		TokensIn  int    `json:"tokens_in"`
		TokensOut int    `json:"tokens_out"`
	}
	text, err := opModel.do(ctx, header, body, &reply)
	if err != nil {
		return Completion{}, err
	}
	return Completion{Text: string(text), Stop: reply.Stop, Model: reply.Model, TokensIn: reply.TokensIn, TokensOut: reply.TokensOut}, nil
}
