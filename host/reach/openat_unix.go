//go:build unix && !linux

package reach

import (
	"io/fs"
	"os"
	"syscall"
)

const openNonblock = syscall.O_NONBLOCK

var errLink error = syscall.ELOOP

func filepathLocal(rel string) string { return rel }

func statIdentity(info fs.FileInfo, id *identity) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.dev, id.links = uint64(st.Dev), uint64(st.Nlink)
	}
}

// devNumber is the device of /dev, 0 where it is not one of its own.
func devNumber() uint64 {
	var dev, root identity
	if info, err := os.Stat("/dev"); err == nil {
		statIdentity(info, &dev)
	}
	if info, err := os.Stat("/"); err == nil {
		statIdentity(info, &root)
	}
	if dev.dev == root.dev {
		return 0
	}
	return dev.dev
}
