// Package queries holds what the search tools are compared with ripgrep on: the
// same list for the test of what they find and for the measure of how fast.
package queries

// Patterns are arguments of ripgrep and of the tool rg: 60 searches of every kind.
func Patterns() [][]string {
	return [][]string{
		{"TODO"}, {"func main"}, {"ZZnoSuchThing"}, {"e"}, {"^package"}, {"}$"}, {"^$"}, {`\bfunc\b`}, {"-w", "err"}, {"-x", "}"},
		{"-i", "todo"}, {"-i", "todo|fixme"}, {"todo|fixme|xxx|hack"}, {"-i", "mutex"}, {"-S", "http"}, {"-S", "HTTP"},
		{`[0-9]{5,}`}, {`\w+\s+\d{5}`}, {`[A-Z]{10,}`}, {`"[^"]*error[^"]*"`}, {`func \(\w+ \*?\w+\) String\(\) string`},
		{`(foo|bar|baz)qux`}, {`a.*b.*c.*d.*e.*f`}, {`if err := .*; err != nil`}, {`0x[0-9a-f]{8}\b`}, {`//go:build .*windows`},
		{"-F", "a.b"}, {"-F", "[]byte("}, {"-F", `\n`}, {"-F", "-i", "Sync.Mutex"}, {"-e", "--help"}, {"--", "-pre"},
		{"-v", "-g", "*.{go,s}", "a"}, {"-v", "-g", "*.go", "^.{0,200}$"}, {"-c", "return"}, {"--count-matches", "int"}, {"--files-without-match", "-g", "*.{go,s,txt}", "func"},
		{"-l", "unsafe\\.Pointer"}, {"-m", "1", "import"}, {"-o", `[a-z]+Error`}, {"-g", "*_test.go", "Benchmark"}, {"-g", "!*_test.go", "testing"},
		{"-g", "*.{s,h}", "TEXT"}, {"-t", "go", "cgo"}, {"-T", "go", "go"}, {"--hidden", "linguist"}, {"-A1", "-n", "^import"}, {"-B2", "-n", "^}"},
		{"-C1", "-n", "unreachable"}, {"-U", `\{\n\n`}, {"-U", "--multiline-dotall", `/\*.{0,80}\*/`}, {"--iglob", "*README*", "the"},
		{`(a+)+$`}, {`(?i)[aeiou]{4}`}, {`x{3}`}, {`\t{4}return`}, {"-g", "*.go", `[^\x00-\x7F]`}, {`é|ü|ß`}, {"-i", "straße|größe"}, {`\p{Greek}`},
		{`(?:read|write|open)(?:File|Dir)\b`}, {`\.\.\.\)$`}, {"--max-depth", "2", "package"}, {"--trim", "-n", "goto"},
	}
}

// Globs are 30 patterns of file names.
func Globs() []string {
	return []string{
		"*.go", "**/*.go", "*_test.go", "src/**/*.s", "**/testdata/**", "*.{md,txt}", "src/net/*.go", "src/*/*.go", "**/doc.go", "[A-Z]*",
		"**/[a-c]*_test.go", "src/{net,os}/**/*.go", "**/*.{s,h,c}", "!*.go", "**/x?x*", "**/internal/**/*.go", "*.nosuch", "VERSION", "src/**/z*.go",
		"src/cmd/**", "**/*_{linux,darwin}.go", "*amd64*", "**/go.mod", "src/crypto/**/*_test.go", "doc/**", "lib/**/*", "**/README*", "*.pl", "src/runtime/*.[sh]", "**/a/**",
	}
}
