package outline

import "strings"

// others are languages of packs for which there is no table here: their
// outlines follow from how grammars are commonly written.
var others = map[string]struct {
	name string
	exts []string
}{
	"rust": {"Rust", []string{".rs"}}, "java": {"Java", []string{".java"}}, "c_sharp": {"C#", []string{".cs"}},
	"ruby": {"Ruby", []string{".rb"}}, "php": {"PHP", []string{".php"}}, "solidity": {"Solidity", []string{".sol"}},
	"lua": {"Lua", []string{".lua"}}, "bash": {"Bash", []string{".sh", ".bash"}}, "scala": {"Scala", []string{".scala", ".sc"}},
	"elixir": {"Elixir", []string{".ex", ".exs"}}, "zig": {"Zig", []string{".zig"}}, "ocaml": {"OCaml", []string{".ml"}},
	"objc": {"Objective-C", []string{".m", ".mm"}}, "haskell": {"Haskell", []string{".hs"}}, "julia": {"Julia", []string{".jl"}},
	"perl": {"Perl", []string{".pl", ".pm"}}, "r": {"R", []string{".r"}}, "powershell": {"PowerShell", []string{".ps1", ".psm1"}},
	"groovy": {"Groovy", []string{".groovy", ".gradle"}}, "cuda": {"CUDA", []string{".cu", ".cuh"}}, "proto": {"Protocol Buffers", []string{".proto"}},
}

// words are the first words of the kinds of nodes that declare something, and
// the label that they get.
var words = map[string]string{
	"function": "function", "method": "method", "constructor": "constructor", "class": "class", "struct": "struct", "enum": "enum",
	"trait": "trait", "interface": "interface", "mod": "mod", "module": "module", "namespace": "namespace", "type": "type", "const": "const",
	"static": "static", "macro": "macro", "record": "record", "protocol": "protocol", "object": "object", "union": "union",
	"extension": "extension", "contract": "contract", "event": "event", "package": "package", "property": "property", "field": "field",
	"library": "library", "message": "message", "service": "service", "rpc": "rpc", "singleton": "method", "annotation": "annotation",
}

// guess makes a table from the names of a grammar's nodes.
func guess(kinds []string) map[string]kind {
	table := map[string]kind{"ERROR": {walk: walkOpen}}
	for _, k := range kinds {
		first, _, _ := strings.Cut(k, "_")
		label := words[first]
		stem, declares := k, false
		for _, suffix := range []string{"_item", "_declaration", "_definition", "_specifier", "_signature", "_def"} {
			if s, ok := strings.CutSuffix(k, suffix); ok {
				stem, declares = s, true
			}
		}
		switch {
		case declares && label != "":
			table[k] = kind{label: label, walk: walkOpen | walkHolder, named: true}
		case label != "" && (k == "class" || k == "module" || k == "method" || k == "singleton_method"): // Ruby
			table[k] = kind{label: label, walk: walkOpen | walkHolder, named: true}
		case stem == "impl":
			table[k] = kind{label: "impl", names: field("type"), named: true, walk: walkOpen | walkHolder}
		case k == "source_file", k == "program", k == "compilation_unit", k == "translation_unit", k == "chunk", k == "document", k == "source":
			table[k] = kind{walk: walkOpen}
		case strings.HasPrefix(k, "function_") || strings.HasPrefix(k, "method_"):
		case strings.HasSuffix(k, "_body") || k == "declaration_list" || k == "body_statement" || k == "body":
			table[k] = kind{walk: walkOpen}
		case strings.HasPrefix(k, "attribute"), strings.HasPrefix(k, "annotation"):
			table[k] = kind{skip: true}
		}
	}
	return table
}
