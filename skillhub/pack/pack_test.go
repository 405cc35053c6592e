package pack

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

const elfTOML = "abi = \"elf/1\"\nname = \"fetch\"\nversion = \"1.2.0\"\n"

// wasm is enough of a module for the format.
var wasm = append([]byte("\x00asm\x01\x00\x00\x00"), bytes.Repeat([]byte{0, 1, 2, 3}, 100)...)

func folder(more ...string) fstest.MapFS {
	dir := fstest.MapFS{
		"elf.toml": {Data: []byte(elfTOML)}, "plugin.wasm": {Data: wasm}, "SKILL.md": {Data: []byte("# Fetch\n")},
		"references/数据.md": {Data: []byte("data")}, "assets/a.csv": {Data: []byte("1,2\n"), Mode: 0o755},
	}
	for i := 0; i < len(more); i += 2 {
		dir[more[i]] = &fstest.MapFile{Data: []byte(more[i+1])}
	}
	return dir
}

func packed(t testing.TB, dir fs.FS, o Options) ([]byte, *Contents) {
	t.Helper()
	var b bytes.Buffer
	c, err := Folder(context.Background(), &b, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), c
}

func unpack(b []byte, o Options) (Memory, *Contents, error) {
	m := Memory{}
	c, err := Unpack(context.Background(), bytes.NewReader(b), m, o)
	return m, c, err
}

func TestSameFilesSameBytes(t *testing.T) {
	dir := folder()
	one, c := packed(t, dir, Options{})
	for _, f := range dir { // what is about a file, not in it, does not count
		f.ModTime, f.Mode = time.Now(), 0o600
	}
	two, _ := packed(t, dir, Options{})
	if !bytes.Equal(one, two) {
		t.Error("packing the same files twice gives different bytes")
	}
	m, got, err := unpack(one, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range dir {
		if !bytes.Equal(m[name], f.Data) {
			t.Errorf("%s comes back as %q", name, m[name])
		}
	}
	if got.Digest() != c.Digest() || got.Manifest.Name != "fetch" || len(got.Files) != 5 || got.Kind() != "skill+tool" {
		t.Errorf("unpacked %+v, packed %+v", got, c)
	}
	var again bytes.Buffer
	if _, err := Write(context.Background(), &again, m.Entries(), Options{}); err != nil || !bytes.Equal(again.Bytes(), one) {
		t.Errorf("packing what was unpacked gives other bytes: %v", err)
	}
}

func TestWhatIsPacked(t *testing.T) {
	dir := fstest.MapFS{}
	for _, n := range []string{"elf.toml", "plugin.wasm", "main.go", "go.mod", "prompt.md", "README.md", "LICENSE", ".git/config", ".mcp.json", "testdata/x", "sub/y.md"} {
		dir[n] = &fstest.MapFile{Data: []byte("x")}
	}
	dir["elf.toml"].Data, dir["plugin.wasm"].Data = []byte(elfTOML), wasm
	_, c := packed(t, dir, Options{})
	var names []string
	for _, f := range c.Files {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); got != "LICENSE README.md elf.toml plugin.wasm" {
		t.Errorf("a module's package holds %s", got)
	}
	for _, want := range []string{"main.go", ".git/", ".mcp.json", "testdata/"} {
		if !slices.Contains(c.Left, want) {
			t.Errorf("left out: %q, without %q", c.Left, want)
		}
	}
}

// entry is one header of a hand-made archive; zero fields are as Write has them.
type entry struct {
	h    tar.Header
	body string
}

func craft(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	for _, e := range entries {
		h := e.h
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if h.Size == 0 {
			h.Size = int64(len(e.body))
		}
		if err := tw.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		io.WriteString(tw, e.body)
	}
	tw.Close()
	zw.Close()
	return b.Bytes()
}

func file(name, body string) entry { return entry{tar.Header{Name: name}, body} }

// refused unpacks into a folder, and sees to it that nothing lies outside of it.
func refused(t *testing.T, archive []byte, want string) {
	t.Helper()
	outer := t.TempDir()
	inner := filepath.Join(outer, "a", "store")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(inner)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	start := time.Now()
	_, err = Unpack(context.Background(), bytes.NewReader(archive), Dir{Root: root}, Options{})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) {
		t.Errorf("Unpack: %v; want a refusal with %q", err, want)
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("it took %v", d)
	}
	filepath.WalkDir(outer, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeType&^fs.ModeDir != 0 {
			t.Errorf("unpacking made %s, which is no file", p)
		}
		if err == nil && !d.IsDir() && !strings.HasPrefix(p, inner) {
			t.Errorf("unpacking wrote %s", p)
		}
		return nil
	})
}

func TestHUB01ZipSlip(t *testing.T) {
	for _, name := range []string{"../../x", "/abs", `C:\x`, `..\x`, "a/../../x", "C:x", "./x", "a//b", "..", "con", "a/NUL.txt", "COM1.md", "a.", "a /b", "a\u202eb", "x:ads"} {
		refused(t, craft(t, file(name, "x")), "the")
	}
}

func TestHUB02OnlyRegularFiles(t *testing.T) {
	link := entry{tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "../"}, ""}
	refused(t, craft(t, link, file("l/x", "x")), "link")
	refused(t, craft(t, entry{tar.Header{Name: "l", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}, ""}), "link")
	refused(t, craft(t, entry{tar.Header{Name: "d", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, ""}), "device")
	refused(t, craft(t, entry{tar.Header{Name: "d", Typeflag: tar.TypeBlock}, ""}), "device")
	refused(t, craft(t, entry{tar.Header{Name: "f", Typeflag: tar.TypeFifo}, ""}), "FIFO")
	refused(t, craft(t, entry{tar.Header{Name: "x", Typeflag: 'Z'}, ""}), "kind")
}

func TestHUB03ArchiveBombs(t *testing.T) {
	refused(t, bomb(t, 3000), "times its size") // 3 GB of zeros
	many := make([]entry, MaxEntries+10)
	for i := range many {
		many[i] = file(fmt.Sprintf("f%07d", i), "")
	}
	refused(t, craft(t, many...), "more than 1000 files")
	refused(t, oldSparse(t), "sparse")
	refused(t, craft(t, entry{tar.Header{Name: "s", PAXRecords: map[string]string{"VENDOR.x": "1"}}, "x"}), "extended header")
	inner, _ := packed(t, folder(), Options{})
	refused(t, craft(t, file("elf.toml", elfTOML), file("inner.txt", string(inner)), file("plugin.wasm", string(wasm))), "inner.txt")
	var z bytes.Buffer
	zw := zip.NewWriter(&z)
	w, _ := zw.Create("elf.toml")
	w.Write(make([]byte, 10<<20))
	zw.Close()
	refused(t, z.Bytes(), "zip")
	var deep strings.Builder
	for range 40 {
		deep.WriteString("d/")
	}
	refused(t, craft(t, file(deep.String()+"x", "")), "deep")
}

// bomb is one entry that claims 32 MiB, as often as asked for.
func bomb(t testing.TB, mib int) []byte {
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	zero := make([]byte, 1<<20)
	for i := range (mib + 31) / 32 {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Mode: 0o644, Name: fmt.Sprintf("z%05d", i), Size: 32 << 20}); err != nil {
			t.Fatal(err)
		}
		for range 32 {
			tw.Write(zero)
		}
		if b.Len() > 200<<10 {
			break
		}
	}
	tw.Close()
	zw.Close()
	return b.Bytes()
}

// oldSparse is a header of GNU tar's for a sparse file of 8 GB.
func oldSparse(t testing.TB) []byte {
	var raw bytes.Buffer
	tw := tar.NewWriter(&raw)
	if err := tw.WriteHeader(&tar.Header{Name: "s", Typeflag: tar.TypeReg, Mode: 0o644, Format: tar.FormatGNU}); err != nil {
		t.Fatal(err)
	}
	tw.Close()
	b := raw.Bytes()
	b[156] = 'S'
	copy(b[483:], "77777777777\x00") // its real size
	copy(b[148:156], "        ")
	sum := 0
	for _, c := range b[:512] {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return zipped(b)
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	zw.Write(b)
	zw.Close()
	return out.Bytes()
}

func TestK04SkillArchives(t *testing.T) {
	for want, entries := range map[string][]entry{
		"leads out": {file("../../.bashrc", "x")},
		"absolute":  {file("/etc/x", "x")},
		"link":      {{tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/home"}, ""}, file("link/authorized_keys", "x")},
		"twice":     {file("SKILL.md", "a"), file("SKILL.md", "b")},
		"one name":  {file("SKILL.md", "a"), file("skill.MD", "b")},
		"folder":    {file("a", "a"), file("a/b", "b")},
		"systems":   {file("A/x", "a"), file("a/y", "b")},
		"name on":   {file("cafe\u0301", "a"), file("caf\u00e9", "b")},
		"order":     {file("b", ""), file("a", "")},
		"hidden":    {file(".mcp.json", "{}")},
	} {
		refused(t, craft(t, entries...), want)
	}
	refused(t, craft(t, entry{tar.Header{Name: "l", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}, ""}), "link")
	refused(t, bomb(t, 10_000), "times its size") // 10 GB of zeros
}

func TestK06Smuggled(t *testing.T) {
	plain := []entry{file("elf.toml", elfTOML), file("plugin.wasm", string(wasm))}
	other := inflate(t, craft(t, append(plain, entry{tar.Header{Name: "x", PAXRecords: map[string]string{"VENDOR.x": "/etc/passwd"}}, "x"})...))
	refused(t, zipped(bytes.ReplaceAll(other, []byte("VENDOR.x"), []byte("linkpath"))), "linkpath")
	good := craft(t, plain...)
	if _, _, err := unpack(good, Options{}); err != nil {
		t.Fatalf("the archive that the others are made of: %v", err)
	}
	refused(t, append(slices.Clone(good), good...), "after the end")
	refused(t, append(slices.Clone(good), 0), "after the end")
	raw := inflate(t, good)
	refused(t, zipped(append(raw, "more"...)), "after its last file")
	refused(t, zipped(append(raw, raw...)), "after its last file")
	refused(t, craft(t, file("elf.toml", elfTOML), file("elf.signed.json", "{}"), file("plugin.wasm", string(wasm))), "order")
	refused(t, craft(t, file("elf.signed.json", "{}"), file("elf.toml", elfTOML), file("plugin.wasm", string(wasm))), "belong together")
	refused(t, craft(t, entry{tar.Header{Name: "x", Uid: 7}, ""}), "owner")
}

func inflate(t testing.TB, b []byte) []byte {
	zr, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestScriptsAreRefusedByName(t *testing.T) {
	dir := folder("scripts/run.sh", "echo", "assets/tool", "#!/usr/bin/env python3\n", "assets/x.dat", "\x7fELF...", "assets/MZ.txt", "MZ is a text\n", "assets/b.wasm", "\x00asm")
	_, err := Folder(context.Background(), io.Discard, dir, Options{})
	var s *ScriptsError
	if !errors.As(err, &s) || len(s.Names) != 4 {
		t.Fatalf("packing scripts: %v", err)
	}
	for _, name := range []string{"scripts/run.sh", "assets/tool", "assets/x.dat", "assets/b.wasm"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
	_, c := packed(t, dir, Options{WithoutScripts: true})
	if _, ok := c.File("scripts/run.sh"); ok || len(c.Left) != 4 {
		t.Errorf("packed without scripts, left out %q", c.Left)
	}
	// At install, what was signed covers them, and they are not written.
	archive := craft(t, file("SKILL.md", "x"), file("elf.toml", elfTOML), file("run.sh", "echo"))
	if _, _, err := unpack(archive, Options{}); !errors.As(err, &s) {
		t.Errorf("unpacking a script: %v", err)
	}
	m, c, err := unpack(archive, Options{WithoutScripts: true})
	if f, ok := c.File("run.sh"); err != nil || !ok || !f.Left || f.Digest == "" || m["run.sh"] != nil {
		t.Errorf("unpacked without scripts: %v %+v, wrote %q", err, f, m["run.sh"])
	}
}

func TestManifestIsChecked(t *testing.T) {
	for want, dir := range map[string]fstest.MapFS{
		"no elf.toml":  {"SKILL.md": {Data: []byte("x")}},
		"neither":      {"elf.toml": {Data: []byte(elfTOML)}},
		"could use it": {"SKILL.md": {Data: []byte("x")}, "elf.toml": {Data: []byte(elfTOML + "[[needs]]\ncap = \"exec\"\nscope = [\"git log *\"]\n")}},
		"version":      {"SKILL.md": {Data: []byte("x")}, "elf.toml": {Data: []byte("abi = \"elf/1\"\nname = \"x\"\nversion = \"../1\"\n")}},
		"unknown key":  {"SKILL.md": {Data: []byte("x")}, "elf.toml": {Data: []byte(elfTOML + "grants = 1\n")}},
		"UTF-8":        {"SKILL.md": {Data: []byte("\xff\xfe")}, "elf.toml": {Data: []byte(elfTOML)}},
		"limit is":     {"SKILL.md": {Data: make([]byte, maxText+1)}, "elf.toml": {Data: []byte(elfTOML)}},
		"is called":    {"skill.md": {Data: []byte("x")}, "elf.toml": {Data: []byte(elfTOML)}, "plugin.wasm": {Data: wasm}},
		"a link":       {"SKILL.md": {Data: []byte("x")}, "elf.toml": {Data: []byte(elfTOML)}, "l": {Mode: fs.ModeSymlink, Data: []byte("/etc/passwd")}},
	} {
		if _, err := Folder(context.Background(), io.Discard, dir, Options{}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("packing: %v; want a refusal with %q", err, want)
		}
	}
}

func TestUnpackStopsWhenCancelled(t *testing.T) {
	b, _ := packed(t, folder(), Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Unpack(ctx, bytes.NewReader(b), nil, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Unpack: %v", err)
	}
}

type full struct{}

func (full) Create(string) (io.WriteCloser, error) { return nil, errors.New("no space left on device") }

func TestSinksErrorIsNotThePackages(t *testing.T) {
	b, _ := packed(t, folder(), Options{})
	_, err := Unpack(context.Background(), bytes.NewReader(b), full{}, Options{})
	if errors.Is(err, ErrRefused) || err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("Unpack into a full disk: %v", err)
	}
}

// TestEveryByteMutated: whatever one changed byte does to an archive, reading
// it is an error or gives the very same package: deflate can say the same in
// several ways. The archive's own digest covers those, too.
func TestEveryByteMutated(t *testing.T) {
	b, want := packed(t, folder(), Options{})
	same := 0
	for i := range b {
		for _, bit := range []byte{1, 0x80} {
			m := slices.Clone(b)
			m[i] ^= bit
			_, c, err := unpack(m, Options{})
			switch {
			case err == nil && c.Digest() != want.Digest():
				t.Errorf("byte %d changed: another package, without an error", i)
			case err == nil:
				same++
			case !errors.Is(err, ErrRefused):
				t.Errorf("byte %d changed: %v", i, err)
			}
		}
	}
	if same > len(b)/50 {
		t.Errorf("%d changes of %d went unseen", same, 2*len(b))
	}
}

func FuzzUnpack(f *testing.F) {
	b, _ := packed(f, folder(), Options{})
	f.Add(inflate(f, b))
	f.Add(inflate(f, oldSparse(f)))
	f.Add(inflate(f, craft(f, entry{tar.Header{Name: "x", Typeflag: tar.TypeSymlink, Linkname: "y"}, ""})))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, c, err := unpack(zipped(raw), Options{WithoutScripts: true})
		if err != nil {
			return
		}
		for name := range m {
			if !filepath.IsLocal(name) {
				t.Fatalf("it wrote %q", name)
			}
		}
		var again bytes.Buffer
		two, err := Write(context.Background(), &again, m.Entries(), Options{})
		if err != nil {
			t.Fatalf("what can be read cannot be written: %v", err)
		}
		if len(c.Left) == 0 && two.Digest() != c.Digest() {
			t.Fatal("written again, it is another package")
		}
	})
}
