package wasi

import (
	"context"
	"encoding/binary"
	"io"
	"time"
)

// Clock identifiers of preview 1.
const (
	clockRealtime  = 0
	clockMonotonic = 1
	clockCPU       = 3 // the process's and the thread's (2) are not served
)

// Coarse is the step of the clocks of a guest without clock.fine. It is too
// wide to time the host's caches with.
const Coarse = time.Millisecond

func (s *System) resolution() time.Duration {
	if s.cfg.FineClock {
		return 1
	}
	return Coarse
}

// clock reads a clock in nanoseconds, in steps of the resolution.
func (s *System) clock(id uint32) (uint64, Errno) {
	now := s.cfg.Now()
	var ns int64
	switch {
	case id == clockRealtime:
		ns = now.UnixNano()
	case id == clockMonotonic:
		// Counted from the epoch rather than from the start of the process: a
		// guest whose image was made earlier, elsewhere, never sees it go back.
		ns = s.start.UnixNano() + int64(now.Sub(s.start))
	case id <= clockCPU:
		return 0, eNOTSUP
	default:
		return 0, eINVAL
	}
	return uint64(ns - ns%int64(s.resolution())), success
}

func clockResGet(_ context.Context, s *System, m Memory, p []uint64) Errno {
	switch id := uint32(p[0]); {
	case id > clockCPU:
		return eINVAL
	case id > clockMonotonic:
		return eNOTSUP
	}
	return wrote(m.putU64(uint32(p[1]), uint64(s.resolution())))
}

func clockTimeGet(_ context.Context, s *System, m Memory, p []uint64) Errno {
	t, no := s.clock(uint32(p[0]))
	if no != success {
		return no
	}
	return wrote(m.putU64(uint32(p[2]), t))
}

// randomGet fills in steps, so that a huge length costs no host memory.
func randomGet(_ context.Context, s *System, m Memory, p []uint64) Errno {
	off, n := uint32(p[0]), uint32(p[1])
	b, ok := m.View(off, n)
	if !ok {
		return eFAULT
	}
	if _, err := io.ReadFull(s.cfg.Rand, b); err != nil {
		return eIO
	}
	m.wrote(off, b)
	return success
}

const (
	subscriptionSize = 48
	eventSize        = 32
	maxSubscriptions = 1024

	eventClock   = 0
	eventFdRead  = 1
	eventFdWrite = 2
)

// pollOneoff waits for the nearest clock. Files are always ready. The wait
// ends early with the context, which ends the call.
func pollOneoff(ctx context.Context, s *System, m Memory, p []uint64) Errno {
	in, out, n, res := uint32(p[0]), uint32(p[1]), uint32(p[2]), uint32(p[3])
	if n == 0 || n > maxSubscriptions {
		return eINVAL
	}
	subs, ok := m.Copy(in, n*subscriptionSize)
	if !ok || !m.has(out, uint64(n)*eventSize) || !m.has(res, 4) {
		return eFAULT
	}
	var (
		events []byte
		clocks []pollClock
	)
	for i := range n {
		sub := subs[i*subscriptionSize:][:subscriptionSize]
		switch sub[8] {
		case eventClock:
			d, no := s.timeout(sub)
			clocks = append(clocks, pollClock{sub, d, no})
		case eventFdRead, eventFdWrite:
			events = append(events, s.ready(sub)...)
		default:
			return eINVAL
		}
	}
	// Something is ready: clocks that are due are told too, nobody waits.
	least := time.Duration(0)
	if len(events) == 0 {
		least = 1<<63 - 1
		for _, c := range clocks {
			if c.no != success {
				least = 0
			}
			least = min(least, c.after)
		}
		if err := sleep(ctx, least); err != nil {
			return eCANCELED
		}
	}
	for _, c := range clocks {
		if c.no != success || c.after <= least {
			events = append(events, event(c.sub, c.no, 0)...)
		}
	}
	m.Write(out, events)
	return wrote(m.putU32(res, uint32(len(events)/eventSize)))
}

// pollClock is one subscription to a clock.
type pollClock struct {
	sub   []byte
	after time.Duration
	no    Errno
}

// timeout reads a subscription to a clock: id, time, precision, flags.
func (s *System) timeout(sub []byte) (time.Duration, Errno) {
	id := binary.LittleEndian.Uint32(sub[16:])
	t := binary.LittleEndian.Uint64(sub[24:])
	now, no := s.clock(id)
	if no != success {
		return 0, no
	}
	switch binary.LittleEndian.Uint16(sub[40:]) {
	case 0:
	case 1: // an absolute time
		t -= min(t, now)
	default:
		return 0, eINVAL
	}
	return time.Duration(min(t, 1<<63-1)), success
}

// ready makes the event of a descriptor: files and the empty standard input
// never block, a descriptor that is not open is an error of its own.
func (s *System) ready(sub []byte) []byte {
	d := s.at(uint64(binary.LittleEndian.Uint32(sub[16:])))
	if d == nil {
		return event(sub, eBADF, 0)
	}
	var n uint64
	if sub[8] == eventFdRead && d.file != nil && !d.dir {
		fi, err := d.file.Stat()
		pos, err2 := d.file.Seek(0, io.SeekCurrent)
		if err == nil && err2 == nil {
			n = uint64(max(fi.Size()-pos, 0))
		}
	}
	return event(sub, success, n)
}

func event(sub []byte, no Errno, n uint64) []byte {
	b := make([]byte, eventSize)
	copy(b, sub[:8]) // the guest's own mark
	binary.LittleEndian.PutUint16(b[8:], uint16(no))
	b[10] = sub[8]
	binary.LittleEndian.PutUint64(b[16:], n)
	return b
}

// sleep waits for d or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wrote turns the outcome of a write into the guest's memory into an Errno.
func wrote(ok bool) Errno {
	if ok {
		return success
	}
	return eFAULT
}
