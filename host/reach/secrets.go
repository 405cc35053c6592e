package reach

import "context"

// SecretStore keeps secrets by name. Implementations are safe for concurrent
// use. A missing name is abi.ErrNotFound.
type SecretStore interface {
	Get(name string) (string, error)
	Set(name, value string) error
	Delete(name string) error
	Names() ([]string, error)
	// Where says in words where secrets are kept, for doctor.
	Where() string
}

// OpenSecrets keeps secrets in the system's keyring where one answers, else in
// a file of mode 0600 in dir.
func OpenSecrets(ctx context.Context, dir string) *Secrets { return openSecrets(ctx, dir) }

// Secrets fills placeholders at the last moment, and keeps what it filled in
// out of everything that comes back.
type Secrets struct {
	Store SecretStore
	// Scrub knows every value that was used or set in this process.
	Scrub Scrubber
}

// Placeholder is what a guest sees in place of a secret. It is safe in a
// header, a query and a path.
func Placeholder(name string) string { return placeholderPrefix + name + placeholderSuffix }
