package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

// The bounds of one client.
const (
	maxSessions = 32 // open at once
	maxRequests = 64 // at once
)

// closeTime is how long a session may take to end.
const closeTime = 10 * time.Second

// server is one client's.
type server struct {
	Options
	ctx  context.Context // ends when everything has to
	conn *sdk.Connection
	in   *input
	out  *output

	requests atomic.Int64

	mu       sync.Mutex
	hello    *sdk.InitializeRequest // nil before initialize
	sessions map[string]*session
	opening  int
	closed   bool
}

func (s *server) connect(in io.Reader, out io.Writer, cancel context.CancelCauseFunc) {
	s.out = &output{w: out, failed: cancel}
	s.in = &input{r: bufio.NewReaderSize(in, 64<<10), out: s.out, ready: make(chan struct{}), ended: s.ctx.Done()}
	s.conn = sdk.NewConnection(s.handle, s.out, s.in)
	s.conn.SetLogger(s.Log)
	close(s.in.ready)
}

// handle takes one message. Those that come after it wait until it is taken.
func (s *server) handle(ctx context.Context, method string, params json.RawMessage) (any, *sdk.RequestError) {
	q := s.in.current()
	defer q.taken()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	if s.requests.Add(1) > maxRequests {
		s.requests.Add(-1)
		return nil, sdk.NewInvalidRequest(map[string]any{"error": fmt.Sprintf("more than %d requests at once", maxRequests)})
	}
	defer s.requests.Add(-1)
	if method != sdk.AgentMethodInitialize && s.client() == nil {
		return nil, sdk.NewInvalidRequest(map[string]any{"error": "initialize comes first"})
	}
	v, err := s.dispatch(ctx, q, method, params)
	if err != nil {
		return nil, s.told(err)
	}
	return v, nil
}

func (s *server) dispatch(ctx context.Context, q request, method string, params json.RawMessage) (any, error) {
	switch method {
	case sdk.AgentMethodInitialize:
		return serve(params, s.initialize)
	case sdk.AgentMethodAuthenticate:
		return serve(params, s.authenticate)
	case sdk.AgentMethodSessionNew:
		return serve(params, func(p *sdk.NewSessionRequest) (any, error) { return s.newSession(ctx, q, p) })
	case sdk.AgentMethodSessionLoad:
		return serve(params, func(p *sdk.LoadSessionRequest) (any, error) { return s.loadSession(ctx, q, p) })
	case sdk.AgentMethodSessionResume:
		return serve(params, func(p *sdk.ResumeSessionRequest) (any, error) { return s.resumeSession(ctx, q, p) })
	case sdk.AgentMethodSessionList:
		return serve(params, func(p *sdk.ListSessionsRequest) (any, error) { return s.listSessions(ctx, q, p) })
	case sdk.AgentMethodSessionClose:
		return serve(params, func(p *sdk.CloseSessionRequest) (any, error) { return s.closeSession(ctx, q, p) })
	case sdk.AgentMethodSessionSetMode:
		return serve(params, s.setMode)
	case sdk.AgentMethodSessionSetModel:
		return serve(params, func(p *sdk.UnstableSetSessionModelRequest) (any, error) { return s.setModel(ctx, q, p) })
	case sdk.AgentMethodSessionSetConfigOption:
		return serve(params, func(p *sdk.SetSessionConfigOptionRequest) (any, error) { return s.setOption(ctx, q, p) })
	case sdk.AgentMethodSessionPrompt:
		if err := knownBlocks(params); err != nil {
			return nil, err
		}
		return serve(params, func(p *sdk.PromptRequest) (any, error) { return s.prompt(ctx, q, p) })
	case sdk.AgentMethodSessionCancel:
		return serve(params, s.cancel)
	}
	return nil, sdk.NewMethodNotFound(method)
}

// serve reads the parameters of a request and answers it.
func serve[P any, V interface {
	*P
	Validate() error
}](params json.RawMessage, answer func(V) (any, error)) (any, error) {
	var p V = new(P)
	err := json.Unmarshal(params, p)
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		return nil, sdk.NewInvalidParams(map[string]any{"error": err.Error()})
	}
	return answer(p)
}

// told is an error as the client gets it. The message is for the person: many
// clients show nothing else.
func (s *server) told(err error) *sdk.RequestError {
	var already *sdk.RequestError
	var own *Error
	switch {
	case errors.As(err, &already):
		return already
	case errors.Is(err, context.Canceled):
		return sdk.NewRequestCancelled(nil)
	}
	text := clip(s.Escape(strings.TrimSpace(err.Error())), maxText)
	code := -32603 // internal error
	if errors.As(err, &own) {
		switch own.Kind {
		case NoModel:
			code = sdk.NewAuthRequired(nil).Code
		case NotFound:
			code = -32002 // resource not found, which the SDK has no name for
		case Invalid:
			code = -32602
		}
	}
	return &sdk.RequestError{Code: code, Message: text}
}

func invalid(format string, args ...any) error {
	return &Error{Kind: Invalid, Text: fmt.Sprintf(format, args...)}
}

// client is what the client said of itself, nil before initialize.
func (s *server) client() *sdk.InitializeRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hello
}

func (s *server) initialize(p *sdk.InitializeRequest) (any, error) {
	s.mu.Lock()
	s.hello = p
	s.mu.Unlock()
	can := sdk.AgentCapabilities{
		LoadSession:        true,
		McpCapabilities:    sdk.McpCapabilities{Http: true, Sse: true},
		PromptCapabilities: sdk.PromptCapabilities{Image: true, EmbeddedContext: true},
		SessionCapabilities: sdk.SessionCapabilities{
			Close: &sdk.SessionCloseCapabilities{}, Resume: &sdk.SessionResumeCapabilities{},
		},
	}
	if s.List != nil {
		can.SessionCapabilities.List = &sdk.SessionListCapabilities{}
	}
	return sdk.InitializeResponse{
		ProtocolVersion:   sdk.ProtocolVersionNumber, // the one that we speak, whatever was asked for
		AgentInfo:         &sdk.Implementation{Name: "elfhost", Title: sdk.Ptr("elfhost"), Version: s.Version},
		AgentCapabilities: can,
		AuthMethods:       []sdk.AuthMethod{}, // keys are in the environment; a missing one is told by session/new
	}, nil
}

func (s *server) authenticate(p *sdk.AuthenticateRequest) (any, error) {
	return nil, invalid("there is no way %q to authenticate: elfhost takes its keys from the environment that it is started in", clip(p.MethodId, 100))
}

// close ends every session.
func (s *server) close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	all := make([]*session, 0, len(s.sessions))
	for _, ses := range s.sessions {
		all = append(all, ses)
	}
	s.mu.Unlock()
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, ses := range all {
		group.Go(func() { errs[i] = s.drop(ctx, ses) })
	}
	group.Wait()
	return errors.Join(errs...)
}
