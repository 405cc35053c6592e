package app

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/archive"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/internal/fault"
)

// Every end that a model brings about says what can be done about it.
func TestModelFaults(t *testing.T) {
	for _, c := range []struct {
		err        error
		code, hint string
	}{
		{&model.Error{Code: model.ErrAuth, Provider: "x"}, "E1103", "key"},
		{&model.Error{Code: model.ErrNotFound, Provider: "x"}, "E1103", "`elfhost models x`"},
		{&model.Error{Code: model.ErrQuota, Provider: "x"}, "E1103", "account"},
		{&model.Error{Code: model.ErrServer, Provider: "x"}, "E1103", "later"},
		{&model.Error{Code: model.ErrUnavailable, Provider: "x"}, "E1103", "network"},
		{&model.Error{Code: model.ErrTruncated, Provider: "x"}, "E1103", "kind"},
		{&model.Error{Code: model.ErrRateLimit, Provider: "x"}, "E1102", "run -c"},
		{fmt.Errorf("%w: too long", agent.ErrNoRoom), "E1103", "larger window"},
		{fmt.Errorf("x: %w", archive.ErrFull), "E1501", "room"},
		{fault.New("E1402", "as it is", "y"), "E1402", "as it is"},
		{errors.New("z"), "E1103", ""},
	} {
		var f *fault.Error
		if err := modelFault(c.err); !errors.As(err, &f) || f.Code != c.code || !strings.Contains(f.Hint, c.hint) || !errors.Is(err, c.err) {
			t.Errorf("%v: %+v", c.err, f)
		}
	}
	if err := modelFault(nil); err != nil {
		t.Error(err)
	}
}
