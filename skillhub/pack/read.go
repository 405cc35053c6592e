package pack

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/elfhost/elfhost/skillhub"
)

// Unpack reads an archive and gives its files to the sink, which may be nil.
// Before it returns without an error, nothing of the sink's may be used: the
// rules of the whole are checked last.
func Unpack(ctx context.Context, r io.Reader, to Sink, o Options) (*Contents, error) {
	in := &counter{r: r, most: skillhub.MaxArchive}
	buf := bufio.NewReaderSize(in, 64<<10)
	if err := checkHead(buf); err != nil {
		return nil, err
	}
	zr, err := gzip.NewReader(buf)
	if err != nil {
		return nil, refuse("%w", err)
	}
	zr.Multistream(false)
	out := &inflated{r: zr, in: in}
	tr := tar.NewReader(out)
	b := &builder{o: o}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = b.unpack(tr, h, to)
		}
		if err != nil {
			return nil, broken(in, err)
		}
	}
	if err := trailer(out, buf); err != nil {
		return nil, broken(in, err)
	}
	return b.finish()
}

// broken makes every complaint about the bytes an ErrRefused, and leaves those
// of the reader below alone.
func broken(in *counter, err error) error {
	if in.err != nil || errors.Is(err, ErrRefused) || errors.Is(err, errSink) {
		return err
	}
	return refuse("it cannot be read: %w", err)
}

var errSink = errors.New("writing the files of the package")

func (b *builder) unpack(tr *tar.Reader, h *tar.Header, to Sink) error {
	if err := checkEntry(h); err != nil {
		return refuse("%w", err)
	}
	body, left, err := b.begin(h.Name, h.Size, tr)
	if err != nil {
		return err
	}
	b.c.Files[len(b.c.Files)-1].Left = left
	sum := sha256.New()
	w := io.MultiWriter(sum, b.keep(h.Name))
	if left || to == nil {
		_, err = io.Copy(w, body)
	} else {
		err = pour(to, h.Name, w, body)
	}
	b.end(skillhub.DigestSum(sum.Sum(nil)))
	return err
}

func pour(to Sink, name string, w io.Writer, body io.Reader) error {
	f, err := to.Create(name)
	if err != nil {
		return fmt.Errorf("%w: %w", errSink, err)
	}
	dst := &sinkWriter{w: f}
	_, err = io.Copy(io.MultiWriter(w, dst), body)
	if dst.err == nil {
		dst.err = f.Close()
	} else {
		f.Close()
	}
	if dst.err != nil {
		return fmt.Errorf("%w: %q: %w", errSink, name, dst.err)
	}
	return err
}

// sinkWriter remembers whose fault an error was.
type sinkWriter struct {
	w   io.Writer
	err error
}

func (s *sinkWriter) Write(p []byte) (n int, err error) {
	n, s.err = s.w.Write(p)
	return n, s.err
}

// checkEntry holds a header against the one form that Write gives it.
func checkEntry(h *tar.Header) error {
	switch h.Typeflag {
	case tar.TypeReg:
	case tar.TypeDir:
		return fmt.Errorf("%q is an entry for a folder; folders come with their files", h.Name)
	case tar.TypeSymlink, tar.TypeLink:
		return fmt.Errorf("%q is a link to %q; only regular files are allowed", h.Name, h.Linkname)
	case tar.TypeChar, tar.TypeBlock:
		return fmt.Errorf("%q is a device; only regular files are allowed", h.Name)
	case tar.TypeFifo:
		return fmt.Errorf("%q is a FIFO; only regular files are allowed", h.Name)
	case tar.TypeGNUSparse:
		return fmt.Errorf("%q is a sparse file", h.Name)
	default:
		return fmt.Errorf("%q is an entry of the unknown kind %q", h.Name, h.Typeflag)
	}
	for k := range h.PAXRecords {
		if k != "path" {
			return fmt.Errorf("%q has the extended header %q", h.Name, k)
		}
	}
	want := header(h.Name, h.Size)
	switch {
	case h.Format != tar.FormatUSTAR && h.Format != tar.FormatPAX:
		return fmt.Errorf("%q is not in the format of packages (ustar, pax for long names)", h.Name)
	case h.Linkname != "":
		return fmt.Errorf("%q is a file, and has a link's target %q", h.Name, h.Linkname)
	case h.Mode != want.Mode || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || h.ModTime.Unix() != 0 || h.Devmajor != 0 || h.Devminor != 0:
		return fmt.Errorf("%q has a mode, an owner or a time of its own: `elfhost plugin pack` makes archives without", h.Name)
	}
	return nil
}

// checkHead refuses what is no archive of ours before anything reads it, and
// says what it is.
func checkHead(r *bufio.Reader) error {
	head, err := r.Peek(len(gzipHead))
	switch {
	case err == io.EOF:
		return refuse("it has %d bytes and is no package", len(head))
	case err != nil:
		return err
	case bytes.HasPrefix(head, []byte("PK")):
		return refuse("it is a zip archive, not a package: unpack it, look at it, and install the folder")
	case [10]byte(head) == gzipHead:
		return nil
	case bytes.HasPrefix(head, gzipHead[:2]):
		return refuse("it is gzip, but not in the form that `elfhost plugin pack` gives a package")
	}
	return refuse("it is no package: its first bytes are %q", head)
}

// trailer reads what comes after the last entry: padding, and nothing else.
func trailer(out io.Reader, buf *bufio.Reader) error {
	pad := make([]byte, 4096)
	for {
		n, err := out.Read(pad)
		if bytes.IndexFunc(pad[:n], func(r rune) bool { return r != 0 }) >= 0 {
			return refuse("there is something after its last file")
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if _, err := buf.Peek(1); err != io.EOF {
		if err != nil {
			return err
		}
		return refuse("there is something after the end of the archive")
	}
	return nil
}

// counter counts packed bytes and remembers an error that is not theirs.
type counter struct {
	r       io.Reader
	n, most int64
	err     error
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.n += int64(n); c.n > c.most {
		return 0, refuse("its archive is over %d bytes", c.most)
	}
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// inflated bounds what the archive becomes.
type inflated struct {
	r  io.Reader
	in *counter
	n  int64
}

// overhead is what tar adds to the files: headers, extended ones too, padding.
const overhead = MaxEntries * 4096

func (f *inflated) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	f.n += int64(n)
	switch {
	case f.n > MaxBytes+overhead:
		return 0, refuse("it unpacks to over %d bytes", int64(MaxBytes))
	case f.n > freeOfRatio && f.n/maxRatio > f.in.n:
		return 0, refuse("it unpacks to over %d times its size", maxRatio)
	}
	return n, err
}
