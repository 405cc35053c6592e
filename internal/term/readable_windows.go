package term

import (
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// readable waits until f has input, at most d.
func readable(f *os.File, d time.Duration) (bool, error) {
	ev, err := windows.WaitForSingleObject(windows.Handle(f.Fd()), uint32(max(1, d/time.Millisecond)))
	return ev == windows.WAIT_OBJECT_0, err
}
