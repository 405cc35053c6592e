package wasi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/elfhost/elfhost/abi"
)

// Errno is a WASI preview 1 error number. Zero is success.
type Errno uint16

func (e Errno) Error() string { return fmt.Sprintf("wasi errno %d", uint16(e)) }

// The numbers that this package answers. See
// https://github.com/WebAssembly/WASI/blob/snapshot-01/phases/snapshot/docs.md#-errno-enumu16.
const (
	success     Errno = 0
	eACCES      Errno = 2
	eBADF       Errno = 8
	eBUSY       Errno = 10
	eCANCELED   Errno = 11
	eEXIST      Errno = 20
	eFAULT      Errno = 21
	eFBIG       Errno = 22
	eILSEQ      Errno = 25
	eINVAL      Errno = 28
	eIO         Errno = 29
	eISDIR      Errno = 31
	eLOOP       Errno = 32
	eMFILE      Errno = 33
	eNAMETOOLNG Errno = 37
	eNFILE      Errno = 41
	eNOENT      Errno = 44
	eNOSPC      Errno = 51
	eNOSYS      Errno = 52
	eNOTDIR     Errno = 54
	eNOTEMPTY   Errno = 55
	eNOTSOCK    Errno = 57
	eNOTSUP     Errno = 58
	eOVERFLOW   Errno = 61
	ePERM       Errno = 63
	eROFS       Errno = 69
	eSPIPE      Errno = 70
	eXDEV       Errno = 75
	eNOTCAPABLE Errno = 76
)

// errnos are tried in order: the specific before the general, because a
// syscall.Errno is also one of the fs errors.
var errnos = [...]struct {
	err error
	no  Errno
}{
	{abi.ErrDenied, eACCES},
	{context.Canceled, eCANCELED}, {context.DeadlineExceeded, eCANCELED},
	{syscall.ENOTDIR, eNOTDIR}, {syscall.EISDIR, eISDIR}, {syscall.ENOTEMPTY, eNOTEMPTY},
	{syscall.ENAMETOOLONG, eNAMETOOLNG}, {syscall.ELOOP, eLOOP}, {syscall.EXDEV, eXDEV},
	{syscall.ENOSPC, eNOSPC}, {syscall.EROFS, eROFS}, {syscall.EFBIG, eFBIG},
	{syscall.EBUSY, eBUSY}, {syscall.EMFILE, eNFILE}, {syscall.ENFILE, eNFILE},
	{syscall.EPERM, ePERM}, {syscall.EACCES, eACCES},
	{fs.ErrNotExist, eNOENT}, {fs.ErrExist, eEXIST}, {fs.ErrPermission, eACCES},
	{syscall.EINVAL, eINVAL}, {fs.ErrInvalid, eINVAL},
	{fs.ErrClosed, eBADF}, {syscall.EBADF, eBADF}, {os.ErrDeadlineExceeded, eCANCELED},
	{errors.ErrUnsupported, eNOTSUP},
}

// errnoOf tells a guest of err. What is not in the table is an I/O error: its
// text may hold a path of the host, so a guest gets a number only.
func errnoOf(err error) Errno {
	if err == nil || errors.Is(err, io.EOF) {
		return success
	}
	if no, ok := err.(Errno); ok {
		return no
	}
	for _, e := range errnos {
		if errors.Is(err, e.err) {
			return e.no
		}
	}
	return eIO
}
