package abi

import (
	"errors"
	"fmt"
	"strings"
)

// CheckName holds for names of plugins, publishers' packages and skills: 1 to
// 64 lower-case ASCII letters, digits and '-', a letter first, no '-' at the
// end or doubled, and not a device name of Windows, where a folder named so
// cannot be made.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("a name is missing")
	case len(name) > 64:
		return fmt.Errorf("name %.16q… is longer than 64 bytes", name)
	case !plain(name):
		return fmt.Errorf("name %q: lower-case letters, digits and '-' only", name)
	case name[0] < 'a' || name[0] > 'z' || name[len(name)-1] == '-' || strings.Contains(name, "--"):
		return fmt.Errorf("name %q: a letter first, and no '-' at the end or doubled", name)
	}
	switch name {
	case "con", "prn", "aux", "nul", "conin", "conout", "clock":
		return fmt.Errorf("name %q is a device on Windows", name)
	}
	if len(name) == 4 && (name[:3] == "com" || name[:3] == "lpt") && name[3] >= '0' && name[3] <= '9' {
		return fmt.Errorf("name %q is a device on Windows", name)
	}
	return nil
}

func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-') {
			return false
		}
	}
	return true
}
