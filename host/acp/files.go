package acp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"
)

// How long the client may take with a file.
const (
	readTime  = 10 * time.Second // then the disk is read
	writeTime = time.Minute      // then nobody knows
)

// change is what became of a file.
type change struct {
	old  *string // nil: there was none, or none that can be shown
	text string
}

// holds reports a file that the editor may have open.
func (c *Client) holds(path string) bool {
	rel, err := filepath.Rel(c.dir, path)
	return err == nil && filepath.IsLocal(rel) && c.ses.Load() != nil
}

// ReadFile implements reach.Editor: unsaved text wins. Whatever the editor
// cannot give (a file that it does not have open, bytes that are no text) is
// read from the disk: whether it may be read was settled before.
func (c *Client) ReadFile(ctx context.Context, path string) ([]byte, error) {
	if !c.can.Fs.ReadTextFile || !c.holds(path) {
		return nil, errors.ErrUnsupported
	}
	wait, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	r, err := sdk.SendRequest[sdk.ReadTextFileResponse](c.srv.conn, wait, sdk.ClientMethodFsReadTextFile,
		sdk.ReadTextFileRequest{SessionId: c.id(), Path: path})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil, !whole([]byte(r.Content)):
		return nil, errors.ErrUnsupported
	}
	return []byte(r.Content), nil
}

// whole reports text that went through JSON as it was: what a client could not
// decode shows as U+FFFD, and written back would be lost.
func whole(b []byte) bool {
	return utf8.Valid(b) && !bytes.ContainsRune(b, utf8.RuneError) && bytes.IndexByte(b, 0) < 0
}

// WriteFile implements reach.Editor. A client that refuses has the last word:
// nothing is written behind its back.
func (c *Client) WriteFile(ctx context.Context, path string, data []byte) error {
	if !c.holds(path) || !whole(data) {
		return errors.ErrUnsupported
	}
	c.keep(ctx, path, string(data))
	if !c.can.Fs.WriteTextFile {
		return errors.ErrUnsupported
	}
	wait, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	_, err := sdk.SendRequest[sdk.WriteTextFileResponse](c.srv.conn, wait, sdk.ClientMethodFsWriteTextFile,
		sdk.WriteTextFileRequest{SessionId: c.id(), Path: path, Content: string(data)})
	var refused *sdk.RequestError
	switch {
	case err == nil, ctx.Err() != nil:
		return ctx.Err()
	case wait.Err() != nil:
		return fmt.Errorf("%s did not say within %v whether it wrote the file", c.Name(), writeTime)
	case errors.As(err, &refused) && refused.Code == sdk.NewMethodNotFound("").Code:
		return errors.ErrUnsupported
	}
	return fmt.Errorf("%s did not write the file: %s", c.Name(), c.reason(err))
}

// keep notes what a write changes, for the diff that the client is shown.
func (c *Client) keep(ctx context.Context, path, text string) {
	if len(text) > maxDiff {
		return
	}
	old, small := c.now(ctx, path)
	if !small {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes[path] = change{old, text}
}

// now is a file's text, nil where there is none; small is false where there is
// one that is no text or too large for a diff.
func (c *Client) now(ctx context.Context, path string) (text *string, small bool) {
	s := c.ses.Load()
	name, err := s.Tree.Virtual("", path)
	if err != nil {
		return nil, false
	}
	b, err := s.Tree.ReadFile(ctx, s.Rights, name, maxDiff)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, true
	case err != nil, !whole(b):
		return nil, false
	}
	return sdk.Ptr(string(b)), true
}

// reason is what a client says about why it did not do something, in one line.
func (c *Client) reason(err error) string {
	var e *sdk.RequestError
	if !errors.As(err, &e) {
		return c.srv.line(err.Error(), maxTitle)
	}
	text := e.Message
	if d, ok := e.Data.(map[string]any); ok {
		for _, k := range []string{"details", "error", "message"} {
			if s, ok := d[k].(string); ok && s != "" {
				text += ": " + s
				break
			}
		}
	}
	return c.srv.line(text, maxTitle)
}
