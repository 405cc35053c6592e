// The examples are built and run as an installer would run them.
package examples_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/internal/plugintest"
)

func TestHello(t *testing.T) {
	p := plugintest.Load(t, "hello")
	r, receipt, err := p.Call("hello", map[string]string{"name": "Ada"})
	if err != nil || r.Text() != "Hello, Ada!" {
		t.Errorf("%+v, %v", r, err)
	}
	for op := range receipt.HostCalls {
		if strings.HasPrefix(op, "elf:") {
			t.Errorf("it called %s", op)
		}
	}
}

// What the documentation calls a plugin of 15 lines has that many with
// something on them, and is the one that is shown.
func TestHelloIsAsDocumented(t *testing.T) {
	source, err := os.ReadFile("hello/main.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for l := range strings.Lines(string(source)) {
		if strings.TrimSpace(l) != "" {
			lines++
		}
	}
	if lines > 15 {
		t.Errorf("hello has %d lines", lines)
	}
	doc, err := os.ReadFile("../docs/plugin-authors.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), string(source)) {
		t.Error("docs/plugin-authors.md does not show examples/hello/main.go as it is")
	}
}

func TestWordcount(t *testing.T) {
	p := plugintest.Load(t, "wordcount")
	if err := os.WriteFile(filepath.Join(p.Dir, "a.txt"), []byte("one two three"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := map[string]any{"paths": []string{"a.txt"}}
	if r, _, err := p.Call("wordcount", in, "fs.read /ws/**"); err != nil || string(r.Structured) != `{"total":3,"files":{"a.txt":3}}` {
		t.Errorf("%+v, %v", r, err)
	}
	if r, _, err := p.Call("wordcount", in, "fs.read /ws/other/**"); err != nil || !r.IsError {
		t.Errorf("without a grant for the file: %+v, %v", r, err)
	}
}

func TestRepoNeedsItsGrants(t *testing.T) {
	p := plugintest.Load(t, "repo")
	r, receipt, err := p.Call("repo", map[string]string{"owner": "golang", "name": "go"})
	if err != nil || !r.IsError || len(receipt.Hosts) > 0 || len(receipt.Denied) == 0 {
		t.Errorf("%+v, %+v, %v", r, receipt, err)
	}
}

// The plugins that work on files, in the sandbox, with the rights that they
// ask for and without.
func TestFilesInTheSandbox(t *testing.T) {
	for _, c := range []struct {
		dir, tool, file, text string
		args                  map[string]any
		want                  string
	}{
		{"jq", "jq", "a.json", `{"a":[1,2,3]}`, map[string]any{"filter": ".a | add", "path": "a.json"}, "6\n"},
		{"csv", "csv_query", "a.csv", "name,age\nAda,36\nBob,9\n", map[string]any{"path": "a.csv", "sortBy": "age", "columns": []string{"name"}}, "| Bob |\n| Ada |"},
		{"diff", "diff", "a.txt", "one\n", map[string]any{"old": map[string]string{"path": "a.txt"}, "new": map[string]string{"text": "two\n"}}, "-one\n+two\n"},
	} {
		t.Run(c.dir, func(t *testing.T) {
			p := plugintest.Load(t, c.dir)
			if err := os.WriteFile(filepath.Join(p.Dir, c.file), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			r, receipt, err := p.Call(c.tool, c.args, "fs.read /ws/**")
			if err != nil || r.IsError || !strings.Contains(r.Text(), c.want) {
				t.Errorf("%+v, %v", r, err)
			}
			if len(receipt.Hosts) != 0 || len(receipt.Denied) != 0 {
				t.Errorf("it reached for more: %+v", receipt)
			}
			if r, _, err := p.Call(c.tool, c.args); err != nil || !r.IsError {
				t.Errorf("without a grant: %+v, %v", r, err)
			}
		})
	}
}

// A module has the capabilities that its manifest asks for, and no other: what
// reads GitHub cannot write there.
func TestGithubOnlyReads(t *testing.T) {
	p := plugintest.Load(t, "github")
	if n := len(p.Description().Tools); n != 4 {
		t.Errorf("%d tools", n)
	}
	r, receipt, err := p.Call("github_issues", map[string]string{"owner": "golang", "repo": "go"})
	if err != nil || !r.IsError || len(receipt.Hosts) > 0 || len(receipt.Denied) == 0 {
		t.Errorf("%+v, %+v, %v", r, receipt, err)
	}
}
