package app

import (
	"errors"
	"fmt"
	"testing"

	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/archive"
	"github.com/elfhost/elfhost/internal/fault"
)

// What stands in the way of writing a session down is never the model's fault.
func TestSessionFault(t *testing.T) {
	for _, c := range []struct {
		err  error
		code string
	}{
		{archive.ErrNotFound, "E1505"}, {archive.ErrBadID, "E1505"}, {archive.ErrSeveral, "E1505"},
		{archive.ErrBusy, "E1506"}, {archive.ErrFenced, "E1506"},
		{archive.ErrDamaged, "E1507"}, {archive.ErrNewer, "E1507"},
		{archive.ErrFull, "E1501"}, {archive.ErrLocked, "E1501"}, {archive.ErrFile, "E1501"},
		{errors.New("whatever a journal says"), "E1501"},
	} {
		err := SessionFault(fmt.Errorf("%w: session %q: %w", agent.ErrJournal, "ses_x", c.err))
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != c.code || f.Hint == "" || !errors.Is(err, c.err) {
			t.Errorf("%v became %#v", c.err, f)
		}
	}
	var f *fault.Error
	if err := SessionFault(errors.New("the model is away")); errors.As(err, &f) {
		t.Errorf("%v has the code %s", err, f.Code)
	}
	if SessionFault(nil) != nil {
		t.Error("an error from nothing")
	}
}
