package hub

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/skillhub"
)

func zipped(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(b []byte) (out []skillhub.Listing, err error) {
	for l, err := range decodeRows(b) {
		if err != nil {
			return out, err
		}
		out = append(out, l)
	}
	return out, nil
}

func TestIndexRoundTrip(t *testing.T) {
	want := []skillhub.Listing{
		{Name: "alpha", Version: "1.0.0", Publisher: "acme", KeyID: "AB", Description: "ü <&>", Kind: skillhub.Both, Tools: []string{"a", "b"}, Size: 7, Installs: 9,
			Needs: []abi.Need{{Cap: abi.NetHTTP, Scope: []string{"https://x.example GET"}}, {Cap: abi.KV}}},
		{Name: "beta", Version: "2", Publisher: "acme", KeyID: "AB", Kind: skillhub.Text, Size: 1},
		{Name: "gamma", Version: "2", Kind: skillhub.Tool, Size: 1},
	}
	b, err := encodeIndex([]skillhub.Listing{want[2], want[0], want[1]})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(b); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read = %+v, %v", got, err)
	}
}

func TestIndexRefuses(t *testing.T) {
	const head, pub, row = `{"elfhost-index":1,"publishers":1,"rows":1}`, `{"p":"acme"}`, `{"n":"a","v":"1","p":0,"t":"tool"}`
	if got, err := read(zipped(t, head+"\n"+pub+"\n"+row+"\n")); err != nil || len(got) != 1 {
		t.Fatalf("the good one: %v, %v", got, err)
	}
	two := strings.Replace(head, `"rows":1`, `"rows":2`, 1)
	for what, text := range map[string]string{
		"nothing":           "",
		"no publisher":      head + "\n",
		"no row":            head + "\n" + pub + "\n",
		"too few":           two + "\n" + pub + "\n" + row + "\n",
		"too many":          head + "\n" + pub + "\n" + row + "\n" + strings.Replace(row, `"a"`, `"b"`, 1) + "\n",
		"twice":             two + "\n" + pub + "\n" + row + "\n" + row + "\n",
		"another format":    strings.Replace(head, "1", "2", 1) + "\n" + pub + "\n" + row + "\n",
		"negative":          strings.Replace(head, `"rows":1`, `"rows":-1`, 1) + "\n",
		"endless":           strings.Replace(head, `"rows":1`, `"rows":99999999999`, 1) + "\n",
		"a bad name":        head + "\n" + pub + "\n" + strings.Replace(row, `"a"`, `"../a"`, 1) + "\n",
		"a bad version":     head + "\n" + pub + "\n" + strings.Replace(row, `"1"`, `"/"`, 1) + "\n",
		"a bad kind":        head + "\n" + pub + "\n" + strings.Replace(row, `tool`, `x`, 1) + "\n",
		"nobody":            head + "\n" + pub + "\n" + strings.Replace(row, `"p":0`, `"p":1`, 1) + "\n",
		"somebody negative": head + "\n" + pub + "\n" + strings.Replace(row, `"p":0`, `"p":-1`, 1) + "\n",
		"a long text":       head + "\n" + pub + "\n" + strings.Replace(row, `"t"`, `"d":"`+strings.Repeat("x", maxDescription+1)+`","t"`, 1) + "\n",
		"a long line":       head + "\n" + pub + "\n" + strings.Repeat(" ", maxIndexRow+1) + row + "\n",
	} {
		if got, err := read(zipped(t, text)); err == nil {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if _, err := read([]byte("no gzip")); err == nil {
		t.Error("what is not compressed is read")
	}
}

// TestIndexBomb: an index that unpacks to far more than it is.
func TestIndexBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"elfhost-index":1,"publishers":1,"rows":2000000}` + "\n{}\n")
	b.WriteString(strings.Repeat(" ", 16<<20))
	if _, err := read(zipped(t, b.String())); err == nil {
		t.Error("a bomb is read")
	}
}

func FuzzIndex(f *testing.F) {
	for i := range 4 {
		var rows []skillhub.Listing
		for j := range i {
			rows = append(rows, skillhub.Listing{Name: fmt.Sprintf("p%d", j), Version: "1", Kind: skillhub.Tool, Publisher: "acme"})
		}
		b, err := encodeIndex(rows)
		if err != nil {
			f.Fatal(err)
		}
		z, _ := gzip.NewReader(bytes.NewReader(b))
		text, _ := io.ReadAll(z)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, err := read(zipped(t, string(text)))
		if err != nil {
			return
		}
		b, err := encodeIndex(rows)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if again, err := read(b); err != nil || len(again) != len(rows) {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}

// FuzzRoot: a root is read before anybody vouches for it.
func FuzzRoot(f *testing.F) {
	c := &clock{day}
	a, _ := newHub(f, c, InitOptions{Bits: 1, RootKeys: 2, RootThreshold: 2})
	b, err := mustLoad(f, a).read(metadataDir+"/root.json", maxRoot)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"signed":{"_type":"root","keys":{"a":null},"roles":{"root":null}},"signatures":[]}`))
	f.Add(bytes.Replace(b, []byte(`"public":"`), []byte(`"public":"00`), 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = offer(b)
	})
}

func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"format":1,"name":"a","versions":[{"name":"a","version":"1","kind":"tool","digest":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","size":1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := ParseDocument(b, "a")
		if err != nil {
			return
		}
		if l, err := d.Find(""); err == nil && !l.Digest.Valid() {
			t.Errorf("a version without a digest: %+v", l)
		}
		for _, l := range d.Versions {
			_ = blobPath(l.Digest)
		}
	})
}
