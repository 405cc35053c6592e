package hub

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/theupdateframework/go-tuf/v2/metadata"
)

// need is whose signatures a file must have.
type need struct {
	ids       []string
	threshold int
}

// rootNeed is what the root says of a role.
func rootNeed(root *metadata.Metadata[metadata.RootType], role string) need {
	if r := root.Signed.Roles[role]; r != nil {
		return need{r.KeyIDs, r.Threshold}
	}
	return need{}
}

// signFile replaces a file's signatures by those of all keys at hand that count.
// It returns the bytes of the file. With fewer keys than the threshold the
// error is ErrNoKey.
func signFile[T metadata.Roles](md *metadata.Metadata[T], r *ring, role string, n need) ([]byte, error) {
	md.ClearSignatures()
	keys := r.of(n.ids)
	if len(keys) < n.threshold {
		return nil, missing(role, len(keys), n)
	}
	if err := addSignatures(md, r, keys); err != nil {
		return nil, err
	}
	return md.ToBytes(false)
}

func addSignatures[T metadata.Roles](md *metadata.Metadata[T], r *ring, keys []*key) error {
	for _, k := range keys {
		s, err := r.open(k)
		if err != nil {
			return err
		}
		if _, err := md.Sign(s); err != nil {
			return err
		}
	}
	return nil
}

func missing(role string, have int, n need) error {
	short := make([]string, len(n.ids))
	for i, id := range n.ids {
		short[i] = id[:min(8, len(id))]
	}
	return fmt.Errorf("%s is signed by %d of %s, and %d of them at hand: %w", role, n.threshold, strings.Join(short, ", "), have, ErrNoKey)
}

// checkRoot refuses what makes a verifier stumble: it is called with bytes that
// nobody vouches for yet, and a key of the wrong length panics in ed25519.
func checkRoot(b []byte) (*metadata.Metadata[metadata.RootType], error) {
	root, err := metadata.Root().FromBytes(b)
	if err != nil {
		return nil, err
	}
	if err := checkKeys(root.Signed.Keys); err != nil {
		return nil, err
	}
	for _, role := range metadata.TOP_LEVEL_ROLE_NAMES {
		if r := root.Signed.Roles[role]; r == nil || r.Threshold < 1 || len(r.KeyIDs) < r.Threshold {
			return nil, fmt.Errorf("the root names too few keys for %s", role)
		}
	}
	if !root.Signed.ConsistentSnapshot {
		return nil, errors.New("the root is that of a repository without consistent snapshots, which elfhost does not read")
	}
	return root, nil
}

func checkKeys(keys map[string]*metadata.Key) error {
	for id, k := range keys {
		if k == nil {
			return fmt.Errorf("the key %.16q is empty", id)
		}
		if k.Type != metadata.KeyTypeEd25519 {
			continue // the others are parsed whole
		}
		if pub, err := hex.DecodeString(k.Value.PublicKey); err != nil || len(pub) != ed25519.PublicKeySize {
			return fmt.Errorf("the key %.16q is no ed25519 key", id)
		}
	}
	return nil
}
