package host

import (
	"errors"
	"fmt"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// Error says why, in one clause.
func (d *Denied) Error() string {
	what := "the call of " + d.Call.Tool
	if d.Use != nil {
		what = useText(*d.Use)
	}
	where := d.Layer
	if d.Where != "" {
		where += ", " + d.Where
	}
	return fmt.Sprintf("%s is denied (%s): %s", what, where, d.Why)
}

// Unwrap makes errors.Is(err, abi.ErrDenied) true.
func (d *Denied) Unwrap() error { return abi.ErrDenied }

// denied turns any error of a check into a *Denied.
func denied(err error, s Spec, c Call) *Denied {
	if d, ok := errors.AsType[*Denied](err); ok {
		return d
	}
	d := &Denied{Call: c, Origin: s.Origin, Layer: "grants", Why: err.Error()}
	if p, ok := errors.AsType[*policy.Denial](err); ok {
		use := p.Use
		d.Use, d.Layer, d.Where, d.Why, d.Final = &use, p.Layer, p.Where, p.Why, p.Final
		if p.Grant.Cap != "" {
			d.Allow = command(Rule{Plugin: subject(s), Grant: &p.Grant})
		}
	}
	return d
}

// model tells the model of a refusal: what, by whom, and what can change it,
// without the command, which is for a person.
func (d *Denied) model() string {
	what := fmt.Sprintf("The call of %s was not allowed", d.Call.Tool)
	if d.Use != nil {
		what = fmt.Sprintf("Denied: %s", useText(*d.Use))
	}
	by := ""
	if d.Where != "" || d.Layer != "person" && d.Layer != "nobody" && d.Layer != "mode" {
		by = " (" + strings.TrimSuffix(d.Layer+", "+d.Where, ", ") + ")"
	}
	tail := "A person can allow it; do not try to get round it."
	if d.Final {
		tail = "No answer can allow it in this session; find a way without it."
	}
	return fmt.Sprintf("%s%s: %s. %s", what, by, strings.TrimSuffix(d.Why, "."), tail)
}
