package skillhub

import (
	"strings"
	"testing"
)

const sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestHUB06DigestFormat(t *testing.T) {
	for _, s := range []string{
		"", "sha256:", "sha256:../../x", "sha256:ABC", "md5:" + sum, "sha256:" + sum[1:], "sha256:" + sum + "0",
		"sha256:" + strings.ToUpper(sum), "sha512:" + sum, " sha256:" + sum, "sha256:" + sum + "\n", "SHA256:" + sum,
		"sha256:" + sum[:62] + "/x",
	} {
		if d, err := ParseDigest(s); err == nil {
			t.Errorf("ParseDigest(%q) = %q", s, d)
		}
		if h := Digest(s).Hex(); h != "" {
			t.Errorf("Digest(%q).Hex() = %q, which could become a path", s, h)
		}
	}
	if d, err := ParseDigest("sha256:" + sum); err != nil || d.Hex() != sum || DigestOf(nil) != d {
		t.Errorf("ParseDigest = %q, %v; DigestOf = %q", d, err, DigestOf(nil))
	}
}

func TestParseRef(t *testing.T) {
	for in, want := range map[string]Ref{
		"fetch":                          {Kind: Named, Name: "fetch"},
		"acme/fetch":                     {Kind: Named, Hub: "acme", Name: "fetch"},
		"acme/fetch@1.2.0-rc.1+b":        {Kind: Named, Hub: "acme", Name: "fetch", Version: "1.2.0-rc.1+b"},
		"./fetch":                        {Kind: Local, Location: "./fetch"},
		"/tmp/a b":                       {Kind: Local, Location: "/tmp/a b"},
		"fetch-1.2.0.elfpkg":             {Kind: Local, Location: "fetch-1.2.0.elfpkg"},
		"file:///srv/x":                  {Kind: Local, Location: "/srv/x"},
		"oci://ghcr.io/acme/fetch:1":     {Kind: OCI, Location: "ghcr.io/acme/fetch:1"},
		"oci://h:5000/a@sha256:" + sum:   {Kind: OCI, Location: "h:5000/a", Digest: "sha256:" + sum},
		"https://a.test/x#sha256=" + sum: {Kind: URL, Location: "https://a.test/x", Digest: "sha256:" + sum},
	} {
		got, err := ParseRef(in)
		if err != nil || got != want {
			t.Errorf("ParseRef(%q) = %+v, %v", in, got, err)
			continue
		}
		if again, err := ParseRef(got.String()); err != nil || again != got {
			t.Errorf("%q written as %q reads as %+v, %v", in, got, again, err)
		}
	}
	for _, in := range []string{
		"", "Fetch", "fetch@", "fetch@../x", "a/b/c", "con", "x@1/2", "http://a.test/x#sha256=" + sum, "https://a.test/x",
		"https://a.test/x#sha256=abc", "https://u:p@a.test/x#sha256=" + sum, "oci://ghcr.io", "oci://h/a@sha256:12",
		"oci://h/../a", "git://x/y", "file://host/x", "a\nb", strings.Repeat("a", MaxRef+1), "fetch@1..2",
	} {
		if got, err := ParseRef(in); err == nil {
			t.Errorf("ParseRef(%q) = %+v", in, got)
		}
	}
}

func FuzzParseRef(f *testing.F) {
	for _, s := range []string{"acme/fetch@1.0.0", "oci://h/a:1@sha256:" + sum, "https://a/#sha256=" + sum, "file:x", "~/x", "//"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRef(s)
		if err != nil {
			return
		}
		if again, err := ParseRef(r.String()); err != nil || again != r {
			t.Fatalf("%q reads as %+v, written %q reads as %+v, %v", s, r, r, again, err)
		}
	})
}
