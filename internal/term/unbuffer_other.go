//go:build !unix || solaris || aix

package term

import (
	"errors"
	"os"
)

// unbuffer is not to be had here.
func unbuffer(*os.File) (func(), error) { return nil, errors.ErrUnsupported }
