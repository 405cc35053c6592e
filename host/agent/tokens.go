package agent

import (
	"encoding/json"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

// Estimates stand in where a provider has not counted yet. A token is about
// four bytes of English and less of everything else; three bytes err on the
// side of too many. An image is what Anthropic and OpenAI bill for a large one.
const (
	bytesPerToken = 3
	imageTokens   = 1600
	blockTokens   = 8 // the frame around each block
)

// estimate guesses the tokens of messages.
func estimate(messages []model.Message) int64 {
	var n int64
	for _, m := range messages {
		for _, b := range m.Blocks {
			n += blockTokens
			switch {
			case b.Content != nil:
				n += contentTokens(*b.Content)
			case b.Call != nil:
				n += textTokens(b.Call.Name) + textTokens(b.Call.Args)
			case b.Result != nil:
				for _, c := range b.Result.Content {
					n += contentTokens(c)
				}
			}
			if b.Native != nil && b.Content == nil && b.Call == nil {
				n += int64(len(b.Native.Data)) / bytesPerToken
			} else if b.Thinking != nil {
				n += textTokens(b.Thinking.Text)
			}
		}
	}
	return n
}

func textTokens(s string) int64 { return int64(len(s)+bytesPerToken-1) / bytesPerToken }

func contentTokens(c abi.Content) int64 {
	if c.Type == abi.TypeImage || c.Type == abi.TypeAudio {
		return imageTokens
	}
	n := textTokens(c.Text) + textTokens(c.URI) + textTokens(c.Description)
	if c.Resource != nil {
		n += textTokens(c.Resource.Text)
	}
	return n
}

// overhead guesses what goes with every request: system prompt and tools.
func (l *Loop) overhead() int64 {
	n := textTokens(l.System)
	tools, _ := l.offer()
	for _, t := range tools {
		b, _ := json.Marshal(t)
		n += int64(len(b)) / bytesPerToken
	}
	return n
}

// filled is how much of the window the next request takes: what the provider
// counted last, and a guess for what has come since. A session that was never
// counted is guessed whole.
func (l *Loop) filled(s *Session) int64 {
	messages, counted := s.Messages(), s.Usage().Context
	for i := len(messages) - 1; i >= 0 && counted > 0; i-- {
		if messages[i].Role == model.RoleAssistant {
			return counted + estimate(messages[i+1:])
		}
	}
	return l.overhead() + estimate(messages)
}
