package reach

import (
	"bufio"
	"context"
	"io"
	"runtime"
	"testing"

	"github.com/elfhost/elfhost/host/policy"
)

// A program that speaks a protocol has its standard output to itself, while
// what it says on standard error is kept.
func TestStdoutAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs sh")
	}
	in, feed := io.Pipe()
	out, sink := io.Pipe()
	var r Runner
	j, err := r.Start(context.Background(), policy.Rights{Grants: policy.Unlimited()}, Program{
		Argv: []string{"/bin/sh", "-c", `while read l; do echo "got $l"; echo "saw $l" >&2; done; exit 3`}, Dir: t.TempDir(),
		Stdin: in, Stdout: sink,
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, word := range []string{"one", "two"} {
		if _, err := io.WriteString(feed, word+"\n"); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() || lines.Text() != "got "+word {
			t.Fatalf("read %q", lines.Text())
		}
	}
	feed.Close()
	exit, err := j.Wait(context.Background())
	if err != nil || exit.Code != 3 || string(exit.Output) != "saw one\nsaw two\n" {
		t.Fatalf("exit %+v, %v, output %q", exit, err, exit.Output)
	}
}
