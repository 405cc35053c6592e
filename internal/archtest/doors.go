// Package archtest holds the doors between the rooms of this module: which
// package may import which other, and who alone may touch what is dangerous.
// It reads the sources itself, because the result of `go list` is cached and
// blind to build tags.
package archtest

// room is one package (or, with "/..." at the end, a tree of them).
type room struct {
	path string
	may  []string // rooms of this module that it may import; "*" is all
}

// rooms is the plan of the house. An unknown package fails the test until it
// is added here on purpose, with a line in docs/layout.md.
var rooms = []room{
	{".", nil}, // the sources of the kit, for authors
	{"abi", nil},
	{"pdk", []string{"abi"}},
	{"pdk/golden", []string{"abi"}},
	{"pdk/pdktest", []string{"abi", "pdk", "pdk/golden"}},
	{"pdk/pdkhttp", []string{"abi", "pdk"}},
	{"plugins", []string{"abi"}},
	{"plugins/...", []string{"abi", "pdk", "pdk/pdktest", "pdk/pdkhttp"}},
	{"examples/...", []string{"abi", "pdk", "pdk/pdktest", "pdk/pdkhttp"}},

	{"host", []string{"abi", "host/policy", "host/schema"}},
	{"host/schema", []string{"abi"}},
	{"host/policy", []string{"abi", "host/policy/packages"}},
	{"host/policy/packages", []string{"abi"}},
	{"host/reach", []string{"abi", "host/policy", "host/reach/secret", "host/reach/internal/..."}},
	{"host/reach/secret", []string{"abi", "host/policy", "host/reach/internal/..."}},
	{"host/reach/internal/state", nil},
	{"host/audit", []string{"abi"}},
	{"host/store", []string{"abi", "host/store/internal/engine"}},
	{"host/store/internal/engine", nil},

	{"host/sandbox/wasmbin", nil},
	{"host/sandbox/vet", []string{"abi", "host/sandbox/wasmbin"}},
	{"host/sandbox/meter", []string{"abi", "host/sandbox/wasmbin", "host/sandbox/vet"}},
	{"host/sandbox/image", []string{"abi", "host/sandbox/wasmbin", "host/sandbox/meter", "host/sandbox/vet"}},
	{"host/sandbox/compile", []string{"abi", "host/sandbox/wasmbin", "host/sandbox/meter", "host/sandbox/vet", "host/sandbox/image"}},
	{"host/sandbox/pool", []string{"abi", "host/sandbox/wasmbin", "host/sandbox/meter", "host/sandbox/image", "host/sandbox/compile"}},
	{"host/sandbox/wasi", []string{"abi", "host/policy", "host/reach", "host/sandbox/wasmbin"}},
	{"host/sandbox/internal/wasmtest", []string{"host/sandbox/wasmbin"}}, // builds guests for tests
	{"host/sandbox", []string{"abi", "host", "host/policy", "host/reach", "host/reach/secret", "host/sandbox/..."}},
	{"host/foreign", []string{"abi", "host", "host/policy", "host/reach", "host/reach/secret", "host/sandbox", "host/sandbox/...", "host/foreign/..."}},
	{"host/foreign/...", []string{"abi", "host", "host/policy", "host/reach", "host/reach/secret", "host/sandbox", "host/sandbox/...", "host/foreign/..."}},

	{"host/model", []string{"abi", "host/reach"}},
	{"host/model/...", []string{"abi", "host/model", "host/model/...", "host/reach"}},
	{"host/model/internal/replay", []string{"host/model", "internal/shared"}}, // for tests
	{"host/agent", []string{"abi", "host", "host/policy", "host/reach", "host/model", "host/store"}},
	{"host/archive", []string{"abi", "host", "host/agent", "host/model", "host/store"}},
	{"host/mcp", []string{"abi", "host", "host/schema", "host/reach", "host/reach/secret", "host/policy"}},
	{"host/acp", []string{"abi", "host", "host/agent", "host/reach", "host/policy"}},

	{"builtins/agents", []string{"abi", "host", "host/policy", "host/reach", "host/agent", "host/archive", "builtins/internal/..."}},
	{"builtins/skills", []string{"abi", "host", "host/policy", "host/reach", "skillhub", "skillhub/scan", "host/sandbox", "builtins/internal/..."}},
	{"builtins/outline", []string{"abi", "host", "host/policy", "host/reach", "host/sandbox", "host/sandbox/...", "builtins/internal/..."}},
	{"builtins/...", []string{"abi", "host", "host/policy", "host/reach", "builtins/internal/..."}},
	{"skillhub", []string{"abi"}},
	{"skillhub/pack", []string{"abi", "skillhub", "internal/config/manifest"}}, // elf.toml is read in one place
	{"skillhub/sign", []string{"abi", "skillhub", "skillhub/pack", "internal/config/manifest"}},
	{"skillhub/scan", []string{"abi"}},
	{"skillhub/oci", []string{"abi", "host/policy", "host/reach", "skillhub", "skillhub/pack"}},
	{"skillhub/internal/disk", nil},
	{"skillhub/hub", []string{"abi", "host/policy", "host/reach", "host/store", "skillhub", "skillhub/internal/...", "skillhub/pack", "skillhub/sign"}},
	{"skillhub/serve", []string{"abi", "host/policy", "host/store", "skillhub", "skillhub/hub", "skillhub/internal/...", "skillhub/pack", "skillhub/sign"}},
	{"skillhub/direct", []string{"abi", "host/policy", "host/reach", "skillhub", "skillhub/pack"}},
	{"skillhub/keep", []string{"abi", "skillhub", "skillhub/internal/...", "skillhub/pack", "skillhub/sign", "internal/config/manifest"}},

	{"internal/shared", nil},
	{"internal/queries", nil},
	{"internal/archtest", nil},
	{"internal/...", []string{"*"}},
	{"cmd/...", []string{"*"}},
}

// touch names what only some rooms may import, tests aside.
type touch struct {
	pkg   string // import path, or a prefix ending in "/"
	rooms []string
	why   string
}

var touches = []touch{
	{"unsafe", []string{"pdk", "host/sandbox/image", "host/sandbox/compile", "host/reach", "builtins/search", "host/store/internal/engine", "internal/bench/..."}, "memory below the language"},
	{"os/exec", []string{"host/reach", "host/sandbox/compile", "host/sandbox/internal/wasmtest", "internal/...", "cmd/...", "builtins/outline"}, "only the program broker starts programs"},
	{"github.com/tetratelabs/wazero", []string{"host/sandbox", "host/sandbox/...", "host/foreign/...", "builtins/outline", "internal/bench"}, "one engine, behind the sandbox"},
	{"github.com/tetratelabs/wazero/", []string{"host/sandbox", "host/sandbox/...", "host/foreign/...", "builtins/outline", "internal/bench"}, "one engine, behind the sandbox"},
	{"github.com/extism/go-sdk", []string{"host/foreign/...", "internal/bench"}, "Extism's manifest types, and the bench peer"},
	{"github.com/mark3labs/mcp-go/", []string{"host/mcp", "internal/bench"}, "MCP has one room"},
	{"github.com/coder/acp-go-sdk", []string{"host/acp"}, "ACP has one room"},
	{"github.com/santhosh-tekuri/jsonschema/v5", []string{"host/schema"}, "schemas are compiled with our own loader only"},
	{"modernc.org/libc", []string{"host/store/internal/engine"}, "the engine's own memory"},
	{"modernc.org/sqlite", []string{"host/store", "host/store/internal/engine", "internal/bench"}, "nothing above the store knows what it is; the bench measures the bare engine"},
	{"github.com/theupdateframework/go-tuf/v2/", []string{"skillhub/hub"}, "the hub's metadata has one room"},
	{"oras.land/oras-go/v2/", []string{"skillhub/oci"}, "registries have one room"},
	{"github.com/smacker/go-tree-sitter", []string{"builtins/outline"}, "cgo"},
	{"github.com/smacker/go-tree-sitter/", []string{"builtins/outline"}, "cgo"},
}
