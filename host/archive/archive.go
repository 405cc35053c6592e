// Package archive keeps agents' sessions in a store: it is the journal that
// they write, resumes them whatever ended them, forks them, says which session
// may see which, writes them out, and replays them.
package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/store"
)

// Info is what is known of a session besides what was said.
type Info = store.Session

// The errors that a person may meet.
var (
	ErrBadID    = store.ErrBadID
	ErrNotFound = store.ErrNotFound
	ErrSeveral  = errors.New("several sessions have a name that begins so")
	ErrBusy     = store.ErrBusy
	ErrFenced   = store.ErrFenced
	ErrDamaged  = store.ErrDamaged
	ErrNewer    = store.ErrNewer
	ErrFull     = store.ErrFull
	ErrLocked   = store.ErrLocked
	ErrFile     = store.ErrFile
)

// CheckID tells whether a text can be the name of a session.
func CheckID(id string) error { return store.CheckID(id) }

// NewID makes a name that says nothing and cannot be guessed.
func NewID() string { return store.NewID() }

// Archive is the sessions of one store. It opens the file at its first use,
// so that having one costs nothing. It is safe for concurrent use; Close it.
//
// It is the agent.Journal and agent.Drafter of the sessions that it gives
// out, and of the children that they start.
type Archive struct {
	Path string
	// Scrub takes secrets out of the JSON of a record. Nil: as it is.
	Scrub func([]byte) []byte
	// Look makes no store where there is none, and reads from one in a place
	// that cannot be written. For those who read alone.
	Look bool

	mu     sync.Mutex
	store  *store.Store
	closed bool
	kept   map[string]*kept
}

// kept is a session that this process writes.
type kept struct {
	mu     sync.Mutex
	info   Info
	writer *store.Writer // nil before the first record
}

var (
	_ agent.Journal = (*Archive)(nil)
	_ agent.Drafter = (*Archive)(nil)
)

func (a *Archive) open(ctx context.Context) (*store.Store, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, errors.New("the archive is closed")
	}
	if a.store == nil {
		st, err := a.connect(ctx)
		if err != nil {
			return nil, err
		}
		a.store = st
	}
	return a.store, nil
}

// errNone says that there is no store, and so no session.
var errNone = fmt.Errorf("%w: none was kept yet", ErrNotFound)

func (a *Archive) connect(ctx context.Context) (*store.Store, error) {
	if !a.Look {
		return store.Open(ctx, a.Path)
	}
	if _, err := os.Stat(a.Path); errors.Is(err, fs.ErrNotExist) {
		return nil, errNone
	}
	st, err := store.Open(ctx, a.Path)
	if !errors.Is(err, ErrFile) {
		return st, err
	}
	return store.OpenRead(ctx, a.Path)
}

// giveBack is how long giving back sessions may take. Closing the store gives
// them back as well: another process that keeps it locked is not waited for.
const giveBack = 2 * time.Second

var errLate = errors.New("giving a session back takes too long")

// Close gives back all sessions. What they were doing is interrupted.
func (a *Archive) Close(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	ctx, cancel := context.WithTimeoutCause(ctx, giveBack, errLate)
	defer cancel()
	var errs []error
	for _, k := range a.kept {
		if err := k.close(ctx); !errors.Is(err, errLate) {
			errs = append(errs, err)
		}
	}
	a.kept = nil
	if a.store != nil {
		errs = append(errs, a.store.Close())
		a.store = nil
	}
	return errors.Join(errs...)
}

func (k *kept) close(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.writer == nil {
		return nil
	}
	return k.writer.Close(ctx)
}

// Start begins a session. It is written down, and can be found, with its first
// record; one in which nothing was said leaves nothing behind.
func (a *Archive) Start(m Info) (*agent.Session, error) {
	if err := CheckID(m.ID); err != nil {
		return nil, err
	}
	a.expect(m)
	return agent.New(m.ID, a), nil
}

// expect announces a session that is about to write.
func (a *Archive) expect(m Info) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept == nil {
		a.kept = map[string]*kept{}
	}
	if a.kept[m.ID] == nil {
		a.kept[m.ID] = &kept{info: m}
	}
}

// Release gives a session back, so that another process can go on with it.
func (a *Archive) Release(ctx context.Context, id string) error {
	a.mu.Lock()
	k := a.kept[id]
	delete(a.kept, id)
	a.mu.Unlock()
	if k == nil {
		return nil
	}
	return k.close(ctx)
}

func (a *Archive) find(id string) *kept {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kept[id]
}

// Append implements agent.Journal.
func (a *Archive) Append(ctx context.Context, session string, r agent.Record) error {
	w, k, err := a.writer(ctx, session, &r)
	if err != nil {
		return err
	}
	rec, err := a.encode(r)
	if err != nil {
		return err
	}
	said := r.Kind == agent.RecordMessage && r.Message.Role == model.RoleAssistant
	if err := w.Append(ctx, rec, said, moves(r)...); err != nil {
		return err
	}
	if r.Kind == agent.RecordRun {
		return a.child(ctx, k.info, *r.Run)
	}
	return nil
}

// encode makes the record that the store keeps.
func (a *Archive) encode(r agent.Record) (store.Record, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return store.Record{}, fmt.Errorf("writing record %d: %w", r.Seq, err)
	}
	if a.Scrub != nil {
		if body = a.Scrub(body); !json.Valid(body) {
			return store.Record{}, fmt.Errorf("writing record %d: without its secrets it is no JSON any more", r.Seq)
		}
	}
	return store.Record{Seq: r.Seq, Time: r.Time, Kind: string(r.Kind), Body: body}, nil
}

// child follows a sub-agent: its session is a child of the one that started
// it, and is given back when it has ended.
func (a *Archive) child(ctx context.Context, parent Info, st agent.RunState) error {
	if CheckID(st.Session) != nil {
		return nil
	}
	if st.Status != agent.Running {
		return a.Release(ctx, st.Session)
	}
	a.expect(Info{
		ID: st.Session, Origin: parent.Origin, Parent: parent.ID, Title: Title(first(st.Name, st.Prompt)), Agent: st.Agent, Model: st.Model,
	})
	return nil
}

// writer finds the writer of a session; with its first record it is made.
func (a *Archive) writer(ctx context.Context, id string, r *agent.Record) (*store.Writer, *kept, error) {
	k := a.find(id)
	if k == nil {
		return nil, nil, fmt.Errorf("session %q: %w here", id, store.ErrNotFound)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.writer != nil {
		return k.writer, k, nil
	}
	st, err := a.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	if k.info.Title == "" && r != nil && r.Message != nil {
		k.info.Title = Title(r.Message.Text())
	}
	k.info.Title = a.scrub(k.info.Title)
	k.writer, err = st.Create(ctx, k.info)
	return k.writer, k, err
}

// Draft implements agent.Drafter.
func (a *Archive) Draft(ctx context.Context, session string, p agent.Piece) error {
	w, _, err := a.writer(ctx, session, nil)
	if err != nil {
		return err
	}
	return w.Draft(ctx, store.Piece{Kind: string(p.Kind), Text: a.scrub(p.Text)})
}

// drafted is what was being said in a session when it was cut off, as a
// message; nil: nothing. Here is the whole of a secret whose pieces were kept
// one by one.
func (a *Archive) drafted(ctx context.Context, st *store.Store, id string) (*model.Message, error) {
	pieces, err := st.Drafted(ctx, id)
	if err != nil || len(pieces) == 0 {
		return nil, err
	}
	m := &model.Message{Role: model.RoleAssistant}
	for _, p := range pieces {
		text := a.scrub(p.Text)
		if agent.Kind(p.Kind) == agent.KindThinking {
			m.Blocks = append(m.Blocks, model.Block{Thinking: &model.Thinking{Text: text}})
			continue
		}
		c := abi.TextBlock(text)
		m.Blocks = append(m.Blocks, model.Block{Content: &c})
	}
	return m, nil
}

// scrub takes secrets out of a text.
func (a *Archive) scrub(s string) string {
	if a.Scrub == nil || s == "" {
		return s
	}
	return string(a.Scrub([]byte(s)))
}

// Keeps reports whether this archive writes the session, and has begun to.
func (a *Archive) Keeps(id string) bool {
	k := a.find(id)
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.writer != nil
}

// Describe changes the title and the model that are told of a session; an empty
// one stays as it is. A session that is not kept, or holds nothing yet, is
// passed over.
func (a *Archive) Describe(ctx context.Context, id, title, model string) error {
	k := a.find(id)
	if k == nil {
		return nil
	}
	k.mu.Lock()
	w := k.writer
	k.mu.Unlock()
	if w == nil {
		return nil
	}
	return w.Describe(ctx, a.scrub(title), model)
}

// Approval is a decision about a call, or about a use inside one.
type Approval struct {
	Tool    string `json:"tool"`
	Allowed bool   `json:"allowed"`
	By      string `json:"by"`
	Cap     string `json:"cap,omitempty"`
	Verb    string `json:"verb,omitempty"`
	Target  string `json:"target,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Where   string `json:"where,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// noteApproval is the kind of a note that holds an Approval.
const noteApproval = "approval"

// Approve keeps a decision about a call of a session, and returns when that is
// durable. Sessions that are not kept are passed over.
func (a *Archive) Approve(ctx context.Context, session, call string, d Approval) error {
	if !a.Keeps(session) {
		return nil
	}
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if a.Scrub != nil {
		body = a.Scrub(body)
	}
	st, err := a.open(ctx)
	if err != nil {
		return err
	}
	return st.AddNote(ctx, session, store.Note{Time: time.Now(), Kind: noteApproval, Call: call, Body: body})
}

// Remember keeps a value of a session under a name, in place of the one
// before, and returns when that is durable. Sessions that are not kept are
// passed over.
func (a *Archive) Remember(ctx context.Context, session, name string, v any) error {
	if !a.Keeps(session) {
		return nil
	}
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if a.Scrub != nil {
		body = a.Scrub(body)
	}
	st, err := a.open(ctx)
	if err != nil {
		return err
	}
	return st.SetFact(ctx, session, name, body)
}

// Remembered gives what Remember kept of a session, by its names.
func (a *Archive) Remembered(ctx context.Context, session string) (map[string]json.RawMessage, error) {
	st, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	return st.Facts(ctx, session)
}

// moves are the states that a record brings calls into.
func moves(r agent.Record) []store.Move {
	switch r.Kind {
	case agent.RecordMessage:
		var out []store.Move
		for _, c := range r.Message.Calls() {
			out = append(out, store.Move{Call: c.ID, Tool: c.Name, To: store.Pending})
		}
		return out
	case agent.RecordStart:
		return []store.Move{{Call: r.Call.ID, To: store.Running, Repeatable: r.Looks}}
	case agent.RecordResult:
		to := store.Failed // skipped ones, too
		switch r.Outcome {
		case agent.Done:
			to = store.Done
		case agent.Unknown:
			to = store.Unknown
		}
		return []store.Move{{Call: r.Result.ID, To: to}}
	}
	return nil
}

// Title makes one short line of a text.
func Title(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	const most = 80
	runes := []rune(strings.TrimSpace(line))
	if len(runes) > most {
		runes = append(runes[:most-1], '…')
	}
	return string(runes)
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
