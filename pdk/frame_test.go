package pdk

import (
	"bytes"
	"errors"
	"testing"

	"github.com/elfhost/elfhost/abi"
)

func TestFrame(t *testing.T) {
	frame, err := encodeFrame(map[string]int{"a": 1}, []byte("body\x00\xff"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "\x07\x00\x00\x00{\"a\":1}body\x00\xff"; string(frame) != want {
		t.Errorf("frame = %q, want %q", frame, want)
	}
	var head struct{ A int }
	body, err := decodeFrame(frame, &head)
	if err != nil || head.A != 1 || string(body) != "body\x00\xff" {
		t.Errorf("decoded %v %q, %v", head, body, err)
	}
}

func TestError(t *testing.T) {
	err := error(&Error{Op: "elf:net.http", Code: abi.ErrDenied})
	if !errors.Is(err, abi.ErrDenied) || err.Error() != "elf:net.http: denied" {
		t.Errorf("%v", err)
	}
}

func FuzzFrame(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00{}x"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frame []byte) {
		var head any
		body, err := decodeFrame(frame, &head)
		if err == nil && !bytes.HasSuffix(frame, body) {
			t.Errorf("the body %q is not the end of %q", body, frame)
		}
	})
}
