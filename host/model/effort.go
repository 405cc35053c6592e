package model

import (
	"fmt"
	"strings"
)

// Effort is how much a model may think before it answers.
type Effort string

// The efforts. EffortDefault leaves it to the model. A provider takes the
// nearest that a model has, and none where a model cannot be told.
const (
	EffortDefault Effort = ""
	EffortNone    Effort = "none"
	EffortLow     Effort = "low"
	EffortMedium  Effort = "medium"
	EffortHigh    Effort = "high"
)

// Efforts are those that can be asked for, the least first.
func Efforts() []Effort { return []Effort{EffortNone, EffortLow, EffortMedium, EffortHigh} }

// ParseEffort reads what a person or a definition wrote; "default", like
// nothing, leaves it to the model.
func ParseEffort(s string) (Effort, error) {
	word := Effort(strings.ToLower(strings.TrimSpace(s)))
	if word == EffortDefault || word == "default" {
		return EffortDefault, nil
	}
	var names []string
	for _, e := range Efforts() {
		if e == word {
			return e, nil
		}
		names = append(names, string(e))
	}
	return EffortDefault, fmt.Errorf("there is no effort %q: it is one of %s, or default for the model's own", s, strings.Join(names, ", "))
}
