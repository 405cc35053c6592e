package reach

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// SecretStore keeps secrets by name. Implementations are safe for concurrent
// use. A missing name is abi.ErrNotFound.
type SecretStore interface {
	Get(name string) (string, error)
	Set(name, value string) error
	Delete(name string) error
	Names() ([]string, error) // sorted
	// Where says in words where secrets are kept, for doctor.
	Where() string
}

// Secrets fills placeholders at the last moment, and keeps what it filled in
// out of everything that comes back. Safe for concurrent use.
type Secrets struct {
	Store SecretStore
	// Scrub knows every value that was used or set in this process.
	Scrub Scrubber
}

const placeholderPrefix, placeholderSuffix = "__elf_secret_", "__"

// Placeholder is what a guest sees in place of a secret. It is safe in a
// header, a query and a path. It is no right: where it may be filled in is
// asked at each use.
func Placeholder(name string) string { return placeholderPrefix + name + placeholderSuffix }

var (
	secretName   = regexp.MustCompile(`^[A-Za-z0-9.-]+(?:_[A-Za-z0-9.-]+)*$`)
	placeholders = regexp.MustCompile(`__elf_secret_([A-Za-z0-9.-]+(?:_[A-Za-z0-9.-]+)*)__`)
)

const minSecret, maxSecret = 6, 16 << 10

// checkSecretName says what is wrong with a secret's name.
func checkSecretName(name string) error {
	if len(name) > 64 || !secretName.MatchString(name) {
		return fmt.Errorf("secret name %q: letters, digits, '.', '-' and single '_', at most 64: %w", name, abi.ErrInvalid)
	}
	return nil
}

// Set keeps a secret. Short values are refused: they could not be told from
// ordinary text when they are scrubbed.
func (s *Secrets) Set(name, value string) error {
	if err := checkSecretName(name); err != nil {
		return err
	}
	if len(value) < minSecret || len(value) > maxSecret {
		return fmt.Errorf("a secret has %d to %d bytes: %w", minSecret, maxSecret, abi.ErrInvalid)
	}
	s.Scrub.Add(value)
	return s.Store.Set(name, value)
}

// fillIn replaces the placeholders of one text. escape writes a value where it goes.
func (s *Secrets) fillIn(ctx context.Context, r policy.Rights, host, text string, escape func(string) string) (string, error) {
	var failed error
	out := placeholders.ReplaceAllStringFunc(text, func(p string) string {
		name := p[len(placeholderPrefix) : len(p)-len(placeholderSuffix)]
		if failed != nil {
			return p
		}
		if failed = r.Check(ctx, policy.Use{Cap: abi.Secret, Target: name + "@" + host}); failed != nil {
			return p
		}
		value, err := s.Store.Get(name)
		if err != nil {
			failed = fmt.Errorf("secret %q: %w", name, err)
			return p
		}
		s.Scrub.Add(value)
		if strings.ContainsFunc(value, unicode.IsControl) {
			failed = fmt.Errorf("secret %q has line breaks or control characters and cannot go into a request: %w", name, abi.ErrInvalid)
			return p
		}
		return escape(value)
	})
	return out, failed
}

// fill puts secrets into a request that has passed every other check. In URLs
// that a server sent they stay as they are.
func (h *HTTP) fill(ctx context.Context, r policy.Rights, c *hop, addrs []netip.Addr, out *http.Request) error {
	if h.Secrets == nil || !wantsSecret(c) {
		return nil
	}
	if c.url.Scheme != "https" && !stays(addrs) {
		return fmt.Errorf("%s: a secret goes over https only: %w", c, abi.ErrDenied)
	}
	host := c.url.Hostname()
	fillIn := func(dst *string, escape func(string) string) (err error) {
		*dst, err = h.Secrets.fillIn(ctx, r, host, *dst, escape)
		return err
	}
	same := func(s string) string { return s }
	var errs []error
	if c.first {
		errs = append(errs, fillIn(&out.URL.RawQuery, url.QueryEscape), fillIn(&out.URL.RawPath, url.PathEscape), fillIn(&out.URL.Path, same))
	}
	for k, vs := range out.Header {
		for i := range vs {
			if user, ok := basic(k, vs[i]); ok {
				errs = append(errs, fillIn(&user, same))
				vs[i] = "Basic " + base64.StdEncoding.EncodeToString([]byte(user))
				h.Secrets.Scrub.Add(vs[i][len("Basic "):])
				continue
			}
			errs = append(errs, fillIn(&vs[i], same))
		}
	}
	return errors.Join(errs...)
}

// basic finds a placeholder inside basic authentication.
func basic(key, value string) (user string, ok bool) {
	enc, ok := strings.CutPrefix(value, "Basic ")
	if key != "Authorization" || !ok {
		return "", false
	}
	raw, err := base64.StdEncoding.DecodeString(enc)
	return string(raw), err == nil && placeholders.Match(raw)
}

func wantsSecret(c *hop) bool {
	if c.first && strings.Contains(c.url.String(), placeholderPrefix) {
		return true
	}
	for k, vs := range c.header {
		for _, v := range vs {
			if _, ok := basic(k, v); ok || strings.Contains(v, placeholderPrefix) {
				return true
			}
		}
	}
	return false
}

// stays reports whether every address is this machine: nobody listens between.
func stays(addrs []netip.Addr) bool {
	for _, a := range addrs {
		if !a.IsLoopback() {
			return false
		}
	}
	return len(addrs) > 0
}
