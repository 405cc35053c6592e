// Package abi is the contract between the host and a plugin: the version, the
// manifest, the capabilities a plugin may ask for, what a tool answers, and
// the codes a host function returns.
//
// It uses the standard library only and compiles for wasip1, because guests
// import it too. Reading elf.toml is the host's job (internal/config).
package abi

// Version is the ABI that this source implements. A manifest names it, and a
// host refuses any other.
const Version = "elf/1"

// Names of the guest's exports. See docs/abi.md for their signatures.
const (
	ExportMemory     = "memory"
	ExportInitialize = "_initialize"
	ExportAlloc      = "elf_alloc"
	ExportCall       = "elf_call"
	ExportDescribe   = "elf_describe"
	ExportReseed     = "elf_reseed"
)

// ReplyKind is the first byte of a guest's reply.
type ReplyKind byte

// The kinds of reply.
const (
	ReplyText    ReplyKind = 0 // UTF-8 text
	ReplyError   ReplyKind = 1 // UTF-8 text of a tool error
	ReplyContent ReplyKind = 2 // the JSON of a Result
)
