package acp

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

// session is an open one.
type session struct {
	*Session
	client *Client
	named  bool // by a turn

	life    context.Context // ends when the session is to be closed
	leave   context.CancelFunc
	beside  chan struct{} // closed when nothing is done beside turns any more; nil: nothing was
	closing sync.Once
	failed  error // of closing

	mu   sync.Mutex
	turn *turn // that runs
	gone bool  // no turn may begin any more

	offering sync.Mutex
	commands string // as the client was told last
}

// turn is the work on one prompt.
type turn struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// begin makes a turn of a session the one that runs.
func (ses *session) begin(ctx context.Context) (context.Context, *turn, error) {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	switch {
	case ses.gone:
		return nil, nil, &Error{NotFound, "the session is closed"}
	case ses.turn != nil:
		return nil, nil, sdk.NewInvalidRequest(map[string]any{"error": "the session works on a prompt: wait for its answer, or cancel it"})
	}
	ctx, cancel := context.WithCancel(ctx)
	ses.turn = &turn{cancel: cancel, done: make(chan struct{})}
	return ctx, ses.turn, nil
}

func (ses *session) end(t *turn) {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	t.cancel()
	ses.turn = nil
	close(t.done)
}

// idle refuses what may not be changed while a turn runs.
func (ses *session) idle() error {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	if ses.turn != nil {
		return sdk.NewInvalidRequest(map[string]any{"error": "the session works on a prompt"})
	}
	return nil
}

// find gives an open session.
func (s *server) find(id sdk.SessionId) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ses := s.sessions[string(id)]; ses != nil {
		return ses, nil
	}
	return nil, &Error{NotFound, fmt.Sprintf("there is no open session %q", clip(string(id), 100))}
}

// wanted checks what a client says of the session that it wants.
func (s *server) wanted(cwd string, more []string, servers []sdk.McpServer, resume string) (Setup, error) {
	switch {
	case !filepath.IsAbs(cwd):
		return Setup{}, invalid("cwd is an absolute path, not %q", clip(cwd, 200))
	case len(more) > 0:
		return Setup{}, invalid("additionalDirectories are not supported: a session works in one folder")
	}
	list, err := serversOf(servers)
	return Setup{Dir: cwd, Resume: resume, Servers: list}, err
}

// open gives a client the session that it wants.
func (s *server) open(ctx context.Context, w Setup) (*session, error) {
	if err := s.admit(); err != nil {
		return nil, err
	}
	w.Client = newClient(s, w.Dir)
	made, err := s.Open(ctx, w)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening--
	if err != nil {
		return nil, err
	}
	ses := &session{Session: made, client: w.Client}
	ses.life, ses.leave = context.WithCancel(s.ctx)
	if s.closed || s.sessions[made.ID] != nil {
		go func() { _ = s.drop(context.WithoutCancel(ctx), ses) }()
		return nil, errGone
	}
	w.Client.attach(made)
	s.sessions[made.ID] = ses
	return ses, nil
}

// admit keeps a place for one more session.
func (s *server) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errGone
	}
	if len(s.sessions)+s.opening >= maxSessions {
		return invalid("%d sessions are open: close one first", maxSessions)
	}
	s.opening++
	return nil
}

// drop ends a session: its turn, then all that it started.
func (s *server) drop(ctx context.Context, ses *session) error {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	ses.mu.Lock()
	ses.gone = true
	t := ses.turn
	ses.mu.Unlock()
	ses.leave()
	if t != nil {
		t.cancel()
		select {
		case <-t.done:
		case <-ctx.Done():
		}
	}
	if ses.beside != nil {
		select {
		case <-ses.beside:
		case <-ctx.Done():
		}
	}
	ses.closing.Do(func() { ses.failed = ses.Close(ctx) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[ses.ID] == ses {
		delete(s.sessions, ses.ID)
	}
	return ses.failed
}

func (s *server) newSession(ctx context.Context, q request, p *sdk.NewSessionRequest) (any, error) {
	q.taken()
	w, err := s.wanted(p.Cwd, p.AdditionalDirectories, p.McpServers, "")
	if err != nil {
		return nil, err
	}
	ses, err := s.open(ctx, w)
	if err != nil {
		return nil, err
	}
	s.greet(q, ses)
	return sdk.NewSessionResponse{
		SessionId: sdk.SessionId(ses.ID), Modes: ses.modes(), Models: ses.models(), ConfigOptions: ses.options(),
	}, nil
}

// again opens an earlier session. One that this client has open already is
// closed first: an editor that lost its window loads it anew.
func (s *server) again(ctx context.Context, id, cwd string, more []string, servers []sdk.McpServer) (*session, error) {
	if id == "" {
		return nil, &Error{NotFound, "there is no session without a name"}
	}
	w, err := s.wanted(cwd, more, servers, id)
	if err != nil {
		return nil, err
	}
	if old, err := s.find(sdk.SessionId(id)); err == nil {
		if err := old.idle(); err != nil {
			return nil, err
		}
		if err := s.drop(ctx, old); err != nil {
			return nil, err
		}
	}
	return s.open(ctx, w)
}

func (s *server) loadSession(ctx context.Context, q request, p *sdk.LoadSessionRequest) (any, error) {
	q.taken()
	ses, err := s.again(ctx, string(p.SessionId), p.Cwd, p.AdditionalDirectories, p.McpServers)
	if err != nil {
		return nil, err
	}
	if err := ses.replay(ctx); err != nil {
		return nil, err
	}
	s.greet(q, ses)
	return sdk.LoadSessionResponse{Modes: ses.modes(), Models: ses.models(), ConfigOptions: ses.options()}, nil
}

func (s *server) resumeSession(ctx context.Context, q request, p *sdk.ResumeSessionRequest) (any, error) {
	q.taken()
	ses, err := s.again(ctx, string(p.SessionId), p.Cwd, p.AdditionalDirectories, p.McpServers)
	if err != nil {
		return nil, err
	}
	s.greet(q, ses)
	return sdk.ResumeSessionResponse{Modes: ses.modes(), Models: ses.models(), ConfigOptions: ses.options()}, nil
}

// greet tells what a client can only take once it knows the session, after the answer.
func (s *server) greet(q request, ses *session) {
	s.out.then(q.id, func() {
		ses.mu.Lock()
		defer ses.mu.Unlock()
		if !ses.gone {
			ses.beside = make(chan struct{})
			go func() {
				defer close(ses.beside)
				ses.attend()
			}()
		}
	})
}

// attend tells a client what it should know of its session, and of the slash
// commands that come and go beside turns.
func (ses *session) attend() {
	var changed <-chan struct{}
	next := func() {
		if ses.Changed != nil {
			changed = ses.Changed()
		}
		ses.offer(ses.life)
	}
	next()
	ses.notes()
	ses.usage()
	for {
		select {
		case <-ses.life.Done():
			return
		case <-changed:
			next()
		}
	}
}

func (s *server) closeSession(ctx context.Context, q request, p *sdk.CloseSessionRequest) (any, error) {
	ses, err := s.find(p.SessionId)
	if err != nil {
		return nil, err
	}
	q.taken()
	return sdk.CloseSessionResponse{}, s.drop(context.WithoutCancel(ctx), ses)
}

// listed is how many sessions a list names at once.
const listed = 50

func (s *server) listSessions(ctx context.Context, q request, p *sdk.ListSessionsRequest) (any, error) {
	q.taken()
	if s.List == nil {
		return nil, sdk.NewMethodNotFound(sdk.AgentMethodSessionList)
	}
	ask := Query{Limit: listed}
	if p.Cwd != nil {
		if ask.Dir = *p.Cwd; !filepath.IsAbs(ask.Dir) {
			return nil, invalid("cwd is an absolute path, not %q", clip(ask.Dir, 200))
		}
	}
	if p.Cursor != nil {
		n, err := strconv.Atoi(*p.Cursor)
		if err != nil || n < 0 {
			return nil, invalid("the cursor is none that this agent gave")
		}
		ask.Offset = n
	}
	list, next, err := s.List(ctx, ask)
	if err != nil {
		return nil, err
	}
	res := sdk.ListSessionsResponse{Sessions: []sdk.SessionInfo{}}
	if next > 0 {
		res.NextCursor = sdk.Ptr(strconv.Itoa(next))
	}
	for _, l := range list {
		in := sdk.SessionInfo{SessionId: sdk.SessionId(l.ID), Cwd: l.Dir, UpdatedAt: sdk.Ptr(l.Updated.UTC().Format(time.RFC3339))}
		if l.Title != "" {
			in.Title = sdk.Ptr(s.line(l.Title, 200))
		}
		res.Sessions = append(res.Sessions, in)
	}
	return res, nil
}

func (s *server) cancel(p *sdk.CancelNotification) (any, error) {
	ses, err := s.find(p.SessionId)
	if err != nil {
		return nil, err
	}
	ses.mu.Lock()
	defer ses.mu.Unlock()
	if ses.turn != nil {
		ses.turn.cancel()
	}
	return nil, nil
}
