package hub

import (
	"crypto"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/elfhost/elfhost/skillhub/internal/disk"
)

// ErrNoKey is a role that cannot be signed for: its key is elsewhere.
var ErrNoKey = errors.New("the key is not at hand")

// keyExt is how the names of key files end; retiredExt those of keys that were
// replaced.
const (
	keyExt     = ".key"
	retiredExt = ".retired"
	maxKeyFile = 16 << 10
)

// keyFile is a key on disk. Exactly one of Seed and Sealed is there.
type keyFile struct {
	Format int             `json:"elfhost-hub-key"` // 1
	Role   string          `json:"role"`            // what it was made for; the root has the say
	Public string          `json:"public"`          // hex
	Seed   string          `json:"seed,omitempty"`  // hex
	Sealed json.RawMessage `json:"sealed,omitempty"`
}

// key is a private key in a file. It is opened when it is first used.
type key struct {
	file   string
	public *metadata.Key
	id     string
	held   keyFile
	signer signature.Signer
}

// newKey makes a key file. An empty passphrase leaves it in the clear.
func newKey(dir, role string, passphrase []byte) (*key, error) {
	pub, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	f := keyFile{Format: 1, Role: role, Public: hex.EncodeToString(pub)}
	if len(passphrase) == 0 {
		f.Seed = hex.EncodeToString(priv.Seed())
	} else if f.Sealed, err = encrypted.Encrypt(priv.Seed(), passphrase); err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return nil, err
	}
	k, err := parseKey("", b)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	k.file = filepath.Join(dir, role+"-"+k.id[:8]+keyExt)
	return k, disk.Writer{}.Write(k.file, append(b, '\n'), 0o600)
}

func parseKey(file string, b []byte) (*key, error) {
	k := &key{file: file}
	if err := json.Unmarshal(b, &k.held); err != nil || k.held.Format != 1 {
		return nil, fmt.Errorf("%q is not a key of a hub", file)
	}
	pub, err := hex.DecodeString(k.held.Public)
	if err != nil || len(pub) != ed25519.PublicKeySize || (k.held.Seed == "") == (k.held.Sealed == nil) {
		return nil, fmt.Errorf("the key %q is damaged", file)
	}
	if k.public, err = metadata.KeyFromPublicKey(ed25519.PublicKey(pub)); err != nil {
		return nil, err
	}
	k.id, err = k.public.ID()
	return k, err
}

// ring is the keys at hand, by their TUF identifiers.
type ring struct {
	keys map[string]*key
	ask  func(file string) ([]byte, error)
	last []byte // the passphrase that opened the last key: often it opens all
}

// openRing finds the key files of some folders. Folders that are not there
// hold no keys: they may be on a stick.
func openRing(dirs []string, ask func(string) ([]byte, error)) (*ring, error) {
	r := &ring{keys: map[string]*key{}, ask: ask}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), keyExt) || disk.IsTemp(e.Name()) {
				continue
			}
			k, err := readKey(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			r.keys[k.id] = k
		}
	}
	return r, nil
}

func readKey(file string) (*key, error) {
	st, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && st.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the key %q can be read by others (mode %04o): `chmod 600` it", file, st.Mode().Perm())
	}
	b, err := disk.ReadFile(file, maxKeyFile)
	if err != nil {
		return nil, err
	}
	return parseKey(file, b)
}

// of picks the keys at hand among some identifiers, in their order.
func (r *ring) of(ids []string) []*key {
	var out []*key
	for _, id := range ids {
		if k := r.keys[id]; k != nil && !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// open readies a key for signing.
func (r *ring) open(k *key) (signature.Signer, error) {
	if k.signer != nil {
		return k.signer, nil
	}
	seed, err := r.seed(k)
	if err != nil {
		return nil, err
	}
	priv := ed25519.NewKeyFromSeed(seed)
	if hex.EncodeToString(priv.Public().(ed25519.PublicKey)) != k.held.Public {
		return nil, fmt.Errorf("the key %q is damaged: its halves do not belong together", k.file)
	}
	k.signer, err = signature.LoadSigner(priv, crypto.Hash(0))
	return k.signer, err
}

func (r *ring) seed(k *key) ([]byte, error) {
	if k.held.Seed != "" {
		seed, err := hex.DecodeString(k.held.Seed)
		if err != nil || len(seed) != ed25519.SeedSize {
			return nil, fmt.Errorf("the key %q is damaged", k.file)
		}
		return seed, nil
	}
	if len(r.last) > 0 {
		if seed, err := encrypted.Decrypt(k.held.Sealed, r.last); err == nil && len(seed) == ed25519.SeedSize {
			return seed, nil
		}
	}
	if r.ask == nil {
		return nil, fmt.Errorf("the key %q needs its passphrase: %w", k.file, ErrNoKey)
	}
	pass, err := r.ask(k.file)
	if err != nil {
		return nil, err
	}
	seed, err := encrypted.Decrypt(k.held.Sealed, pass)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("the passphrase does not open the key %q", k.file)
	}
	r.last = pass
	return seed, nil
}

// retire puts a key that was replaced out of use, and keeps it.
func (r *ring) retire(k *key) error {
	delete(r.keys, k.id)
	return os.Rename(k.file, k.file+retiredExt)
}
