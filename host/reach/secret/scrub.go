package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// Scrubber replaces known secrets, raw and in base64, hex and percent form, with
// "[secret]". The zero value knows none. Safe for concurrent use.
type Scrubber struct {
	mu    sync.RWMutex
	known map[string]bool
	forms []string // longest first
	all   *strings.Replacer
}

const scrubbed = "[secret]"

// Add makes a value known; it is never forgotten. Values under 6 bytes are ignored.
func (s *Scrubber) Add(value string) {
	if len(value) < minSecret {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[value] {
		return
	}
	if s.known == nil {
		s.known = map[string]bool{}
	}
	s.known[value] = true
	s.forms = append(s.forms, formsOf(value)...)
	slices.SortFunc(s.forms, func(a, b string) int {
		if d := len(b) - len(a); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	s.forms = slices.Compact(s.forms)
	pairs := make([]string, 0, 2*len(s.forms))
	for _, f := range s.forms {
		pairs = append(pairs, f, scrubbed)
	}
	s.all = strings.NewReplacer(pairs...)
}

// formsOf lists the spellings under which a value is found again.
func formsOf(v string) []string {
	b := []byte(v)
	lower := hex.EncodeToString(b)
	out := append([]string{v, lower, strings.ToUpper(lower)}, percentForms(v)...)
	out = append(out, jsonForms(v)...)
	// Inside a longer base64 text a value begins at one of three phases; the
	// characters that also carry its neighbours' bits are left out.
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for phase := range 3 {
			text := enc.EncodeToString(append(make([]byte, phase), b...))
			out = append(out, text[(phase*8+5)/6:(phase+len(b))*8/6])
		}
	}
	return slices.DeleteFunc(out, func(f string) bool { return len(f) < minSecret })
}

// unescaped are what the usual encoders leave as it is, letters and digits
// aside: nothing, RFC 3986, forms, encodeURIComponent, paths in Go and in RFC
// 3986, encodeURI.
var unescaped = [...]string{"", "-_.~", "-_.*", "-_.!~*'()", "-_.~$&+=:@", "-_.~!$&'()*+,;=:@", "-_.!~*'();/?:@&=+$,#"}

// percentForms escapes as these do, in capitals or not, a space as itself, as
// %20 or as a plus.
func percentForms(v string) []string {
	var out []string
	for i, keep := range unescaped {
		for _, format := range []string{"%%%02X", "%%%02x"} {
			var s strings.Builder
			for _, c := range []byte(v) {
				alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
				if i > 0 && (alnum || strings.IndexByte(keep, c) >= 0) {
					s.WriteByte(c)
				} else {
					fmt.Fprintf(&s, format, c)
				}
			}
			out = append(out, s.String(), strings.ReplaceAll(s.String(), "%20", "+"), strings.ReplaceAll(s.String(), "%20", " "))
		}
	}
	return out
}

// jsonForms is a string of JSON without its quotes: as Go writes it, as most
// others do, and with slashes escaped.
func jsonForms(v string) []string {
	var out []string
	for _, html := range []bool{true, false} {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		if enc.Encode(v) == nil {
			s := strings.TrimSpace(b.String())
			s = s[1 : len(s)-1]
			out = append(out, s, strings.ReplaceAll(s, "/", `\/`))
		}
	}
	return out
}

// snapshot returns what is known now. all is nil when nothing is.
func (s *Scrubber) snapshot() (forms []string, all *strings.Replacer) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.forms, s.all
}

// String replaces every form of every known secret with "[secret]".
func (s *Scrubber) String(t string) string {
	_, all := s.snapshot()
	if all == nil {
		return t
	}
	return all.Replace(t)
}

// Bytes is String for bytes; without a secret in it, b itself comes back.
func (s *Scrubber) Bytes(b []byte) []byte {
	forms, all := s.snapshot()
	for _, f := range forms {
		if bytes.Contains(b, []byte(f)) {
			return []byte(all.Replace(string(b)))
		}
	}
	return b
}

// Error scrubs an error's text and keeps what it wraps for errors.Is and As.
func (s *Scrubber) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if clean := s.String(text); clean != text {
		return &scrubbedError{clean, err}
	}
	return err
}

type scrubbedError struct {
	text string
	err  error
}

func (e *scrubbedError) Error() string { return e.text }
func (e *scrubbedError) Unwrap() error { return e.err }

// Reader scrubs a stream. It holds back only what may be the beginning of a
// secret, so that streams stay live.
func (s *Scrubber) Reader(r io.Reader) io.Reader { return &scrubReader{s: s, r: r} }

type scrubReader struct {
	s   *Scrubber
	r   io.Reader
	in  []byte // held back: may be the beginning of a secret
	out []byte // ready
	buf []byte
	err error
}

func (r *scrubReader) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		forms, all := r.s.snapshot()
		if all == nil && len(r.in) == 0 {
			return r.r.Read(p)
		}
		if r.buf == nil {
			r.buf = make([]byte, 32<<10)
		}
		n, err := r.r.Read(r.buf)
		r.err = err
		text := r.s.Bytes(append(r.in, r.buf[:n]...))
		hold := 0
		if err == nil {
			hold = pending(text, forms)
		}
		r.out = append(r.out[:0], text[:len(text)-hold]...)
		r.in = append([]byte(nil), text[len(text)-hold:]...)
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// pending is the length of the longest end of b that begins a form.
func pending(b []byte, forms []string) int {
	longest := 0
	for _, f := range forms {
		for n := min(len(f)-1, len(b)); n > longest; n-- {
			if string(b[len(b)-n:]) == f[:n] {
				longest = n
				break
			}
		}
	}
	return longest
}
