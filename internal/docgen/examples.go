package main

// example is one call that the page shows, as it was really made.
type example struct {
	tool, args string
	// hidden calls prepare the next one.
	hidden bool
	// take names parts of the answer, by regular expression, for {{name}} in
	// later arguments.
	take map[string]string
}

// examples are the calls that a scripted model makes in one conversation of
// each dialect, in this order, each only where its tool is. Every tool has
// one that is shown: a page without fails.
func examples(site string) []example {
	return []example{
		{tool: "Read", args: `{"path": "notes.md"}`},
		{tool: "ReadFile", args: `{"path": "src/parse.go", "line": 3, "limit": 2}`},
		{tool: "ReadFile", args: `{"path": "notes.md"}`, hidden: true},
		{tool: "Write", args: `{"path": "todo.txt", "content": "ship it\n"}`},
		{tool: "WriteFile", args: `{"path": "todo.txt", "content": "ship it\n"}`},
		{tool: "Edit", args: `{"path": "notes.md", "old_string": "is done", "new_string": "is tested"}`},
		{tool: "EditFile", args: `{"path": "src/parse.go", "oldText": "reads a number", "newText": "reads numbers"}`},
		{tool: "ListDir", args: `{"path": "."}`},
		{tool: "Glob", args: `{"pattern": "**/*.go"}`},
		{tool: "Grep", args: `{"pattern": "func \\w+", "include": "*.go"}`},
		{tool: "search", args: `{"pattern": "parser", "ignoreCase": true}`},
		{tool: "rg", args: `{"args": ["-n", "Parse", "src"]}`},
		{tool: "file_outline", args: `{"path": "src/parse.go"}`},
		{tool: "Bash", args: `{"command": "ls src | wc -l"}`},
		{tool: "Bash", args: `{"command": "echo listening on port 8080; sleep 600", "background": true}`, hidden: true, take: map[string]string{"job": `job-\d+`}},
		pause(),
		{tool: "BashJob", args: `{"id": "{{job}}", "kill": true}`},
		{tool: "Shell", args: `{"command": "wc", "args": ["-l", "notes.md"]}`},
		{tool: "Shell", args: `{"command": "echo listening on port 8080; sleep 600", "background": true}`, hidden: true, take: map[string]string{"job": `job-\d+`}},
		{tool: "Shell", args: `{"command": "sleep 2"}`, hidden: true},
		{tool: "ShellJob", args: `{"id": "{{job}}", "kill": true}`},
		{tool: "WebSearch", args: `{"query": "integer overflow in parsers", "count": 2}`},
		{tool: "WebFetch", args: `{"url": "` + site + `/overflow"}`},
		{tool: "ImageAnalysis", args: `{"path": "chart.png", "query": "Which colour is the chart?"}`},
		{tool: "list_skills", args: `{}`},
		{tool: "read_skill", args: `{"name": "release-notes"}`},
		{tool: "skillhub_search", args: `{"query": "changelog"}`},
		{tool: "skillhub_install", args: `{"skillId": "acme/changelog"}`},
		{tool: "slash_command", args: `{"command": "review", "args": "src/parse.go"}`},
		{tool: "Plan", args: `{"entries": [{"content": "Read the parser", "priority": "high", "status": "completed"}, {"content": "Fix the overflow", "priority": "high", "status": "in_progress"}]}`},
		{tool: "Notify", args: `{"title": "The tests pass", "body": "All 214 of them."}`},
		{tool: "spawn_agent", args: `{"prompt": "Count the functions in src.", "background": true}`, take: map[string]string{"run": `run_[a-z2-7]+`}},
		pause(),
		{tool: "subagent_list", args: `{}`},
		{tool: "subagent_status", args: `{"runId": "{{run}}"}`},
		{tool: "Subagent", args: `{"purpose": "know the code", "tasks": [{"name": "functions", "prompt": "Count the functions in src."}]}`},
		{tool: "SessionsSpawn", args: `{"prompt": "Count the functions in src.", "title": "counting"}`, take: map[string]string{"session": `ses_[a-z2-7]+`}},
		pause(),
		{tool: "SessionsList", args: `{"limit": 5}`},
		{tool: "SessionsSend", args: `{"sessionId": "{{session}}", "message": "Count the methods as well."}`},
		pause(),
		{tool: "SessionsHistory", args: `{"sessionId": "{{session}}", "limit": 2}`},
		{tool: "SessionsYield", args: `{"message": "The parser is fixed."}`},
	}
}

// pause lets what runs beside the conversation come to its end.
func pause() example { return example{tool: "Bash", args: `{"command": "sleep 2"}`, hidden: true} }
