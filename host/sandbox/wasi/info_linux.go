package wasi

import (
	"io/fs"
	"syscall"
	"time"
)

// fileTimes gives the times of access, modification and change.
func fileTimes(fi fs.FileInfo) [3]time.Time {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return [3]time.Time{fi.ModTime(), fi.ModTime(), fi.ModTime()}
	}
	return [3]time.Time{time.Unix(st.Atim.Unix()), fi.ModTime(), time.Unix(st.Ctim.Unix())}
}

func sameFile(a, b fs.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, ok2 := b.Sys().(*syscall.Stat_t)
	return ok && ok2 && x.Dev == y.Dev && x.Ino == y.Ino
}
