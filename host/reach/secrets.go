package reach

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach/secret"
)

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
		*dst, err = h.Secrets.FillIn(ctx, r, host, *dst, escape)
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
	return string(raw), err == nil && secret.In(string(raw))
}

func wantsSecret(c *hop) bool {
	if c.first && secret.In(c.url.String()) {
		return true
	}
	for k, vs := range c.header {
		for _, v := range vs {
			if _, ok := basic(k, v); ok || secret.In(v) {
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
