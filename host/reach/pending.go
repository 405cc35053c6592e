package reach

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"

	"github.com/elfhost/elfhost/host/policy"
)

type (
	pool      struct{}
	transport struct {
		h      *HTTP
		rights policy.Rights
		limits HTTPLimits
	}
	Body     struct{ io.ReadCloser }
	Scrubber struct{}
	Job      struct{}
)

const placeholderPrefix, placeholderSuffix = "__elf_secret_", "__"

var un = errors.ErrUnsupported

func (h *HTTP) do(context.Context, policy.Rights, *Request) (*Response, error)      { return nil, un }
func (h *HTTP) close() error                                                        { return nil }
func (t *transport) RoundTrip(*http.Request) (*http.Response, error)                { return nil, un }
func tlsFiles(a, b, c string) (*tls.Config, error)                                  { return nil, un }
func (b *Body) Truncated() bool                                                     { return false }
func openSecrets(context.Context, string) *Secrets                                  { return &Secrets{} }
func (k *KV) get(context.Context, policy.Rights, string, string) ([]byte, error)    { return nil, un }
func (k *KV) set(context.Context, policy.Rights, string, string, []byte) error      { return un }
func (k *KV) del(context.Context, policy.Rights, string, string) error              { return un }
func (k *KV) keys(context.Context, policy.Rights, string, string) ([]string, error) { return nil, un }
func (r *Runner) start(context.Context, policy.Rights, Program) (*Job, error)       { return nil, un }

// Wait waits for the end of the job and of its output. When ctx ends first the
// whole group is killed, and the Exit holds what was written until then.
func (j *Job) Wait(ctx context.Context) (Exit, error) { return Exit{}, un }

// Done is closed when the program has ended.
func (j *Job) Done() <-chan struct{} { return nil }

// Kill ends the whole process group: SIGTERM, then SIGKILL.
func (j *Job) Kill() {}

// PID is the host's process id, which is also the group's.
func (j *Job) PID() int             { return 0 }
func probe(context.Context) Sandbox { return Sandbox{} }
func sandboxMain([]string) int      { return 1 }

// String replaces every form of every known secret with [secret].
func (s *Scrubber) String(t string) string { return t }

// Bytes is String for bytes.
func (s *Scrubber) Bytes(b []byte) []byte { return b }

// Add makes a value known; it is never forgotten. Values under 6 bytes are ignored.
func (s *Scrubber) Add(value string) {}

// Error scrubs an error's text and keeps what it wraps for errors.Is.
func (s *Scrubber) Error(err error) error { return err }

// Reader scrubs a stream; it holds back at most the length of the longest form.
func (s *Scrubber) Reader(r io.Reader) io.Reader { return r }
