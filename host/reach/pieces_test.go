package reach

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

// A text in pieces is written, and read, as if it were put together.
func TestPieces(t *testing.T) {
	w := newWorld(t)
	r := readWrite(t)
	put(t, w.host("src"), "0123456789")
	f, err := w.Open(bg, r, "/ws/src", os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	made := func() io.ReadSeeker {
		return Pieces(Piece{From: f, Len: 4}, Piece{Data: []byte("NEW")}, Piece{}, Piece{From: f, Off: 7, Len: 3})
	}
	if err := iotest.TestReader(readerOnly{made()}, []byte("0123NEW789")); err != nil {
		t.Error(err)
	}
	p := made()
	if _, err := io.ReadAll(p); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteFile(bg, r, "/ws/dst", p, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(w.host("dst")); string(got) != "0123NEW789" {
		t.Errorf("written %q", got)
	}
	// A file that became shorter leaves the old one as it was.
	short := Pieces(Piece{From: f, Len: 400})
	if _, err := w.WriteFile(bg, r, "/ws/dst", short, WriteOptions{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	if _, err := io.Copy(io.Discard, Pieces(Piece{From: f, Off: 8, Len: 9})); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	if got, _ := os.ReadFile(w.host("dst")); string(got) != "0123NEW789" {
		t.Errorf("a failed write left %q", got)
	}
	list, err := os.ReadDir(w.dir)
	for _, e := range list {
		if err == nil && strings.HasSuffix(e.Name(), ".tmp") {
			t.Errorf("%s is left", e.Name())
		}
	}
}

type readerOnly struct{ io.Reader }
