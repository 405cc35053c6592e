package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
)

// ServeOptions say what is shown to MCP clients.
type ServeOptions struct {
	// Registry is what clients see and call. Every call passes its Invoke, with
	// its gate: a client can do nothing that an agent behind it could not.
	Registry     *host.Registry
	Version      string
	Instructions string
	Session      string // host.Caller's
	// Prepare may complete a call before it is made: receipts and the like.
	Prepare   func(*host.Call)
	Prompts   []Prompt
	Resources []Resource
	// Offers gives the prompts and resources of the moment, in the place of those
	// above: it is asked whenever a client lists them, and when the registry changes.
	Offers func(context.Context) ([]Prompt, []Resource)
	// Powerless reports a tool of which every use is refused at this moment,
	// unless a person is asked: it is listed for clients only that can ask one. It
	// is asked when the registry changes, and when Changed says so. Nil: none is.
	Powerless func(host.Tool) bool
	// Changed gives a channel that is closed when Offers or Powerless may say
	// something else. Nil: they change with the registry alone.
	Changed func() <-chan struct{}
	// Secret seals what clients keep for us; servers with the same secret can
	// stand in for each other. "": of this process alone.
	Secret string
	// Shared is what such servers know of each other. Nil: of this process alone.
	Shared Shared
}

// Prompt is a text that a client's person may pick.
type Prompt struct {
	Name, Title, Description string
	Args                     []PromptArg
	Render                   func(ctx context.Context, args map[string]string) ([]Message, error)
}

// PromptArg is one argument of a Prompt.
type PromptArg struct {
	Name, Description string
	Required          bool
}

// Resource is something that a client may read.
type Resource struct {
	URI, Name, Description, MIMEType string
	Read                             func(context.Context) (abi.Resource, error)
}

// Bridge shows a Registry to MCP clients. Make it with NewBridge; serve it with
// Serve (stdio) or Handler (HTTP); Close it.
type Bridge struct {
	opt    ServeOptions
	srv    *server.MCPServer
	seal   seal
	rounds rounds
	// sessions are those over HTTP of clients from before 2026-07-28.
	sessions *sealedSessions
	calls    atomic.Int64
	stats    stats
	life     context.Context // until Close
	stop     context.CancelFunc
	done     sync.WaitGroup

	changes   changes
	offering  sync.Mutex
	offered   [2]string // the prompts and resources that clients were offered last
	shown     []byte    // the digest of the tools that they were; show's own
	powerless atomic.Pointer[map[string]bool]
}

// NewBridge makes a bridge; it follows the registry until Close.
func NewBridge(o ServeOptions) *Bridge { return newBridge(o) }

// newBridge takes further options for the build that the conformance suite tests.
func newBridge(o ServeOptions, more ...server.ServerOption) *Bridge {
	b := &Bridge{opt: o, seal: newSeal(o.Secret)}
	if b.opt.Shared == nil {
		b.opt.Shared = new(local)
	}
	b.rounds.seal, b.rounds.shared = b.seal, b.opt.Shared
	b.sessions = &sealedSessions{seal: b.seal, now: time.Now, shared: b.opt.Shared}
	opts := []server.ServerOption{
		server.WithToolCapabilities(true), server.WithLogger(quiet), server.WithRecovery(), server.WithLogging(), server.WithElicitation(),
		server.WithTitle("elfhost"), server.WithDescription("Tools that run in a sandbox, behind one gate"), server.WithInstructions(o.Instructions),
	}
	hooks := &server.Hooks{}
	hooks.AddAfterListTools(b.withhold)
	opts = append(append(opts, b.offers(hooks)...), server.WithHooks(hooks))
	b.srv = server.NewMCPServer("elfhost", o.Version, append(opts, more...)...)
	changed := o.Registry.Changed()
	offers := b.offersChanged()
	b.offer(context.Background())
	ctx, stop := context.WithCancel(context.Background())
	b.life, b.stop = ctx, stop
	b.show()
	for list, served := range [lists]bool{true, o.Offers != nil || len(o.Prompts) > 0, o.Offers != nil || len(o.Resources) > 0} {
		if served {
			b.changes.begin(list)
		}
	}
	b.done.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
				changed = o.Registry.Changed()
				b.show()
			case <-offers:
				offers = b.offersChanged()
				b.show()
			}
			b.offer(ctx)
		}
	})
	return b
}

// Close stops following the registry, and ends the calls that wait for a person.
func (b *Bridge) Close() {
	b.stop()
	b.rounds.close()
	b.done.Wait()
}

// request is a tools/call as it is carried out.
type request struct {
	tool  string
	args  json.RawMessage
	token any // of progress; nil: the client does not want it
	peer  *peer
	steps *reporter // nil: made from token
	later *later    // nil: nothing may follow the answer
}

// call carries one tools/call out for mcp-go.
func (b *Bridge) call(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	q := request{tool: req.Params.Name, args: req.Params.RawArguments, peer: b.peer(ctx)}
	if len(q.args) == 0 && req.Params.Arguments != nil {
		q.args, _ = json.Marshal(req.Params.Arguments)
	}
	if req.Params.Meta != nil {
		q.token = req.Params.Meta.ProgressToken
	}
	if q.peer.elicits && server.IsModernRequest(ctx) {
		return b.round(ctx, q, req.Params.MultiRoundTripParams), nil
	}
	return answerOf(b.invoke(ctx, q)), nil
}

// invoke takes a call through the one door.
func (b *Bridge) invoke(ctx context.Context, q request) (res abi.Result, refused []host.Denied) {
	began := time.Now()
	c := host.Call{
		ID: "mcp-" + strconv.FormatInt(b.calls.Add(1), 10), Tool: q.tool, Args: q.args,
		Caller: host.Caller{Session: b.opt.Session, Agent: clientName(ctx)},
		Denied: func(d host.Denied) { refused = append(refused, d) },
	}
	// Two clients that ask the same are two persons, perhaps.
	c.Caller.Asked = c.ID
	steps := q.steps
	if steps == nil && q.token != nil {
		steps = b.reporter(ctx, q.token)
	}
	if steps != nil {
		c.Progress = steps.report
	}
	x := q.peer.exchange
	if x != nil {
		x.call = c.ID
	}
	if q.later != nil {
		c.Later = q.later.add
	}
	if b.opt.Prepare != nil {
		b.opt.Prepare(&c)
	}
	b.stats.running.Add(1)
	inner := context.WithValue(ctx, askKey{}, q.peer)
	if q.peer.memory != nil {
		inner = host.WithMemory(inner, q.peer.memory)
	}
	res = b.opt.Registry.Invoke(inner, c)
	b.stats.running.Add(-1)
	steps.flush()
	outcome := "ok"
	if x.question() != nil {
		outcome = "asked"
	} else if res.IsError {
		outcome = "error"
		if len(refused) > 0 {
			outcome = "denied"
		}
	}
	name := c.Tool
	if !b.opt.Registry.Has(name) { // clients may call anything
		name = "(unknown)"
	}
	b.stats.add(name, outcome, time.Since(began))
	return res, refused
}

// peer finds out how a person is reached behind a call.
func (b *Bridge) peer(ctx context.Context) *peer {
	p := &peer{srv: b.srv, elicits: elicits(ctx)}
	s := server.ClientSessionFromContext(ctx)
	switch s := s.(type) {
	case nil:
	case *stdioClient:
		p.alone = true
	default:
		if _, made, err := b.sessions.read(s.SessionID()); err == nil {
			p.memory = &answers{b.opt.Shared, digest(s.SessionID()), made.Add(sessionLife)}
		}
	}
	if s, ok := s.(server.SessionWithClientInfo); ok && s.GetClientCapabilities().Elicitation != nil {
		p.elicits = true
	}
	return p
}

func clientName(ctx context.Context) string {
	if s, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo); ok {
		if name, _ := told("", s.GetClientInfo().Name, 60); name != "" {
			return "mcp client " + name
		}
	}
	return "mcp client"
}

// answerOf is a result as clients get it. Where a person of this machine could
// allow what was refused, the client's model is told the command to pass on.
func answerOf(res abi.Result, refused []host.Denied) *mcp.CallToolResult {
	out := &mcp.CallToolResult{IsError: res.IsError, Content: []mcp.Content{}}
	for _, c := range res.Content {
		out.Content = append(out.Content, contentOf(c))
	}
	if len(res.Structured) > 0 {
		out.StructuredContent, out.RawStructuredContent = res.Structured, res.Structured
	}
	for _, c := range allowing(refused) {
		out.Content = append(out.Content, contentOf(c))
	}
	return out
}

// allowing tells, once each, what would allow what was refused.
func allowing(refused []host.Denied) (out []abi.Content) {
	var seen []string
	for _, d := range refused {
		if d.Allow != "" && !slices.Contains(seen, d.Allow) {
			seen = append(seen, d.Allow)
			out = append(out, abi.TextBlock("A person at this machine can allow it with: "+d.Allow))
		}
	}
	return out
}

func contentOf(c abi.Content) mcp.Content {
	var note mcp.Annotated
	if len(c.Annotations) > 0 {
		a := &mcp.Annotations{}
		if json.Unmarshal(c.Annotations, a) == nil {
			note.Annotations = a
		}
	}
	switch c.Type {
	case abi.TypeImage:
		return mcp.ImageContent{Annotated: note, Type: "image", Data: base64.StdEncoding.EncodeToString(c.Data), MIMEType: c.MIMEType}
	case abi.TypeAudio:
		return mcp.AudioContent{Annotated: note, Type: "audio", Data: base64.StdEncoding.EncodeToString(c.Data), MIMEType: c.MIMEType}
	case abi.TypeResourceLink:
		return mcp.ResourceLink{Annotated: note, Type: "resource_link", URI: c.URI, Name: c.Name, Title: c.Title, Description: c.Description, MIMEType: c.MIMEType}
	case abi.TypeResource:
		if c.Resource != nil {
			return mcp.EmbeddedResource{Annotated: note, Type: "resource", Resource: resourceOf(*c.Resource)}
		}
	}
	return mcp.TextContent{Annotated: note, Type: "text", Text: c.Text}
}

func resourceOf(r abi.Resource) mcp.ResourceContents {
	if len(r.Blob) > 0 {
		return mcp.BlobResourceContents{URI: r.URI, MIMEType: r.MIMEType, Blob: base64.StdEncoding.EncodeToString(r.Blob)}
	}
	return mcp.TextResourceContents{URI: r.URI, MIMEType: r.MIMEType, Text: r.Text}
}
