//go:build wasip1

package pdk

import "unsafe"

// The host functions of docs/abi.md, and a variable each.

//go:wasmimport elf:log write
func logWrite(req unsafe.Pointer, n uint32) int32

//go:wasmimport elf:progress report
func progressReport(req unsafe.Pointer, n uint32) int32

//go:wasmimport elf:net http
func netHTTP(req unsafe.Pointer, n uint32) int32

//go:wasmimport elf:model generate
func modelGenerate(req unsafe.Pointer, n uint32) int32

//go:wasmimport elf:kv get
func kvGet(req unsafe.Pointer, n uint32) int32

//go:wasmimport elf:kv set
func kvSet(req unsafe.Pointer, n uint32) int32

//go:wasmimport elf:kv delete
func kvDelete(req unsafe.Pointer, n uint32) int32

//go:wasmimport elf:kv list
func kvList(req unsafe.Pointer, n uint32) int32

//go:wasmimport elf:secret placeholder
func secretPlaceholder(req unsafe.Pointer, n uint32) int32

//go:wasmimport elf:env get
func envGet(req unsafe.Pointer, n uint32) int32

//go:wasmimport elf:exec run
func execRun(req unsafe.Pointer, n uint32) int32

//go:wasmimport elf:tool call
func toolCall(req unsafe.Pointer, n uint32) int32

var (
	opLog      = operation{"elf:log.write", logWrite}
	opProgress = operation{"elf:progress.report", progressReport}
	opHTTP     = operation{"elf:net.http", netHTTP}
	opModel    = operation{"elf:model.generate", modelGenerate}
	opKVGet    = operation{"elf:kv.get", kvGet}
	opKVSet    = operation{"elf:kv.set", kvSet}
	opKVDelete = operation{"elf:kv.delete", kvDelete}
	opKVList   = operation{"elf:kv.list", kvList}
	opSecret   = operation{"elf:secret.placeholder", secretPlaceholder}
	opEnvGet   = operation{"elf:env.get", envGet}
	opExec     = operation{"elf:exec.run", execRun}
	opToolCall = operation{"elf:tool.call", toolCall}
)
