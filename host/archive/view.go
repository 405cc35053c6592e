package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/store"
)

// Query chooses sessions, see store.Query.
type Query = store.Query

// List finds sessions, the last used first.
func (a *Archive) List(ctx context.Context, q Query) ([]Info, error) {
	st, err := a.open(ctx)
	if errors.Is(err, errNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return st.List(ctx, q)
}

// Info tells what is known of a session.
func (a *Archive) Info(ctx context.Context, id string) (Info, error) {
	st, err := a.open(ctx)
	if err != nil {
		return Info{}, err
	}
	return st.Session(ctx, id)
}

// Find gives the one session whose name begins so. It is for people: a model
// names sessions in full.
func (a *Archive) Find(ctx context.Context, prefix string) (Info, error) {
	if err := CheckID(prefix); err != nil { // an empty one would be the beginning of every name
		return Info{}, err
	}
	st, err := a.open(ctx)
	if err != nil {
		return Info{}, err
	}
	if in, err := st.Session(ctx, prefix); !errors.Is(err, ErrNotFound) {
		return in, err
	}
	found, err := st.List(ctx, Query{Prefix: prefix, Limit: 2})
	switch {
	case err != nil:
		return Info{}, err
	case len(found) == 0:
		return Info{}, fmt.Errorf("session %.64q: %w", prefix, ErrNotFound)
	case len(found) > 1:
		return Info{}, fmt.Errorf("session %.64q: %w", prefix, ErrSeveral)
	}
	return found[0], nil
}

// Sees reports whether one session may see another: itself, what it started,
// and if nobody started it, all sessions of its origin. ErrNotFound says no.
func (a *Archive) Sees(ctx context.Context, viewer, id string) error {
	st, err := a.open(ctx)
	if err != nil {
		return err
	}
	return st.Sees(ctx, viewer, id)
}

// Delete removes a session and those that it started, and names them.
func (a *Archive) Delete(ctx context.Context, id string) ([]string, error) {
	st, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	return st.Delete(ctx, id)
}

// Unsettled lists the calls of a session, and of those that it started, that
// were interrupted inside their tool and may have had effects.
func (a *Archive) Unsettled(ctx context.Context, id string) ([]store.Lost, error) {
	st, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	return st.Lost(ctx, id)
}

// Transcript is a whole session, as it is kept.
type Transcript struct {
	Info    Info
	Records []agent.Record
	Notes   []store.Note
	Draft   *model.Message // what the model was saying when it was cut off; nil: nothing
}

// Load reads a session without claiming it: it may be at work.
func (a *Archive) Load(ctx context.Context, id string) (*Transcript, error) {
	st, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	t := &Transcript{}
	if t.Info, err = st.Session(ctx, id); err != nil {
		return nil, err
	}
	if t.Records, err = load(ctx, st, id, t.Info.Records); err != nil {
		return nil, err
	}
	if t.Notes, err = st.Notes(ctx, id); err != nil {
		return nil, err
	}
	t.Draft, err = a.drafted(ctx, st, id)
	return t, err
}
