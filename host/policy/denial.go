package policy

import "fmt"

func (d *Denial) Error() string {
	return fmt.Sprintf("%s %q is denied by %s: %s", d.Use.Cap, d.Use.Target, d.Layer, d.Why)
}

// Check decides one use. The error is a *Denial.
func (g Grants) Check(u Use) error {
	return &Denial{Use: u, Layer: "grants", Why: "no grant covers it"}
}

// Meet returns what both allow.
func (g Grants) Meet(o Grants) Grants {
	return Grants{append(g.layers[:len(g.layers):len(g.layers)], o.layers...)}
}
