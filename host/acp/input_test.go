package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

// feed gives an input that nobody handles messages of, and what it answers by itself.
func feed(r io.Reader) (*input, *bytes.Buffer) {
	var said bytes.Buffer
	out := &output{w: &said, failed: func(error) {}}
	ended := make(chan struct{})
	close(ended) // nothing is waited for
	in := &input{r: bufio.NewReaderSize(r, 64<<10), out: out, ready: make(chan struct{}), ended: ended}
	close(in.ready)
	return in, &said
}

func TestInputIsBounded(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for name, c := range map[string]struct{ line, passed, said string }{
		"a request":      {`{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"x":"` + long + `"}}`, "", `{"error":{"code":-32600,"message":"Invalid request","data":{"error":"the message is over 10 MiB"}},"id":7,"jsonrpc":"2.0"}`},
		"an answer":      {`{"jsonrpc":"2.0","id":3,"result":{"content":"` + long + `"}}`, `{"error":{"code":-32600,"message":"Invalid request","data":{"error":"the message is over 10 MiB"}},"id":3,"jsonrpc":"2.0"}`, ""},
		"rubbish":        {long, "", `"id":null`},
		"no JSON":        {`{"jsonrpc":`, "", `-32700`},
		"a batch":        {`[{"jsonrpc":"2.0","id":1,"method":"x"}]`, "", `a message is one object`},
		"neither nor":    {`{"jsonrpc":"2.0"}`, "", `-32600`},
		"a method of 5":  {`{"jsonrpc":"2.0","id":1,"method":5}`, "", `-32600`},
		"an empty line":  {"  ", "", ""},
		"a good message": {`{"jsonrpc":"2.0","id":1,"method":"x"}`, `{"jsonrpc":"2.0","id":1,"method":"x"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in, said := feed(strings.NewReader(c.line + "\n" + `{"jsonrpc":"2.0","id":9,"method":"next"}` + "\n"))
			passed, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			first, ok := strings.CutSuffix(string(passed), `{"jsonrpc":"2.0","id":9,"method":"next"}`+"\n")
			if !ok {
				t.Errorf("the next message was lost: %.200q", passed)
			}
			if strings.TrimSpace(first) != c.passed {
				t.Errorf("passed on: %.300q", first)
			}
			if !strings.Contains(said.String(), c.said) || c.said == "" && said.Len() > 0 {
				t.Errorf("said: %.300q", said)
			}
		})
	}
}

func TestAnswerComesBeforeWhatFollowsIt(t *testing.T) {
	var said bytes.Buffer
	o := &output{w: &said, failed: func(error) {}}
	done := make(chan struct{})
	o.then("7", func() { close(done) })
	for _, line := range []string{`{"jsonrpc":"2.0","method":"session/update"}`, `{"jsonrpc":"2.0","id":7,"method":"fs/read_text_file"}`, `{"jsonrpc":"2.0","id":8,"result":{}}`} {
		_, _ = o.Write([]byte(line + "\n"))
		select {
		case <-done:
			t.Fatalf("%s is not the answer", line)
		default:
		}
	}
	_, _ = o.Write([]byte(`{"jsonrpc":"2.0","id":7,"result":{"sessionId":"x"}}` + "\n"))
	<-done
}

// What was asked right before the end of the input is answered, also where that
// takes some seconds; what is never answered does not hold it up for ever.
func TestAnswersBehindTheEnd(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{8 * time.Second: 8 * time.Second, time.Hour: lastAnswers} {
		synctest.Test(t, func(t *testing.T) {
			out := &output{w: io.Discard, failed: func(error) {}}
			in := &input{r: bufio.NewReader(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize"}` + "\n")), out: out, ready: make(chan struct{}), ended: t.Context().Done()}
			close(in.ready)
			answer := time.AfterFunc(after, func() { _, _ = out.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n")) })
			defer answer.Stop()
			began := time.Now()
			b := make([]byte, 1<<10)
			if n, err := in.Read(b); n == 0 || err != nil {
				t.Fatal(n, err)
			}
			in.current().taken()
			if _, err := in.Read(b); err != io.EOF || time.Since(began) != want {
				t.Errorf("an answer after %v: %v after %v", after, err, time.Since(began))
			}
		})
	}
}

// A message waits for the one before it, also for seconds, but not for ever.
func TestMessagesWaitForTheOneBefore(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{8 * time.Second: 8 * time.Second, time.Hour: takeTime} {
		synctest.Test(t, func(t *testing.T) {
			lines := strings.Repeat(`{"jsonrpc":"2.0","method":"session/cancel"}`+"\n", 2)
			in := &input{r: bufio.NewReader(strings.NewReader(lines)), out: &output{w: io.Discard, failed: func(error) {}}, ready: make(chan struct{}), ended: t.Context().Done()}
			close(in.ready)
			b := make([]byte, 1<<10)
			if n, err := in.Read(b); n == 0 || err != nil {
				t.Fatal(n, err)
			}
			taken := time.AfterFunc(after, in.current().taken)
			defer taken.Stop()
			began := time.Now()
			if n, err := in.Read(b); n == 0 || err != nil || time.Since(began) != want {
				t.Errorf("taken after %v: %d, %v after %v", after, n, err, time.Since(began))
			}
		})
	}
}

// FuzzInput: whatever comes, what is passed on is messages that the SDK reads,
// and what is answered is JSON.
func FuzzInput(f *testing.F) {
	for _, s := range []string{`{"id":1,"method":"x"}`, `{"id":null,"method":"x"}`, `{"id":[],"result":{}}`, "[]\n{}\n", `{"id":1,"error":3}`, "\xff\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in, said := feed(bytes.NewReader(b))
		passed, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(passed) {
			var m message
			if err := json.Unmarshal(line, &m); err != nil || m.Method == "" && m.ID == nil {
				t.Errorf("passed on: %q (%v)", line, err)
			}
		}
		for line := range bytes.Lines(said.Bytes()) {
			if !json.Valid(line) {
				t.Errorf("answered: %q", line)
			}
		}
	})
}

// FuzzCall: what a model writes as arguments is shown, whatever it is.
func FuzzCall(f *testing.F) {
	f.Add(`{"path":"a","content":"b"}`)
	f.Add(`{"path":5,"args":{}}`)
	f.Add("{\"command\":\"\\u202e\\u0000```\"}")
	f.Fuzz(func(t *testing.T, args string) {
		s := &server{Options: Options{Escape: func(t string) string { return t }}}
		c := &Client{srv: s}
		sh := &shown{id: "x", tool: "Shell", args: json.RawMessage(args)}
		if title := c.title(sh); len(title) > 2*maxTitle || strings.Contains(title, "\n") {
			t.Errorf("the title is %q", title)
		}
		if _, err := json.Marshal(s.raw(sh.args)); err != nil {
			t.Error(err)
		}
		text := s.fence(args).Content.Content.Text.Text
		mark, body, _ := strings.Cut(text, "\n")
		if body = strings.TrimSuffix(body, "\n"+mark); strings.Contains(body, mark) || !strings.HasSuffix(text, "\n"+mark) {
			t.Errorf("%q gets out of its fence", text)
		}
		_, _ = planOf("Plan", args)
	})
}

// FuzzPrompt: whatever blocks a client sends become content or an error.
func FuzzPrompt(f *testing.F) {
	f.Add([]byte(`[{"type":"text","text":"x"},{"type":"image","data":"AAAA","mimeType":"image/png"}]`))
	f.Add([]byte(`[{"type":"resource","resource":{"uri":"x","blob":"!"}},{"type":"resource_link","uri":"x","name":"y"}]`))
	f.Add([]byte(`[{}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var blocks []sdk.ContentBlock
		if json.Unmarshal(b, &blocks) != nil {
			return
		}
		c, err := contentOf(blocks)
		if err == nil && len(c) != len(blocks) {
			t.Errorf("%d blocks became %d", len(blocks), len(c))
		}
	})
}
