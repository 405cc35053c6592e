package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/internal/app"
)

// TestCancelRightBehindAPrompt: one that comes in the same breath finds the
// prompt that it means, and a late one does not find the next prompt.
func TestCancelRightBehindAPrompt(t *testing.T) {
	h := newHouse(t)
	h.script("[[turn]]\nalways = true\nwhen = { prompt = 'slow' }\ntext = 'one two three four five six seven eight nine ten'\ndelay = '30s'\n",
		"[[turn]]\nalways = true\ntext = 'done'\n")
	toAgent, fromAgent := serve(t, app.Editor{Session: app.Options{Env: h.env, Model: "scripted/script.toml"}})
	send := func(lines ...string) {
		if _, err := io.WriteString(toAgent, strings.Join(lines, "\n")+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	early := map[int]string{} // answers to requests beside each other come in any order
	answer := func(id int) string {
		if got, ok := early[id]; ok {
			return got
		}
		for fromAgent.Scan() {
			var m struct {
				ID     *int            `json:"id"`
				Method string          `json:"method"`
				Result json.RawMessage `json:"result"`
				Error  json.RawMessage `json:"error"`
			}
			if json.Unmarshal(fromAgent.Bytes(), &m) != nil || m.ID == nil || m.Method != "" {
				continue
			}
			if early[*m.ID] = string(m.Result) + string(m.Error); *m.ID == id {
				return early[id]
			}
		}
		t.Fatalf("no answer to %d: %v", id, fromAgent.Err())
		return ""
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	answer(1)
	send(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`, h.dir))
	var made struct {
		ID string `json:"sessionId"`
	}
	if err := json.Unmarshal([]byte(answer(2)), &made); err != nil {
		t.Fatal(err)
	}
	prompt := func(id int, text string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}}`, id, made.ID, text)
	}
	cancel := fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, made.ID)
	for n := 10; n < 50; n += 2 {
		send(prompt(n, "slow"), cancel)
		if got := answer(n); !strings.Contains(got, `"cancelled"`) {
			t.Fatalf("prompt %d: %s", n, got)
		}
		send(cancel, prompt(n+1, "quick"))
		if got := answer(n + 1); !strings.Contains(got, `"end_turn"`) {
			t.Fatalf("prompt %d: %s", n+1, got)
		}
	}
	// The protocol's own way to cancel any request.
	send(prompt(90, "slow"), `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":90}}`)
	if got := answer(90); !strings.Contains(got, `"cancelled"`) {
		t.Errorf("a cancelled request: %s", got)
	}
	send(`{"jsonrpc":"2.0","id":91,"method":"_vendor/thing"}`, `{"jsonrpc":"2.0","method":"_vendor/note"}`, `{"jsonrpc":"2.0","id":92,"method":"session/list","params":{"cursor":"x"}}`)
	if got := answer(91); !strings.Contains(got, "-32601") {
		t.Errorf("an unknown method: %s", got)
	}
	if got := answer(92); !strings.Contains(got, "-32602") {
		t.Errorf("a wrong cursor: %s", got)
	}
}

// serve starts an agent whose lines are the test's own.
func serve(t *testing.T, e app.Editor) (io.Writer, *bufio.Scanner) {
	fromTest, toAgent := io.Pipe()
	fromAgent, toTest := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- e.Serve(context.Background(), fromTest, toTest)
		toTest.Close()
	}()
	t.Cleanup(func() {
		toAgent.Close()
		go func() { _, _ = io.Copy(io.Discard, fromAgent) }()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	s := bufio.NewScanner(fromAgent)
	s.Buffer(nil, 10<<20)
	return toAgent, s
}
