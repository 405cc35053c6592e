//go:build !linux && !darwin

package reach

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// alone: on Windows a job object ends what its host started.
func alone(*exec.Cmd) error { return errors.ErrUnsupported }

func keeperMain() int {
	fmt.Fprintln(os.Stderr, "elfhost: error: the keeper of programs works on Linux and macOS only")
	return 1
}
