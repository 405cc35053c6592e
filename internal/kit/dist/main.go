// Dist builds the archives of a release: one for each platform named, and
// SHA256SUMS. The same source and Go give the same bytes: paths are trimmed,
// times are those of the commit, entries are sorted, owners are nobody.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	version := flag.String("version", "devel", "what `elfhost version` says")
	out := flag.String("out", "dist", "the folder for the archives")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *version, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// entry is a file of an archive.
type entry struct {
	name string
	mode int64
	data []byte
}

func run(ctx context.Context, version, out string, platforms []string) error {
	if len(platforms) == 0 {
		return fmt.Errorf("name platforms, such as linux/amd64")
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	when := commitTime(ctx)
	var sums strings.Builder
	for _, p := range platforms {
		goos, arch, ok := strings.Cut(p, "/")
		if !ok {
			return fmt.Errorf("%q is not GOOS/GOARCH", p)
		}
		name, data, err := archive(ctx, version, goos, arch, when)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		if err := os.WriteFile(filepath.Join(out, name), data, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), name)
		fmt.Fprintf(os.Stderr, "%s: %.1f MB\n", name, float64(len(data))/1e6)
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

func commitTime(ctx context.Context) time.Time {
	b, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct").Output()
	n, perr := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || perr != nil {
		return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Unix(n, 0).UTC()
}

func archive(ctx context.Context, version, goos, arch string, when time.Time) (string, []byte, error) {
	bin := "elfhost"
	if goos == "windows" {
		bin += ".exe"
	}
	tmp, err := os.MkdirTemp("", "elf-dist-")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(tmp)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.version="+version, "-o", filepath.Join(tmp, bin), "./cmd/elfhost")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", nil, err
	}
	top := fmt.Sprintf("elfhost-%s-%s-%s", version, goos, arch)
	var entries []entry
	for _, f := range []struct {
		path, name string
		mode       int64
	}{{"LICENSE", "LICENSE", 0o644}, {"README.md", "README.md", 0o644}, {"SECURITY.md", "SECURITY.md", 0o644}, {filepath.Join(tmp, bin), bin, 0o755}} {
		data, err := os.ReadFile(f.path)
		if err != nil {
			return "", nil, err
		}
		entries = append(entries, entry{top + "/" + f.name, f.mode, data})
	}
	if goos == "windows" {
		data, err := zipped(entries, when)
		return top + ".zip", data, err
	}
	data, err := tarred(entries, when)
	return top + ".tar.gz", data, err
}

func tarred(entries []entry, when time.Time) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: when, Format: tar.FormatUSTAR}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(e.data); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func zipped(entries []entry, when time.Time) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: when}
		h.SetMode(os.FileMode(e.mode))
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
