// The examples are built and run as an installer would run them.
package examples_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/internal/kit"
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

// TestSQLite builds the plugin in C with the SQLite that fetch.sh brings, and
// asks a small database.
func TestSQLite(t *testing.T) {
	p := loadSQLite(t)
	db, err := os.ReadFile("sqlite-query/testdata/people.db")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"a b.db": db, "text.txt": []byte(strings.Repeat("no database\n", 200)), "wal.db": db, "wal.db-wal": []byte("x")} {
		if err := os.WriteFile(filepath.Join(p.Dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	type args = map[string]any
	for _, c := range []struct {
		tool string
		args args
		want string
	}{
		{"sqlite_query", args{"path": "a b.db", "sql": "SELECT id, name, score, photo FROM people WHERE id < ? ORDER BY id", "params": []any{3}},
			"| id | name | score | photo |\n|---|---|---|---|\n| 1 | Ada | 1.5 | x'0102' |\n| 2 | Bob \\| Co | NULL | NULL |\n\n2 rows.\n"},
		{"sqlite_query", args{"path": "/ws/a b.db", "sql": "SELECT name FROM people WHERE name LIKE ? AND score > ? AND ? IS NULL", "params": []any{"Zo%", 1.5, nil}}, "| Zoë ⏎ two |"},
		{"sqlite_query", args{"path": "a b.db", "sql": "SELECT photo FROM people WHERE id = 3"}, "… (100 bytes)"},
		{"sqlite_query", args{"path": "a b.db", "sql": "SELECT * FROM people", "limit": 1}, "The first 1 rows; there are more."},
		{"sqlite_query", args{"path": "a b.db", "sql": "PRAGMA table_info(people)"}, "| name |"},
		{"sqlite_query", args{"path": "a b.db", "sql": "SELECT count(*) AS n FROM best"}, "| n |\n|---|\n| 2 |"},
		{"sqlite_query", args{"path": "a b.db", "sql": "SELECT nope FROM people"}, "no such column: nope"},
		{"sqlite_query", args{"path": "a b.db", "sql": "SELECT 1; SELECT 2"}, "more than one statement"},
		{"sqlite_query", args{"path": "a b.db", "sql": "SELECT ?"}, "has 1 parameters, and params has 0"},
		{"sqlite_query", args{"path": "a b.db", "sql": " -- nothing"}, "The statement is empty."},
		{"sqlite_query", args{"path": "a b.db", "sql": "DELETE FROM people"}, "only reads"},
		{"sqlite_query", args{"path": "a b.db", "sql": "ATTACH 'b.db' AS b"}, "only reads"},
		{"sqlite_query", args{"path": "a b.db", "sql": "PRAGMA journal_mode = WAL"}, "only reads"},
		{"sqlite_query", args{"path": "a b.db", "sql": "CREATE TEMP TABLE t (x)"}, "only reads"},
		{"sqlite_query", args{"path": "a b.db", "sql": "VACUUM INTO 'copy.db'"}, "only reads"},
		{"sqlite_query", args{"path": "text.txt", "sql": "SELECT 1 FROM sqlite_schema"}, "not a SQLite database"},
		{"sqlite_query", args{"path": "none.db", "sql": "SELECT 1"}, `There is no file "none.db" in the workspace.`},
		{"sqlite_query", args{"path": ".", "sql": "SELECT 1"}, "is not a file"},
		{"sqlite_schema", args{"path": "a b.db"}, "table people (3 rows)\n  CREATE TABLE people"},
		{"sqlite_schema", args{"path": "a b.db"}, "index by_name"},
		{"sqlite_schema", args{"path": "wal.db"}, "wal.db-wal"},
	} {
		r, _, err := p.Call(c.tool, c.args, "fs.read /ws/**")
		if err != nil || !strings.Contains(r.Text(), c.want) {
			t.Errorf("%v: %q, %v; want %q", c.args, r.Text(), err, c.want)
		}
	}
	// An endless query ends with its call, and takes nothing with it.
	endless := args{"path": "a b.db", "sql": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT sum(x) FROM c"}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if r, _, err := p.CallContext(ctx, "sqlite_query", endless, "fs.read /ws/**"); err == nil && !r.IsError {
		t.Errorf("it ended: %+v", r)
	}
	if r, _, err := p.Call("sqlite_query", args{"path": "a b.db", "sql": "SELECT 1"}, "fs.read /ws/**"); err != nil || r.IsError {
		t.Errorf("afterwards: %+v, %v", r, err)
	}
	if after, err := os.ReadFile(filepath.Join(p.Dir, "a b.db")); err != nil || string(after) != string(db) {
		t.Error("the database was changed", err)
	}
}

// loadSQLite compiles once for the same sources: clang takes most of a minute.
func loadSQLite(t *testing.T) *plugintest.Plugin {
	t.Helper()
	if testing.Short() {
		t.Skip("SQLite takes most of a minute to compile")
	}
	if out, err := exec.Command("sh", "sqlite-query/fetch.sh").CombinedOutput(); err != nil {
		t.Skipf("SQLite's sources cannot be had here: %v: %s", err, out)
	}
	sum := sha256.New()
	for _, name := range []string{"plugin.c", "vfs.h", "elf.h", "fetch.sh"} {
		b, err := os.ReadFile(filepath.Join("sqlite-query", name))
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(b)
	}
	module := "sqlite-query/plugin.wasm"
	mark := fmt.Sprintf("sqlite-query/sqlite/built-%x", sum.Sum(nil)[:8])
	if _, err := os.Stat(mark); err != nil {
		if _, err := kit.Build(t.Context(), "sqlite-query", io.Discard); errors.As(err, new(*kit.MissingToolchain)) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(mark, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wasm, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	return plugintest.LoadModule(t, "sqlite-query", wasm)
}

// The header is the one that `elfhost plugin new --lang c` gives.
func TestHeaderIsTheKits(t *testing.T) {
	ours, err1 := os.ReadFile("sqlite-query/elf.h")
	kits, err2 := os.ReadFile("../internal/kit/templates/c/common/elf.h")
	if err1 != nil || err2 != nil || string(ours) != string(kits) {
		t.Error("examples/sqlite-query/elf.h is not the kit's", err1, err2)
	}
}
