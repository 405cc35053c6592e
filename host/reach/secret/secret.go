// Package secret keeps secrets, in the system's keyring or in a private file,
// fills them in where a request may have them, and takes them out of everything
// that comes back.
package secret

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// Store keeps secrets by name. Implementations are safe for concurrent
// use. A missing name is abi.ErrNotFound.
type Store interface {
	Get(name string) (string, error)
	Set(name, value string) error
	Delete(name string) error
	Names() ([]string, error) // sorted
	// Where says in words where secrets are kept, for doctor.
	Where() string
}

// Vault fills placeholders at the last moment, and keeps what it filled in
// out of everything that comes back. Safe for concurrent use.
type Vault struct {
	Store Store
	// Scrub knows every value that was used or set in this process.
	Scrub Scrubber
}

const placeholderPrefix, placeholderSuffix = "__elf_secret_", "__"

// Placeholder is what a guest sees in place of a secret. It is safe in a
// header, a query and a path. It is no right: where it may be filled in is
// asked at each use.
func Placeholder(name string) string { return placeholderPrefix + name + placeholderSuffix }

// In reports whether a text holds a placeholder, or the beginning of one.
func In(text string) bool { return strings.Contains(text, placeholderPrefix) }

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
func (s *Vault) Set(name, value string) error {
	if err := checkSecretName(name); err != nil {
		return err
	}
	if len(value) < minSecret || len(value) > maxSecret {
		return fmt.Errorf("a secret has %d to %d bytes: %w", minSecret, maxSecret, abi.ErrInvalid)
	}
	s.Scrub.Add(value)
	return s.Store.Set(name, value)
}

// FillIn replaces the placeholders of one text, each where the rights allow the
// secret at this host. escape writes a value where it goes.
func (s *Vault) FillIn(ctx context.Context, r policy.Rights, host, text string, escape func(string) string) (string, error) {
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
