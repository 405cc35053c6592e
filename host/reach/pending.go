package reach

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/elfhost/elfhost/host/policy"
)

type (
	mount        struct{}
	pool         struct{}
	folderHandle struct{}
	transport    struct {
		h      *HTTP
		rights policy.Rights
		limits HTTPLimits
	}
	File     struct{ fs.File }
	Body     struct{ io.ReadCloser }
	Scrubber struct{}
	Job      struct{}
)

const placeholderPrefix, placeholderSuffix = "__elf_secret_", "__"

var un = errors.ErrUnsupported

func openTree([]Mount) (*Tree, error)                 { return nil, un }
func (t *Tree) revealed() *Tree                       { return t }
func (t *Tree) close() error                          { return nil }
func (t *Tree) virtual(cwd, p string) (string, error) { return "", un }
func (t *Tree) host(string) (string, error)           { return "", un }
func (t *Tree) display(cwd, n string) string          { return n }
func (t *Tree) open(context.Context, policy.Rights, string, int, fs.FileMode) (*File, error) {
	return nil, un
}
func (t *Tree) readFile(context.Context, policy.Rights, string, int64) ([]byte, error) {
	return nil, un
}
func (t *Tree) writeFile(context.Context, policy.Rights, string, io.Reader, WriteOptions) (fs.FileInfo, error) {
	return nil, un
}
func (t *Tree) stat(context.Context, policy.Rights, string, bool) (fs.FileInfo, error) {
	return nil, un
}
func (t *Tree) readDir(context.Context, policy.Rights, string) ([]fs.DirEntry, error) { return nil, un }
func (t *Tree) readLink(context.Context, policy.Rights, string) (string, error)       { return "", un }
func (t *Tree) mkdir(context.Context, policy.Rights, string, fs.FileMode) error       { return un }
func (t *Tree) mkdirAll(context.Context, policy.Rights, string, fs.FileMode) error    { return un }
func (t *Tree) remove(context.Context, policy.Rights, string) error                   { return un }
func (t *Tree) rename(context.Context, policy.Rights, string, string) error           { return un }
func (t *Tree) walk(context.Context, policy.Rights, string, Walk) error               { return un }
func (f *Folder) readFile(string, []byte, int64) ([]byte, bool, error)                { return nil, false, un }
func (f *Folder) open(string) (*File, error)                                          { return nil, un }
func (f *Folder) info(string) (fs.FileInfo, error)                                    { return nil, un }
func (h *HTTP) do(context.Context, policy.Rights, *Request) (*Response, error)        { return nil, un }
func (h *HTTP) close() error                                                          { return nil }
func (t *transport) RoundTrip(*http.Request) (*http.Response, error)                  { return nil, un }
func tlsFiles(a, b, c string) (*tls.Config, error)                                    { return nil, un }
func (b *Body) Truncated() bool                                                       { return false }
func openSecrets(context.Context, string) *Secrets                                    { return &Secrets{} }
func (k *KV) get(context.Context, policy.Rights, string, string) ([]byte, error)      { return nil, un }
func (k *KV) set(context.Context, policy.Rights, string, string, []byte) error        { return un }
func (k *KV) del(context.Context, policy.Rights, string, string) error                { return un }
func (k *KV) keys(context.Context, policy.Rights, string, string) ([]string, error)   { return nil, un }
func (r *Runner) start(context.Context, policy.Rights, Program) (*Job, error)         { return nil, un }

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

func (f *File) ReadAt(p []byte, off int64) (int, error)   { return 0, un }
func (f *File) Write(p []byte) (int, error)               { return 0, un }
func (f *File) WriteAt(p []byte, off int64) (int, error)  { return 0, un }
func (f *File) Seek(off int64, whence int) (int64, error) { return 0, un }
func (f *File) Truncate(size int64) error                 { return un }
func (f *File) Sync() error                               { return un }
func (f *File) ReadDir(n int) ([]fs.DirEntry, error)      { return nil, un }

// Name is the virtual path.
func (f *File) Name() string { return "" }

// String replaces every form of every known secret with [secret].
func (s *Scrubber) String(t string) string { return t }

// Bytes is String for bytes.
func (s *Scrubber) Bytes(b []byte) []byte { return b }

// Add makes a value known; it is never forgotten. Values under 6 bytes are ignored.
func (s *Scrubber) Add(value string) {}

// Error scrubs an error's text and keeps what it wraps for errors.Is.
func (s *Scrubber) Error(err error) error { return err }

// Reader scrubs a stream; it holds back at most the length of the longest form.
func (s *Scrubber) Reader(r io.Reader) io.Reader                                           { return r }
func (t *Tree) chtimes(context.Context, policy.Rights, string, time.Time, time.Time) error { return un }
