package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/skillhub"
)

// answered is the error for an answer that is not 200. The registry's own words
// are data: one line, bounded.
func (s *session) answered(resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 8<<10))
	var body struct {
		Errors []errcode.Error `json:"errors"`
	}
	_ = json.Unmarshal(b, &body)
	return statusError(resp.StatusCode, s.registry, body.Errors)
}

func statusError(status int, registry string, said []errcode.Error) error {
	words := ""
	if len(said) > 0 {
		words = said[0].Message
		if words == "" {
			words = said[0].Code
		}
		words = ": " + oneLine(words)
	}
	switch status {
	case http.StatusNotFound:
		return fmt.Errorf("%s has no such repository, tag or blob%s: %w", registry, words, skillhub.ErrNotFound)
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%s: %w for this, or another one than it was given%s", registry, ErrLogin, words)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return fmt.Errorf("%s is busy (%d)%s: %w", registry, status, words, abi.ErrUnavailable)
	}
	return fmt.Errorf("%s answered %d %s%s", registry, status, http.StatusText(status), words)
}

// oneLine makes a stranger's words fit for an error.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s[:min(len(s), 200)])
}

// plainError gives an error of the libraries without the address in it, whose
// query may hold a token, and without the library's own words for what is ours.
func plainError(err error) error {
	var status *errcode.ErrorResponse
	var u *url.Error
	switch {
	case errors.As(err, &status):
		return statusError(status.StatusCode, status.URL.Host, status.Errors)
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return fmt.Errorf("%w, and none is known for it", ErrLogin)
	case errors.Is(err, ErrHelper):
		return fmt.Errorf("%w: %w", ErrLogin, ErrHelper)
	case errors.As(err, &u):
		return u.Err
	}
	return err
}
