package sign

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aead.dev/minisign"

	"github.com/elfhost/elfhost/abi"
)

// Key is a key pair in a folder of keys.
type Key struct {
	Name   string `json:"name"`
	Public string `json:"public"` // "RWQ…"
	ID     string `json:"id"`
	File   string `json:"file"` // of the secret key
	Locked bool   `json:"locked"`
}

// Secret is a secret key, open.
type Secret struct{ key minisign.PrivateKey }

// Public is its public key: "RWQ…".
func (s Secret) Public() string { return s.key.Public().(minisign.PublicKey).String() }

// ErrLocked is a secret key that needs its password, or another one.
var ErrLocked = errors.New("the key is locked with a password")

// DefaultKey is the key that is used where none is named.
const DefaultKey = "default"

// maxKey bounds a key's file, in bytes.
const maxKey = 4 << 10

// New makes a key pair, NAME.key and NAME.pub in dir, and overwrites none. The
// secret half is readable by its owner alone; with a password it is encrypted
// as well. Both are minisign's own formats.
func New(dir, name, password string) (Key, error) {
	if err := abi.CheckName(name); err != nil {
		return Key{}, err
	}
	pub, secret, err := minisign.GenerateKey(nil)
	if err != nil {
		return Key{}, err
	}
	text, err := secret.MarshalText()
	if password != "" {
		text, err = minisign.EncryptKey(password, secret)
	}
	if err != nil {
		return Key{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Key{}, fmt.Errorf("making the folder of keys: %w", err)
	}
	file := filepath.Join(dir, name+".key")
	if err := writeNew(file, append(text, '\n'), 0o600); err != nil {
		return Key{}, err
	}
	public, err := pub.MarshalText()
	if err == nil {
		err = writeNew(filepath.Join(dir, name+".pub"), append(public, '\n'), 0o644)
	}
	if err != nil {
		os.Remove(file)
		return Key{}, err
	}
	return Key{Name: name, Public: pub.String(), ID: keyID(pub.ID()), File: file, Locked: password != ""}, nil
}

func writeNew(file string, b []byte, mode os.FileMode) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		os.Remove(file)
		return fmt.Errorf("making a key: %w", err)
	}
	return nil
}

// List gives the keys of a folder, by name. A folder that is not there has none.
func List(dir string) ([]Key, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing keys: %w", err)
	}
	var out []Key
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".key")
		if !ok || abi.CheckName(name) != nil {
			continue
		}
		k, err := find(dir, name)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func find(dir, name string) (Key, error) {
	k := Key{Name: name, File: filepath.Join(dir, name+".key")}
	secret, err := readKey(k.File)
	if err != nil {
		return k, err
	}
	k.Locked = minisign.IsEncrypted(secret)
	public, err := readKey(filepath.Join(dir, name+".pub"))
	if err != nil {
		return k, err
	}
	if k.Public, err = ParseKey(string(public)); err != nil {
		return k, fmt.Errorf("key %q: %w", name, err)
	}
	k.ID = Signer{Key: k.Public}.KeyID()
	return k, nil
}

// Open reads a secret key. It refuses one that others than its owner can read.
func Open(dir, name, password string) (Secret, error) {
	if err := abi.CheckName(name); err != nil {
		return Secret{}, err
	}
	file := filepath.Join(dir, name+".key")
	text, err := readKey(file)
	if err != nil {
		return Secret{}, err
	}
	if err := private(file); err != nil {
		return Secret{}, err
	}
	var s Secret
	if !minisign.IsEncrypted(text) {
		if err := s.key.UnmarshalText(text); err != nil {
			return Secret{}, fmt.Errorf("key %q: it is no minisign secret key", name) // the library's words may quote it
		}
		return s, nil
	}
	if password == "" {
		return Secret{}, fmt.Errorf("key %q: %w", name, ErrLocked)
	}
	if s.key, err = minisign.DecryptKey(password, text); err != nil {
		return Secret{}, fmt.Errorf("key %q: %w, and this is not it", name, ErrLocked)
	}
	return s, nil
}

func readKey(file string) ([]byte, error) {
	st, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("reading a key: %w", err)
	}
	if !st.Mode().IsRegular() || st.Size() > maxKey {
		return nil, fmt.Errorf("reading a key: %q is no key file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading a key: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxKey))
	if err != nil {
		return nil, fmt.Errorf("reading a key: %w", err)
	}
	return []byte(strings.TrimRight(string(b), "\n")), nil
}
