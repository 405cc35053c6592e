package hub

import (
	"archive/zip"
	"cmp"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/skillhub"
)

// place is where a hub's files lie: a web server, a folder, a bundle.
type place interface {
	// open opens a file by its path in the hub. fs.ErrNotExist says that it is
	// not there. most is how many bytes the caller reads at the most.
	open(ctx context.Context, name string, most int64) (io.ReadCloser, error)
	io.Closer
}

// BundleExt is how the names of files end that hold a hub's mirror.
const BundleExt = ".elfbundle"

// IsURL reports whether a hub's location is on the network.
func IsURL(location string) bool { return strings.Contains(location, "://") }

// CheckLocation makes a location one that does not depend on the folder one is
// in: a URL in its canonical form, or an absolute path.
func CheckLocation(location string) (string, error) {
	if !IsURL(location) {
		return filepath.Abs(location)
	}
	u, err := policy.CheckURL(location)
	if err != nil {
		return "", fmt.Errorf("%q is no address of a hub: %w", location, err)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%q is no address of a hub: it has a query or a fragment", location)
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// Grant is what reaching a hub asks of the policy: GET below its address.
func Grant(location string) (policy.Grant, error) {
	u, err := policy.CheckURL(location)
	if err != nil {
		return policy.Grant{}, err
	}
	return policy.Grant{Cap: abi.NetHTTP, Scope: []string{u.Scheme + "://" + u.Host + " GET"}}, nil
}

// openPlace opens a hub's location. Nothing is fetched by it.
func (o *Options) openPlace(location string) (place, error) {
	switch {
	case IsURL(location):
		return o.openWeb(location)
	case strings.HasSuffix(location, BundleExt):
		z, err := openBundle(location)
		if err != nil {
			return nil, fmt.Errorf("opening the bundle %q: %w", location, err)
		}
		return z, nil
	}
	r, err := os.OpenRoot(location)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no folder %q: %w", location, skillhub.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return folder{r}, nil
}

// folder is a hub in a folder, which may be somebody else's stick: links do not
// lead out of it, and only regular files are read.
type folder struct{ *os.Root }

func (f folder) open(_ context.Context, name string, _ int64) (io.ReadCloser, error) {
	// A FIFO must not block. Windows has none, and takes the flag for nothing.
	in, err := f.Root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if st, err := in.Stat(); err != nil || !st.Mode().IsRegular() {
		in.Close()
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	return in, nil
}

// web is a hub on a web server.
type web struct {
	http   *reach.HTTP
	rights policy.Rights
	base   string
	slow   time.Duration // the longest that one small file may take
}

// Times of one request. The broker ends what takes longer.
const (
	metadataTime = 30 * time.Second
	archiveTime  = 10 * time.Minute
)

func (o *Options) openWeb(location string) (place, error) {
	if o.Offline != "" {
		return nil, fmt.Errorf("%s: %w", o.Offline, skillhub.ErrOffline)
	}
	g, err := Grant(location)
	if err != nil {
		return nil, err
	}
	rights, err := o.Rights(g)
	if err != nil {
		return nil, err
	}
	return web{o.HTTP, rights, strings.TrimSuffix(location, "/"), cmp.Or(o.slow, metadataTime)}, nil
}

func (w web) open(ctx context.Context, name string, most int64) (io.ReadCloser, error) {
	limits := reach.HTTPLimits{Time: w.slow, Body: most + 1}
	if most > maxTargets {
		limits.Time = archiveTime
	}
	resp, err := w.http.Do(ctx, w.rights, &reach.Request{URL: w.base + "/" + (&url.URL{Path: name}).EscapedPath(), Limits: limits})
	if err != nil {
		return nil, err
	}
	switch resp.Status {
	case 200:
		return resp.Body, nil
	case 403, 404, 410: // stores of objects say 403 for what is not there
		err = fs.ErrNotExist
	default:
		err = fmt.Errorf("%w: the server answered %d", abi.ErrUnavailable, resp.Status)
	}
	return nil, errors.Join(fmt.Errorf("%s/%s: %w", w.base, name, err), resp.Body.Close())
}

// Close has nothing to close: the connections are the broker's.
func (w web) Close() error { return nil }

// bundle is a mirror in one file.
type bundle struct {
	zip   *zip.ReadCloser
	files map[string]*zip.File
}

// maxBundled bounds the files of a bundle.
const maxBundled = 200_000

func openBundle(name string) (*bundle, error) {
	z, err := zip.OpenReader(name)
	if err != nil {
		return nil, err
	}
	b := &bundle{z, map[string]*zip.File{}}
	if len(z.File) > maxBundled {
		return nil, errors.Join(fmt.Errorf("it holds more than %d files", maxBundled), z.Close())
	}
	for _, f := range z.File {
		b.files[f.Name] = f // a name is only ever looked up; none becomes a path
	}
	return b, nil
}

func (b *bundle) open(_ context.Context, name string, _ int64) (io.ReadCloser, error) {
	f := b.files[name]
	if f == nil {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	r, err := f.Open()
	return bundled{r}, err
}

// bundled is a file of a bundle. Damage there is no server that has to be asked
// again: the bytes are not those that were promised.
type bundled struct{ io.ReadCloser }

func (b bundled) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	var corrupt flate.CorruptInputError
	if errors.Is(err, zip.ErrChecksum) || errors.Is(err, zip.ErrFormat) || errors.As(err, &corrupt) {
		err = fmt.Errorf("%w: the bundle is damaged: %w", skillhub.ErrMismatch, err)
	}
	return n, err
}

func (b *bundle) Close() error { return b.zip.Close() }

// tooLarge is a file of which more is there than there may be.
type tooLarge struct {
	name string
	most int64
}

func (e *tooLarge) Error() string {
	return fmt.Sprintf("%s has more than the %d bytes it may have", e.name, e.most)
}

// Unwrap makes it a limit that was reached.
func (e *tooLarge) Unwrap() error { return abi.ErrTooLarge }

// readFrom reads a file of most bytes at the most.
func readFrom(ctx context.Context, p place, name string, most int64) ([]byte, error) {
	r, err := p.open(ctx, name, most)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(ctxReader{ctx, r}, most+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if int64(len(b)) > most {
		return nil, &tooLarge{name, most}
	}
	return b, nil
}
