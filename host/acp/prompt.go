package acp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/agent"
)

// maxBlocks is how many blocks a prompt may have.
const maxBlocks = 256

func (s *server) prompt(ctx context.Context, q request, p *sdk.PromptRequest) (any, error) {
	ses, err := s.find(p.SessionId)
	if err != nil {
		return nil, err
	}
	content, err := contentOf(p.Prompt)
	if err != nil {
		return nil, err
	}
	ctx, t, err := ses.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer ses.end(t)
	q.taken()
	ses.name(content)
	return ses.work(ctx, content)
}

// name gives a new session the title under which it is listed.
func (ses *session) name(content []abi.Content) {
	if ses.named || ses.Usage().Steps > 0 {
		return
	}
	ses.named = true
	if title := ses.client.srv.line(abi.Result{Content: content}.Text(), 80); title != "" {
		ses.client.update(sdk.SessionUpdate{SessionInfoUpdate: &sdk.SessionSessionInfoUpdate{Title: &title}})
	}
}

// work lets the agent work on a prompt and says why it stopped.
func (ses *session) work(ctx context.Context, content []abi.Content) (sdk.PromptResponse, error) {
	defer ses.client.reset()
	before := ses.Gate.Current()
	ses.notes()
	var done agent.Event
	var failed error
	for e, err := range ses.Turn(ctx, content...) {
		if e.Kind == agent.KindDone && e.From == "" {
			done, failed = e, err
			continue
		}
		ses.client.event(e)
		if e.Kind == agent.KindUsage && e.From == "" {
			ses.usage()
		}
	}
	ses.notes()
	ses.usage()
	ses.offer(ctx)
	if now := ses.Gate.Current(); now != before {
		ses.client.update(sdk.SessionUpdate{CurrentModeUpdate: &sdk.SessionCurrentModeUpdate{CurrentModeId: sdk.SessionModeId(now)}})
	}
	if ctx.Err() != nil || done.Stop == agent.StopCancelled { // whatever else it has led to
		return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled, Usage: ses.tokens()}, nil
	}
	if failed != nil {
		return sdk.PromptResponse{}, failed
	}
	if done.Stop == agent.StopYield {
		ses.client.say(done.Text)
	}
	reason, note := stopOf(done.Stop)
	if note != "" {
		ses.client.say("\n\n" + note)
	}
	return sdk.PromptResponse{StopReason: reason, Usage: ses.tokens()}, nil
}

// stopOf is why a turn ended in the protocol's words, and in ours where those say less.
func stopOf(s agent.Stop) (reason sdk.StopReason, note string) {
	switch s {
	case agent.StopSteps:
		return sdk.StopReasonMaxTurnRequests, ""
	case agent.StopCost:
		return sdk.StopReasonMaxTurnRequests, "The budget of this turn is used up."
	case agent.StopTokens, agent.StopLength:
		return sdk.StopReasonMaxTokens, ""
	case agent.StopRefusal:
		return sdk.StopReasonRefusal, ""
	case agent.StopRepeat:
		return sdk.StopReasonEndTurn, "The agent was stopped: it went in circles."
	}
	return sdk.StopReasonEndTurn, ""
}

// usage tells how full the context is, where that is known.
func (ses *session) usage() {
	u, window := ses.Usage(), ses.Model().Window
	if window <= 0 {
		return
	}
	up := &sdk.SessionUsageUpdate{Size: int(window), Used: int(u.Context)}
	if u.Cost > 0 {
		up.Cost = &sdk.Cost{Amount: u.Cost, Currency: "USD"}
	}
	ses.client.update(sdk.SessionUpdate{UsageUpdate: up})
}

// tokens are those of the whole session.
func (ses *session) tokens() *sdk.Usage {
	u := ses.Usage()
	in, out := int(u.Input+u.CacheRead+u.CacheWrite), int(u.Output)
	return &sdk.Usage{
		InputTokens: in, OutputTokens: out, TotalTokens: in + out, ThoughtTokens: sdk.Ptr(int(u.Reasoning)),
		CachedReadTokens: sdk.Ptr(int(u.CacheRead)), CachedWriteTokens: sdk.Ptr(int(u.CacheWrite)),
	}
}

func (ses *session) notes() {
	for _, n := range ses.Notes() {
		ses.client.think("Note: " + n + "\n")
	}
}

// maxCommands is how many slash commands are offered.
const maxCommands = 200

// offer tells the slash commands, where they are others than before.
func (ses *session) offer(ctx context.Context) {
	ses.offering.Lock()
	defer ses.offering.Unlock()
	srv := ses.client.srv
	list := []sdk.AvailableCommand{}
	var all strings.Builder
	for _, cmd := range ses.Commands(context.WithoutCancel(ctx)) {
		if len(list) == maxCommands {
			break
		}
		a := sdk.AvailableCommand{Name: srv.line(cmd.Name, 128), Description: srv.line(cmd.Description, maxTitle)}
		if cmd.Hint != "" {
			a.Input = &sdk.AvailableCommandInput{Unstructured: &sdk.UnstructuredCommandInput{Hint: srv.line(cmd.Hint, maxTitle)}}
		}
		list = append(list, a)
		all.WriteString(a.Name + "\x00" + a.Description + "\x00" + cmd.Hint + "\x00")
	}
	same := ses.commands == all.String()
	ses.commands = all.String()
	if !same {
		ses.client.update(sdk.SessionUpdate{AvailableCommandsUpdate: &sdk.SessionAvailableCommandsUpdate{AvailableCommands: list}})
	}
}

// contentOf is a prompt as the agent takes it.
func contentOf(blocks []sdk.ContentBlock) ([]abi.Content, error) {
	switch {
	case len(blocks) == 0:
		return nil, invalid("the prompt is empty")
	case len(blocks) > maxBlocks:
		return nil, invalid("a prompt has %d blocks at the most", maxBlocks)
	}
	var out []abi.Content
	for _, b := range blocks {
		c, err := blockOf(b)
		if err != nil {
			return nil, err
		}
		if c.Type != abi.TypeText || strings.TrimSpace(c.Text) != "" { // models refuse blank texts
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, invalid("the prompt is empty")
	}
	return out, nil
}

// blockTypes are those of the protocol.
var blockTypes = []string{"text", "image", "audio", "resource_link", "resource"}

// knownBlocks refuses a prompt with a block of another type, or with a resource
// that holds nothing: the SDK would take them for whatever has members of these
// names, or for empty texts.
func knownBlocks(params json.RawMessage) error {
	var p struct {
		Prompt []struct {
			Type     string `json:"type"`
			Resource struct {
				URI        string           `json:"uri"`
				Text, Blob *json.RawMessage // may be empty
			} `json:"resource"`
		} `json:"prompt"`
	}
	if json.Unmarshal(params, &p) != nil {
		return nil // the SDK says what is wrong
	}
	for _, b := range p.Prompt {
		if !slices.Contains(blockTypes, b.Type) {
			return invalid("this agent takes text, images, resources and links to them, and no block of the type %q", clip(b.Type, 60))
		}
		if r := b.Resource; b.Type == "resource" && r.Text == nil && r.Blob == nil {
			return invalid("the resource %q in the prompt has neither a text nor a blob", clip(r.URI, 200))
		}
	}
	return nil
}

func blockOf(b sdk.ContentBlock) (abi.Content, error) {
	switch {
	case b.Text != nil:
		return abi.TextBlock(b.Text.Text), nil
	case b.Image != nil:
		return imageOf(b.Image.Data, b.Image.MimeType)
	case b.ResourceLink != nil:
		l := b.ResourceLink
		c := abi.Content{Type: abi.TypeResourceLink, URI: l.Uri, Name: l.Name}
		for dst, src := range map[*string]*string{&c.Title: l.Title, &c.Description: l.Description, &c.MIMEType: l.MimeType} {
			if src != nil {
				*dst = *src
			}
		}
		return c, nil
	case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
		r := b.Resource.Resource.TextResourceContents // with its name, which models are not told of resources
		return abi.TextBlock(fmt.Sprintf("From %s:\n%s", r.Uri, r.Text)), nil
	case b.Resource != nil && b.Resource.Resource.BlobResourceContents != nil:
		r := b.Resource.Resource.BlobResourceContents
		if r.MimeType != nil && strings.HasPrefix(*r.MimeType, "image/") {
			return imageOf(r.Blob, *r.MimeType)
		}
		data, err := base64.StdEncoding.DecodeString(r.Blob)
		if err != nil {
			return abi.Content{}, invalid("the embedded resource %q is no base64", clip(r.Uri, 200))
		}
		res := &abi.Resource{URI: r.Uri, Blob: data}
		if r.MimeType != nil {
			res.MIMEType = *r.MimeType
		}
		return abi.Content{Type: abi.TypeResource, Resource: res}, nil
	case b.Audio != nil:
		return abi.Content{}, invalid("this agent takes no audio")
	}
	return abi.Content{}, invalid("a block of the prompt is of no known type")
}

// maxDrawing bounds an SVG image, whose bytes are all tokens.
const maxDrawing = 256 << 10

// imageOf reads a picture. Its own bytes say what it is: models refuse one
// whose type is told wrongly, and the turn with it. None takes SVG as a picture,
// but all can read it.
func imageOf(data, mime string) (abi.Content, error) {
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return abi.Content{}, invalid("the image is no base64")
	}
	if len(b) == 0 || len(b) > maxImage {
		return abi.Content{}, invalid("an image has %d MiB at the most, and is not empty", maxImage>>20)
	}
	if found := http.DetectContentType(b); strings.HasPrefix(found, "image/") {
		mime = found
	}
	if kind, _, _ := strings.Cut(mime, ";"); strings.EqualFold(strings.TrimSpace(kind), "image/svg+xml") {
		switch {
		case !utf8.Valid(b):
			return abi.Content{}, invalid("the SVG image is not UTF-8")
		case len(b) > maxDrawing:
			return abi.Content{}, invalid("an SVG image has %d KiB at the most: models read it as text", maxDrawing>>10)
		}
		return abi.TextBlock("An image, as SVG:\n" + string(b)), nil
	}
	if !strings.HasPrefix(mime, "image/") {
		return abi.Content{}, invalid("%q is not the type of an image", clip(mime, 100))
	}
	return abi.Content{Type: abi.TypeImage, Data: b, MIMEType: mime}, nil
}
