package policy

import "fmt"

func (d *Denial) Error() string {
	where := ""
	if d.Where != "" {
		where = " (" + d.Where + ")"
	}
	verb := ""
	if d.Use.Verb != "" {
		verb = d.Use.Verb + " "
	}
	return fmt.Sprintf("%s %s%q is denied by %s%s: %s", d.Use.Cap, verb, d.Use.shown(), d.Layer, where, d.Why)
}

// shown is the target as an error may print it: without a URL's user-info,
// query or fragment, where secrets travel (NET-14).
func (u Use) shown() string {
	return shownTarget(u)
}
