package pack

import (
	"bytes"
	"path"
	"strings"
)

// sniff is how many bytes of a file are looked at to know what it is.
const sniff = 512

// what runs, by the end of its name: with an interpreter, by a double click, or
// when something loads it.
var scriptExts = set(".sh .bash .zsh .fish .ksh .csh .command .ps1 .psm1 .psd1 .bat .cmd .py .pyw .pyc .rb .pl .pm .php .phar .lua .tcl " +
	".js .mjs .cjs .jsx .ts .mts .cts .tsx .vbs .vbe .jse .wsf .wsh .hta .applescript .scpt .scptd .awk .groovy .kts .r .jl .exs " +
	".exe .com .scr .msi .msix .dll .so .dylib .node .jar .class .war .apk .app .bin .run .elf .o .a .lnk .url .desktop .service .reg .workflow .gadget .cpl .inf")

// what holds other files that nobody has looked at.
var archiveExts = set(".zip .tar .tgz .gz .bz2 .xz .zst .7z .rar .cab .iso .dmg .img .pkg .deb .rpm .whl .egg .gem .crate .nupkg .vsix .crx .xpi .elfpkg .skill .mcpb .dxt .lz4 .br")

var buildFiles = set("makefile gnumakefile justfile rakefile jenkinsfile taskfile.yml")

var magics = []struct {
	bytes string
	what  string
}{
	{"#!", "script"}, {"\x7fELF", "program"}, {"MZ", "program"},
	{"\xfe\xed\xfa\xce", "program"}, {"\xfe\xed\xfa\xcf", "program"}, {"\xce\xfa\xed\xfe", "program"}, {"\xcf\xfa\xed\xfe", "program"},
	{"\xca\xfe\xba\xbe", "program"}, {"!<arch>\n", "program"}, {"dex\n", "program"},
	{"PK\x03\x04", "archive"}, {"PK\x05\x06", "archive"}, {"\x1f\x8b", "archive"}, {"BZh", "archive"}, {"\xfd7zXZ\x00", "archive"},
	{"\x28\xb5\x2f\xfd", "archive"}, {"7z\xbc\xaf\x27\x1c", "archive"}, {"Rar!\x1a\x07", "archive"}, {"MSCF", "archive"},
}

// code says whether a file is code that would run outside of the sandbox, or
// hides files: "" is neither. head is the file's beginning.
func code(name string, head []byte) string {
	base := strings.ToLower(path.Base(name))
	ext := path.Ext(base)
	module := bytes.HasPrefix(head, []byte("\x00asm"))
	switch {
	case name == ModuleFile && module:
		return ""
	case module || ext == ".wasm":
		return "module"
	case scriptExts[ext] || buildFiles[base]:
		return "script"
	case archiveExts[ext]:
		return "archive"
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return "archive"
	}
	text := bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	for _, m := range magics {
		if bytes.HasPrefix(text, []byte(m.bytes)) && !plainWords(m.bytes, text) {
			return m.what
		}
	}
	return ""
}

// plainWords tells a text that happens to begin with letters of a mark from
// what the mark stands for: those formats have bytes no text has.
func plainWords(magic string, head []byte) bool {
	switch magic {
	case "MZ", "BZh", "MSCF":
		return !bytes.ContainsFunc(head, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0xfffd })
	}
	return false
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}
