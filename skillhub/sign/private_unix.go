//go:build unix

package sign

import (
	"fmt"
	"os"
)

// private holds a secret key to what ssh wants of one.
func private(file string) error {
	st, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("reading a key: %w", err)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%q can be read by others (mode %04o): chmod 600 it, or make a new key if it may be known", file, st.Mode().Perm())
	}
	return nil
}
