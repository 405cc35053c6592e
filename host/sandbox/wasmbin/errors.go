package wasmbin

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

// The classes of failure; an [Error] wraps one of them.
var (
	// ErrNotModule: the bytes are something else. The message says what.
	ErrNotModule = errors.New("not a WebAssembly module")
	// ErrMalformed: a module, but its encoding breaks the specification.
	ErrMalformed = errors.New("malformed module")
	// ErrTruncated: a length or a count runs past what contains it.
	ErrTruncated = errors.New("truncated module")
	// ErrUnsupported: valid WebAssembly that the engine does not run.
	ErrUnsupported = errors.New("unsupported WebAssembly feature")
)

// Error is the only error type of this package.
type Error struct {
	Class  error  // one of the Err values
	Offset int    // byte offset in the module
	Detail string // what was found
	Hint   string // what to do about it; may be empty
}

func (e *Error) Error() string {
	s := e.Class.Error()
	if e.Class != ErrNotModule {
		s = fmt.Sprintf("%s at offset %#x", s, e.Offset)
	}
	if s += ": " + e.Detail; e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

func (e *Error) Unwrap() error { return e.Class }

const (
	hintTarget = "build the plugin for a core WebAssembly target (wasip1, wasm32-wasi or wasm32-unknown-unknown)"
	hintAgain  = "the file is incomplete or damaged: download or build it again"
)

// signatures are the beginnings of files that people mistake for modules.
var signatures = []struct{ magic, what, hint string }{
	{"\x7fELF", "a native ELF program or library", hintTarget},
	{"MZ", "a native Windows program or library", hintTarget},
	{"\xcf\xfa\xed\xfe", "a native macOS program or library", hintTarget},
	{"\xca\xfe\xba\xbe", "a universal macOS binary or a Java class", hintTarget},
	{"BC\xc0\xde", "LLVM bitcode", "link it with wasm-ld"},
	{"!<arch>", "a static library (ar archive)", "link it with wasm-ld"},
	{"PK\x03\x04", "a zip archive", "unpack it and name the .wasm file inside"},
	{"\x1f\x8b", "gzip data", "unpack it first"},
	{"\x28\xb5\x2f\xfd", "zstd data", "unpack it first"},
	{"BZh", "bzip2 data", "unpack it first"},
	{"\xfd7zXZ", "xz data", "unpack it first"},
	{"#!", "a script", "compile it to WebAssembly; the host runs no scripts"},
	{"version https://git-lfs", "a Git LFS pointer", "fetch the real file with git lfs pull"},
	{"(module", "WebAssembly text", "convert it with wat2wasm"},
	{"(component", "WebAssembly component text", "convert a core module with wat2wasm"},
	{"<", "HTML or XML", "the download probably answered with an error page: check its address"},
	{"{", "JSON text", "name the .wasm file"},
}

// identify explains bytes that do not begin with the header of a core module.
func identify(b []byte) *Error {
	fail := func(class error, detail, hint string) *Error {
		return &Error{Class: class, Detail: detail, Hint: hint}
	}
	switch {
	case len(b) == 0:
		return fail(ErrNotModule, "the file is empty", hintTarget)
	case bytes.HasPrefix(header[:], b):
		return fail(ErrTruncated, fmt.Sprintf("the file ends after %d bytes, inside the header", len(b)), hintAgain)
	case bytes.HasPrefix(b, header[:4]):
		return identifyVersion(b, fail)
	}
	text := bytes.TrimLeft(b[:min(len(b), 4096)], " \t\r\n")
	for _, s := range signatures {
		if bytes.HasPrefix(text, []byte(s.magic)) {
			return fail(ErrNotModule, "the file is "+s.what, s.hint)
		}
	}
	if bytes.HasPrefix(text, []byte(";;")) {
		return fail(ErrNotModule, "the file is WebAssembly text", "convert it with wat2wasm")
	}
	if head := b[:min(len(b), 512)]; printable(head) {
		return fail(ErrNotModule, "the file is text", "name the compiled .wasm file")
	}
	return fail(ErrNotModule, fmt.Sprintf("the file begins with % x and a module begins with % x", b[:min(len(b), 4)], header[:4]), hintTarget)
}

func identifyVersion(b []byte, fail func(error, string, string) *Error) *Error {
	if len(b) < len(header) {
		return fail(ErrMalformed, "the version is not 1", hintAgain)
	}
	// The component model puts a 16-bit version and a 16-bit layer here; layer
	// 1 is a component (component-model/design/mvp/Binary.md).
	if b[6] == 1 && b[7] == 0 {
		return fail(ErrUnsupported, "the file is a component of the component model, not a core module",
			"build the plugin as a core module (wasip1 rather than wasip2), or take the core module out of it with `wasm-tools component unbundle`")
	}
	return fail(ErrUnsupported, fmt.Sprintf("WebAssembly version % x", b[4:8]), "version 1 core modules are accepted")
}

// printable reports whether b is text: UTF-8 (possibly cut at the end)
// without control characters other than white space.
func printable(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n <= 1 && len(b) >= utf8.UTFMax {
			return false
		}
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' && r != '\f' {
			return false
		}
		b = b[n:]
	}
	return true
}
