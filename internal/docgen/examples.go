package main

import "regexp"

// examples are run while docs/tools.md is made, in the order in which the
// tools are registered. What needs a network, a person or another machine has none.
var examples = map[string]string{
	"Read":      `{"path": "notes.md"}`,
	"Write":     `{"path": "todo.txt", "content": "ship it\n"}`,
	"Edit":      `{"path": "notes.md", "old_string": "is done", "new_string": "is tested"}`,
	"ListDir":   `{"path": "."}`,
	"Glob":      `{"pattern": "**/*.go"}`,
	"Grep":      `{"pattern": "func \\w+", "include": "*.go"}`,
	"search":    `{"pattern": "parser", "ignoreCase": true}`,
	"rg":        `{"args": ["-n", "Parse", "src"]}`,
	"Bash":      `{"command": "ls src | wc -l"}`,
	"ReadFile":  `{"path": "src/parse.go", "line": 3, "limit": 2}`,
	"Plan":      `{"entries": [{"content": "Read the parser", "priority": "high", "status": "completed"}, {"content": "Fix the overflow", "priority": "high", "status": "in_progress"}]}`,
	"WriteFile": `{"path": "todo.txt", "content": "ship it\n"}`,
	"EditFile":  `{"path": "src/parse.go", "oldText": "reads a number", "newText": "reads numbers"}`,
	"Shell":     `{"command": "wc", "args": ["-l", "notes.md"]}`,
}

var times = regexp.MustCompile(`20[0-9]{2}-[01][0-9]-[0-3][0-9][ T][0-2][0-9]:[0-5][0-9](:[0-5][0-9])?`)
