// Command probe is a guest that does what it is told: what plugins do, and
// what they must not be able to do.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/pdk"
)

func main() { pdk.Main() }

type in struct {
	Do   string   `json:"do"`
	A    string   `json:"a,omitempty"`
	B    string   `json:"b,omitempty"`
	N    int      `json:"n,omitempty"`
	List []string `json:"list,omitempty"`
}

// memory and field outlive a call where a sandbox is not fresh.
var (
	memory string
	field  [3 << 20]byte
)

func init() {
	pdk.Tool(pdk.Spec{Name: "probe", Description: "Does what it is told."}, probe)
}

func probe(ctx context.Context, a in) (string, error) {
	do, ok := actions[a.Do]
	if !ok {
		return "", fmt.Errorf("no action %q", a.Do)
	}
	return do(ctx, a)
}

var actions map[string]func(context.Context, in) (string, error)

func init() {
	actions = map[string]func(context.Context, in) (string, error){
		"echo": func(_ context.Context, a in) (string, error) { return a.A, nil },
		"read": func(_ context.Context, a in) (string, error) { return text(os.ReadFile(a.A)) },
		"reread": func(_ context.Context, a in) (string, error) {
			for range a.N {
				if _, err := os.ReadFile(a.A); err != nil {
					return "", err
				}
			}
			return "ok", nil
		},
		"read1": func(_ context.Context, a in) (string, error) {
			f, err := os.Open(a.A)
			if err != nil {
				return "", err
			}
			b := make([]byte, 16)
			n, err := f.Read(b)
			return string(b[:n]), err
		},
		"write":  func(_ context.Context, a in) (string, error) { return "ok", os.WriteFile(a.A, []byte(a.B), 0o644) },
		"append": appendTo,
		"list":   list,
		"trunc":  func(_ context.Context, a in) (string, error) { return "ok", os.Truncate(a.A, 0) },
		"otrunc": openTrunc,
		"chtimes": func(_ context.Context, a in) (string, error) {
			return "ok", os.Chtimes(a.A, time.Unix(1, 0), time.Unix(1, 0))
		},
		"mkdir":   func(_ context.Context, a in) (string, error) { return "ok", os.Mkdir(a.A, 0o755) },
		"rename":  func(_ context.Context, a in) (string, error) { return "ok", os.Rename(a.A, a.B) },
		"remove":  func(_ context.Context, a in) (string, error) { return "ok", os.Remove(a.A) },
		"symlink": func(_ context.Context, a in) (string, error) { return "ok", os.Symlink(a.A, a.B) },
		"link":    func(_ context.Context, a in) (string, error) { return "ok", os.Link(a.A, a.B) },
		"stat":    stat,
		"openraw": openRaw,
		"keep": func(_ context.Context, a in) (string, error) {
			f, err := os.Open(a.A)
			if err != nil {
				return "", err
			}
			fd := f.Fd()
			kept = append(kept, f)
			return fmt.Sprint(fd), nil
		},
		"kept": func(_ context.Context, a in) (string, error) {
			b := make([]byte, 64)
			n, err := syscall.Read(a.N, b)
			return string(b[:max(n, 0)]), err
		},
		"closefd":  func(_ context.Context, a in) (string, error) { return "ok", syscall.Close(a.N) },
		"remember": func(_ context.Context, a in) (string, error) { memory = a.A; return "ok", nil },
		"recall":   func(context.Context, in) (string, error) { return memory, nil },
		"spread": func(ctx context.Context, a in) (string, error) { // A over N pages from page B on
			from, _ := strconv.Atoi(a.B)
			for i := range a.N {
				copy(field[(from+i)*4096%len(field)+i%1000:], a.A)
			}
			memory = a.A
			if len(a.List) == 0 {
				return "ok", nil
			}
			return actions[a.List[0]](ctx, in{A: a.List[1], B: a.List[2], N: 8})
		},
		"gather": func(context.Context, in) (string, error) {
			for i, b := range field {
				if b != 0 {
					return fmt.Sprintf("%q at page %d", field[i:min(i+16, len(field))], i/4096), nil
				}
			}
			return memory, nil
		},
		"spin": func(context.Context, in) (string, error) {
			for i := 0; ; i++ {
				if i < 0 {
					return "", nil
				}
			}
		},
		"recurse": func(context.Context, in) (string, error) { return fmt.Sprint(recurse(1)), nil },
		"sleep": func(_ context.Context, a in) (string, error) {
			time.Sleep(time.Duration(a.N) * time.Millisecond)
			return "slept", nil
		},
		"exit": func(_ context.Context, a in) (string, error) { os.Exit(a.N); return "", nil },
		"panic": func(_ context.Context, a in) (string, error) {
			go func() { panic(a.A) }()
			time.Sleep(time.Second)
			return "", nil
		},
		"grow": func(_ context.Context, a in) (string, error) {
			b := make([]byte, a.N<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			return fmt.Sprint(len(b)), nil
		},
		"big":    func(_ context.Context, a in) (string, error) { return strings.Repeat("x", a.N), nil },
		"clock":  clock,
		"random": func(context.Context, in) (string, error) { return random(), nil },
		"hash": func(context.Context, in) (string, error) {
			m := map[int]int{}
			for i := range 64 {
				m[i] = i
			}
			var order []int
			for k := range m {
				order = append(order, k)
			}
			return fmt.Sprint(order), nil
		},
		"ambient": ambient,
		"log":     logs,
		"print":   func(_ context.Context, a in) (string, error) { fmt.Println(a.A); return "ok", nil },
		"flood": func(_ context.Context, a in) (string, error) {
			for range a.N {
				_ = ioTake(nil, 0)
			}
			return "done", nil
		},
		"raw":    raw,
		"alias":  alias,
		"fetch":  fetch,
		"use":    useSecret,
		"loop":   loop,
		"env":    func(ctx context.Context, a in) (string, error) { return pdk.Env(ctx, a.A) },
		"secret": func(ctx context.Context, a in) (string, error) { return pdk.Secret(ctx, a.A) },
		"kvset":  func(ctx context.Context, a in) (string, error) { return "ok", pdk.KVSet(ctx, a.A, []byte(a.B)) },
		"kvget":  func(ctx context.Context, a in) (string, error) { return text(pdk.KVGet(ctx, a.A)) },
		"kvdel":  func(ctx context.Context, a in) (string, error) { return "ok", pdk.KVDelete(ctx, a.A) },
		"kvkeys": func(ctx context.Context, a in) (string, error) {
			k, err := pdk.KVKeys(ctx, a.A)
			return strings.Join(k, " "), err
		},
		"model": func(ctx context.Context, a in) (string, error) {
			c, err := pdk.Complete(ctx, pdk.Prompt{System: a.B, Text: a.A, MaxTokens: a.N})
			return c.Text, err
		},
		"exec": func(ctx context.Context, a in) (string, error) {
			f, err := pdk.Exec(ctx, pdk.Command{Argv: a.List})
			return string(f.Stdout), err
		},
		"tool": func(ctx context.Context, a in) (string, error) {
			r, err := pdk.CallTool(ctx, a.A, json.RawMessage(a.B))
			if err != nil {
				return "", err
			}
			if r.IsError {
				return "", fmt.Errorf("%s", r.Text())
			}
			return r.Text(), nil
		},
		"progress": func(ctx context.Context, a in) (string, error) {
			pdk.Progress(ctx, abi.Progress{Message: a.A, Done: 1, Total: 2})
			return "ok", nil
		},
	}
}

var kept []*os.File

func text(b []byte, err error) (string, error) { return string(b), err }

func recurse(n int) int {
	if n == 0 {
		return 0
	}
	return recurse(n+1) + 1
}

func appendTo(_ context.Context, a in) (string, error) {
	f, err := os.OpenFile(a.A, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(a.B)
	return "ok", err
}

func openTrunc(_ context.Context, a in) (string, error) {
	f, err := os.OpenFile(a.A, os.O_RDONLY|os.O_TRUNC, 0)
	if err == nil {
		f.Close()
	}
	return "ok", err
}

func list(_ context.Context, a in) (string, error) {
	entries, err := os.ReadDir(a.A)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " "), err
}

func stat(_ context.Context, a in) (string, error) {
	fi, err := os.Stat(a.A)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%v %d", fi.Mode().Type(), fi.Size()), nil
}

// openRaw opens a path relative to descriptor N, past Go's own cleaning.
func openRaw(_ context.Context, a in) (string, error) {
	var fd int32
	p := []byte(a.A)
	no := pathOpen(int32(a.N), 1, unsafe.Pointer(unsafe.SliceData(p)), uint32(len(p)), 0, 1<<1, 0, 0, unsafe.Pointer(&fd))
	if no != 0 {
		return fmt.Sprintf("errno %d", no), nil
	}
	b := make([]byte, 64)
	n, err := syscall.Read(int(fd), b)
	return string(b[:max(n, 0)]), err
}

//go:wasmimport wasi_snapshot_preview1 path_open
//go:noescape
func pathOpen(fd int32, dirflags int32, path unsafe.Pointer, n uint32, oflags int32, rights, inherit int64, fdflags int32, res unsafe.Pointer) int32

//go:wasmimport wasi_snapshot_preview1 sock_accept
//go:noescape
func sockAccept(fd int32, flags int32, res unsafe.Pointer) int32

//go:wasmimport elf:io take
//go:noescape
func ioTake(dst unsafe.Pointer, n uint32) int32

//go:wasmimport elf:log write
//go:noescape
func logWrite(ptr uint32, n uint32) int32

//go:wasmimport elf:kv get
//go:noescape
func kvGet(ptr uint32, n uint32) int32

// clock reads the clock until it moves N times and says by how much.
func clock(_ context.Context, a in) (string, error) {
	var steps []string
	last := time.Now()
	for len(steps) < a.N {
		if d := time.Since(last); d > 0 {
			steps = append(steps, fmt.Sprint(d.Nanoseconds()))
			last = last.Add(d)
		}
	}
	return strings.Join(steps, " "), nil
}

func random() string {
	b := make([]byte, 16)
	rand.Read(b)
	return hex.EncodeToString(b)
}

func ambient(context.Context, in) (string, error) {
	var fd int32
	sock := sockAccept(3, 0, unsafe.Pointer(&fd))
	root, err := os.ReadDir("/")
	return fmt.Sprintf("args=%d env=%d sock=%d root=%d err=%v", len(os.Args), len(os.Environ()), sock, len(root), err), nil
}

func logs(ctx context.Context, a in) (string, error) {
	for range a.N {
		pdk.Log(ctx, pdk.LevelInfo, a.A)
	}
	return "ok", nil
}

// raw calls an operation with a pointer and a length of the caller's choice.
func raw(_ context.Context, a in) (string, error) {
	var ptr, n uint32
	fmt.Sscan(a.A, &ptr)
	fmt.Sscan(a.B, &n)
	return fmt.Sprint(logWrite(ptr, n)), nil
}

// alias asks for a value whose key lies where the reply is taken to.
func alias(context.Context, in) (string, error) {
	buf := make([]byte, 4096)
	head := `{"key":"k"}`
	buf[0] = byte(len(head))
	copy(buf[4:], head)
	at := uint32(uintptr(unsafe.Pointer(&buf[0])))
	n := kvGet(at, uint32(4+len(head)))
	if n < 0 {
		return fmt.Sprint(n), nil
	}
	got := ioTake(unsafe.Pointer(&buf[0]), uint32(len(buf)))
	again := kvGet(at, uint32(4+len(head)))
	return fmt.Sprintf("%d %d %q", got, again, buf[:got]), nil
}

// useSecret fetches A with the secret B in a header and, for {}, in the URL,
// and tells everybody what came of it.
func useSecret(ctx context.Context, a in) (string, error) {
	s, err := pdk.Secret(ctx, a.B)
	if err != nil {
		return "", err
	}
	r, err := pdk.Fetch(ctx, pdk.Request{URL: strings.ReplaceAll(a.A, "{}", s), Header: pdk.Header{"X-Key": {s}}})
	if err != nil {
		pdk.Log(ctx, pdk.LevelError, err.Error())
		return "", err
	}
	answer := fmt.Sprintf("%d %s %v %s", r.Status, r.URL, r.Header, r.Body)
	pdk.Log(ctx, pdk.LevelInfo, answer)
	fmt.Println(answer)
	return answer, nil
}

// loop does the action B on A, N times, and says how often which answer came.
func loop(ctx context.Context, a in) (string, error) {
	count := map[string]int{}
	for range a.N {
		got, err := actions[a.B](ctx, in{A: a.A, B: "x"})
		if err != nil {
			got = "error"
		}
		count[got]++
	}
	b, err := json.Marshal(count)
	return string(b), err
}

func fetch(ctx context.Context, a in) (string, error) {
	r, err := pdk.Fetch(ctx, pdk.Request{URL: a.A, Method: a.B})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %s %s", r.Status, r.URL, r.Body), nil
}
