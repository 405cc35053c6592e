package sign

import (
	"errors"
	"fmt"
)

// ErrPin is in the error for a package that another than the pinned key of its
// publisher signed, or none did.
var ErrPin = errors.New("this is not who signed this publisher's packages so far")

// Pins are the keys of publishers, as they were first accepted: name → key.
type Pins map[string]string

// Check holds a package's publisher and signer against the pins. first says
// that the key would be pinned now. A publisher that signs never stops to.
func (p Pins) Check(publisher string, s *Signer) (first bool, err error) {
	have, pinned := p[publisher]
	switch {
	case publisher == "" || s == nil && !pinned:
		return false, nil
	case s == nil:
		return false, fmt.Errorf("%w: %s signs with %s, and this package is not signed", ErrPin, publisher, Signer{Key: have}.Short())
	case !pinned:
		return true, nil
	case have != s.Key:
		return false, fmt.Errorf("%w: %s signed with %s, and this is %s", ErrPin, publisher, Signer{Key: have}.Short(), s.Short())
	}
	return false, nil
}
