package reach

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// Windows has neither FIFOs nor devices in folders: os.Root refuses reserved
// names such as NUL and COM1.
const openNonblock = 0

var errLink = errors.New("a link is not followed here")

func filepathLocal(rel string) string { return filepath.FromSlash(rel) }

func statIdentity(fs.FileInfo, *identity) {}

func devNumber() uint64 { return 0 }
