package policy

// Grants is a conjunction of layers; in each, any one grant may allow a use.
// The zero value allows nothing.
type Grants struct {
	layers []layer
}

// layer is one side of a Meet.
type layer struct {
	name   string
	grants []Grant
}
