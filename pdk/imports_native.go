//go:build !wasip1

package pdk

import "github.com/elfhost/elfhost/abi"

// The operations of docs/abi.md.
var (
	opLog      = operation{abi.ModuleLog, "write"}
	opProgress = operation{abi.ModuleProgress, "report"}
	opHTTP     = operation{abi.ModuleNet, "http"}
	opModel    = operation{abi.ModuleModel, "generate"}
	opKVGet    = operation{abi.ModuleKV, "get"}
	opKVSet    = operation{abi.ModuleKV, "set"}
	opKVDelete = operation{abi.ModuleKV, "delete"}
	opKVList   = operation{abi.ModuleKV, "list"}
	opSecret   = operation{abi.ModuleSecret, "placeholder"}
	opEnvGet   = operation{abi.ModuleEnv, "get"}
	opExec     = operation{abi.ModuleExec, "run"}
	opToolCall = operation{abi.ModuleTool, "call"}
)
