package wasi

import "context"

func argsGet(_ context.Context, s *System, m Memory, p []uint64) Errno {
	return putStrings(m, s.cfg.Args, uint32(p[0]), uint32(p[1]))
}

func argsSizesGet(_ context.Context, s *System, m Memory, p []uint64) Errno {
	return putSizes(m, s.cfg.Args, uint32(p[0]), uint32(p[1]))
}

func environGet(_ context.Context, s *System, m Memory, p []uint64) Errno {
	return putStrings(m, s.cfg.Env, uint32(p[0]), uint32(p[1]))
}

func environSizesGet(_ context.Context, s *System, m Memory, p []uint64) Errno {
	return putSizes(m, s.cfg.Env, uint32(p[0]), uint32(p[1]))
}

func putSizes(m Memory, list []string, count, size uint32) Errno {
	n := 0
	for _, s := range list {
		n += len(s) + 1
	}
	return wrote(m.putU32(count, uint32(len(list))) && m.putU32(size, uint32(n)))
}

// putStrings writes the strings, each ended by a NUL, to buf and their places to ptrs.
func putStrings(m Memory, list []string, ptrs, buf uint32) Errno {
	for _, s := range list {
		if !m.putU32(ptrs, buf) || !m.Write(buf, append([]byte(s), 0)) {
			return eFAULT
		}
		ptrs += 4
		buf += uint32(len(s)) + 1
	}
	return success
}
