package abi

import "slices"

// Capability names one kind of effect. A plugin has none that no person
// granted. What a scope looks like depends on the capability: docs/abi.md.
type Capability string

// The capabilities of elf/1.
const (
	FSRead    Capability = "fs.read"    // "/ws/**": paths under the virtual root
	FSWrite   Capability = "fs.write"   // "/ws/out/**"
	NetHTTP   Capability = "net.http"   // "https://api.github.com GET,POST", or "public GET"
	Exec      Capability = "exec"       // "git log *": an argv pattern
	Env       Capability = "env"        // "LANG": a variable's name
	Secret    Capability = "secret"     // "github-token@api.github.com"
	KV        Capability = "kv"         // "1MiB": a quota
	Model     Capability = "model"      // "100k tokens": a budget for one call
	ToolCall  Capability = "tool.call"  // "Read": a tool's name
	ClockFine Capability = "clock.fine" // no scope
)

var capabilities = [...]Capability{FSRead, FSWrite, NetHTTP, Exec, Env, Secret, KV, Model, ToolCall, ClockFine}

// Capabilities lists every capability of this version, in the order in which
// people are shown them.
func Capabilities() []Capability { return slices.Clone(capabilities[:]) }

// Known reports whether c is a capability of this version.
func (c Capability) Known() bool { return slices.Contains(capabilities[:], c) }

// Names of the host modules that a guest may import. The module's name is the
// capability it needs; log, io and progress need none.
const (
	ModuleLog      = "elf:log"
	ModuleIO       = "elf:io"
	ModuleProgress = "elf:progress"
	ModuleNet      = "elf:net"
	ModuleExec     = "elf:exec"
	ModuleSecret   = "elf:secret"
	ModuleEnv      = "elf:env"
	ModuleKV       = "elf:kv"
	ModuleModel    = "elf:model"
	ModuleTool     = "elf:tool"
	ModuleWASI     = "wasi_snapshot_preview1"
)

// Import says which capability a host module stands for. known is false for a
// module that elf/1 does not have; a known module without a capability gives "".
func Import(module string) (c Capability, known bool) {
	switch module {
	case ModuleLog, ModuleIO, ModuleProgress, ModuleWASI:
		return "", true
	case ModuleNet:
		return NetHTTP, true
	case ModuleExec:
		return Exec, true
	case ModuleSecret:
		return Secret, true
	case ModuleEnv:
		return Env, true
	case ModuleKV:
		return KV, true
	case ModuleModel:
		return Model, true
	case ModuleTool:
		return ToolCall, true
	}
	return "", false
}
