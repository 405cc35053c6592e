// Package direct fetches packages from where no hub is: folders and archives of
// this machine, and addresses that come with the digest of what lies there.
package direct

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/pack"
)

// Files is the source of folders and archives of this machine. A folder is
// packed as it lies there.
type Files struct {
	Dir  string // relative paths begin here; "" is the process's own folder
	Home string // what "~" stands for; "" is nothing
	// WithoutScripts packs folders without the scripts in them.
	WithoutScripts bool
}

// Fetch is skillhub.Source's. It gives no digest: nobody promised one.
func (s Files) Fetch(ctx context.Context, r skillhub.Ref, dst io.Writer) (out skillhub.Fetched, err error) {
	if r.Kind != skillhub.Local {
		return out, fmt.Errorf("%s is not a path", r)
	}
	name, err := s.path(r.Location)
	if err != nil {
		return out, err
	}
	st, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return out, fmt.Errorf("%q: %w", name, skillhub.ErrNotFound)
	case err != nil:
		return out, err
	}
	out.Source = skillhub.Ref{Kind: skillhub.Local, Location: name}.String()
	switch {
	case st.IsDir():
		err = s.folder(ctx, name, dst)
	case !st.Mode().IsRegular():
		err = fmt.Errorf("%q is neither a folder nor a file", name)
	default:
		out.Form, err = file(name, dst)
	}
	return out, err
}

func (s Files) path(name string) (string, error) {
	if rest, ok := strings.CutPrefix(filepath.ToSlash(name), "~/"); ok {
		if s.Home == "" {
			return "", fmt.Errorf("%q: no home folder is known", name)
		}
		name = filepath.Join(s.Home, filepath.FromSlash(rest))
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(s.Dir, name)
	}
	return filepath.Abs(name)
}

func (s Files) folder(ctx context.Context, name string, w io.Writer) error {
	root, err := os.OpenRoot(name)
	if err != nil {
		return err
	}
	defer root.Close()
	_, err = root.Stat(pack.ManifestFile)
	_, err = pack.Folder(ctx, w, root.FS(), pack.Options{WithoutScripts: s.WithoutScripts, Foreign: err != nil})
	return err
}

func file(name string, w io.Writer) (form skillhub.Form, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return "", fmt.Errorf("%q is not a regular file", name)
	}
	if strings.HasSuffix(name, ".wasm") {
		form = skillhub.Module
	}
	return form, pour(w, f, name)
}

// pour copies what may be a package.
func pour(w io.Writer, r io.Reader, name string) error {
	n, err := io.Copy(w, io.LimitReader(r, skillhub.MaxArchive+1))
	if err == nil && n > skillhub.MaxArchive {
		err = fmt.Errorf("%q is over %d bytes, more than a package may have", name, skillhub.MaxArchive)
	}
	return err
}

type tally struct {
	w io.Writer
	h interface {
		io.Writer
		Sum([]byte) []byte
	}
	n int64
}

func (t *tally) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	t.h.Write(p[:n])
	t.n += int64(n)
	return n, err
}

// downloadTime bounds one fetch, however slow the server.
const downloadTime = 10 * time.Minute

// Web is the source of https addresses with a digest.
type Web struct {
	HTTP *reach.HTTP
	// Rights are those of one fetch, from the grant that it asks for.
	Rights func(policy.Grant) (policy.Rights, error)
}

// Fetch is skillhub.Source's. Only the bytes of the reference's digest will do.
func (s Web) Fetch(ctx context.Context, r skillhub.Ref, dst io.Writer) (out skillhub.Fetched, err error) {
	if r.Kind != skillhub.URL || !r.Digest.Valid() {
		return out, fmt.Errorf("%s is not an address with a digest", r)
	}
	u, err := policy.CheckURL(r.Location)
	if err != nil {
		return out, err
	}
	// The address that a person typed may be a private one. Wherever it leads
	// from there is public, and the digest decides what is taken.
	rights, err := s.Rights(policy.Grant{Cap: abi.NetHTTP, Scope: []string{u.Scheme + "://" + u.Host + " GET", "public GET"}})
	if err != nil {
		return out, err
	}
	resp, err := s.HTTP.Do(ctx, rights, &reach.Request{URL: r.Location, Limits: reach.HTTPLimits{Body: skillhub.MaxArchive + 1, Time: downloadTime},
		Header: http.Header{"Accept-Encoding": {"identity"}}})
	if err != nil {
		return out, fmt.Errorf("fetching %q: %w", r.Location, err)
	}
	defer resp.Body.Close()
	if resp.Status == http.StatusNotFound {
		return out, fmt.Errorf("%q: %w", r.Location, skillhub.ErrNotFound)
	}
	if resp.Status != http.StatusOK {
		return out, fmt.Errorf("fetching %q: the server answered %d %s", r.Location, resp.Status, http.StatusText(resp.Status))
	}
	w := &tally{w: dst, h: sha256.New()}
	if err := pour(w, resp.Body, r.Location); err != nil {
		return out, fmt.Errorf("fetching %q: %w", r.Location, err)
	}
	out = skillhub.Fetched{Digest: skillhub.DigestSum(w.h.Sum(nil)), Size: w.n, Source: r.String(), Vouched: "the digest in the reference"}
	if strings.HasSuffix(r.Location, ".wasm") {
		out.Form = skillhub.Module
	}
	if out.Digest != r.Digest {
		return skillhub.Fetched{}, fmt.Errorf("%q: %w: %s, not %s", r.Location, skillhub.ErrMismatch, out.Digest, r.Digest)
	}
	return out, nil
}
