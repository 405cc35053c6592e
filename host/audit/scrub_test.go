package audit

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secrets are put together here, so that no scanner takes this file for a leak.
func secrets() []string {
	return []string{
		"sk-ant-" + "api03-abcDEF123456ghiJKL", "ghp_" + strings.Repeat("a1B2", 9), "github_pat_" + strings.Repeat("X9y", 8),
		"AKIA" + "IOSFODNN7EXAMPLE", "AIza" + "SyA1234567890abcdefghijklmnopqrstu",
		"xoxb-" + "1234567890-abcdefghij", "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxIn0.c2ln",
		"q7Zp2LmX9vB4nK8sT1wY", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
	}
}

func TestSecretsAreNeverWritten(t *testing.T) {
	dir := t.TempDir()
	known := "correct horse"
	l := opened(t, dir, Options{Scrub: func(s string) string { return strings.ReplaceAll(s, known, "***") }})
	for _, s := range append(secrets(), known) {
		for _, args := range []string{`{"command":"curl -H 'X: ` + s + `' https://x"}`, `{"a":"` + s + `"}`, `{"a\n":["` + s + `\n"]}`, `{"a":"\u00` + hex2(s[0]) + s[1:] + `"}`} {
			if err := l.Append(Record{Event: EventVerdict, Args: args, Target: "https://x/?k=" + s, Reason: "failed: " + s}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, args := range []string{
		`{"env":{"DB_PASSWORD":"hunter2!"}}`, `{"command":"mysql --password hunter2!"}`, `{"command":"TOKEN=hunter2! make"}`,
		`{"url":"https://user:hunter2!@example.org/"}`, `{"h":"Authorization: Basic hunter2hunter2"}`, `{"password": "hunter2! and \"more"}`,
	} {
		if err := l.Append(Record{Event: EventVerdict, Args: args}); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, fileName(1)))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(secrets(), known, "hunter2") {
		if i := bytes.Index(b, []byte(s)); i >= 0 {
			t.Errorf("%q was written: …%s…", s, b[max(0, i-60):min(len(b), i+80)])
		}
	}
	if rep := verified(t, dir); rep.Bad != nil {
		t.Error(rep.Bad)
	}
}

func hex2(c byte) string { const d = "0123456789abcdef"; return string([]byte{d[c>>4], d[c&15]}) }

func TestOrdinaryTextStays(t *testing.T) {
	s := &scrubber{}
	for _, text := range []string{
		`{"path":"host/policy/grants_test.go","limit":3}`,
		`{"command":"go test -run TestSecretsAreNeverWritten ./host/audit"}`,
		`https://api.github.com/repos/golang/go/issues?state=open&page=2`,
		`mcp__github__list_pull_requests`, `internationalization-and-localization`,
		`/home/ann/src/elfhost/plugins/webfetch/dist/webfetch.wasm`,
		`2026-01-02T15:04:05Z`, `the token limit was reached`,
	} {
		if got := s.json(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
