package app

import (
	"os"
	"syscall"
)

func identify(st os.FileInfo) (identity, bool) {
	s, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, false
	}
	return identity{uint64(s.Dev), s.Ino, s.Size, s.Mtim.Nano(), s.Ctim.Nano()}, true
}
