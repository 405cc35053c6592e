package mcp

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// seal encrypts what a client keeps for us, so that any of several servers with
// the same key can take it back, and nothing has to be remembered.
type seal struct{ box cipher.AEAD }

// newSeal derives the key from a secret; without one it is this process's own.
func newSeal(secret string) seal {
	if secret == "" {
		secret = rand.Text()
	}
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "elfhost mcp seal 2", 32)
	if err != nil {
		panic(err) // the length is one that HKDF has
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the length is one that AES has
	}
	box, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return seal{box}
}

var errSeal = errors.New("it was not made here")

func (s seal) close(purpose string, body []byte) string {
	return base64.RawURLEncoding.EncodeToString(s.box.Seal(nil, nil, body, []byte(purpose)))
}

func (s seal) open(purpose, text string) ([]byte, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, errSeal
	}
	if b, err = s.box.Open(nil, nil, b, []byte(purpose)); err != nil {
		return nil, errSeal
	}
	return b, nil
}

// sealedSessions makes session ids of clients from before 2026-07-28: what the
// client can do and when it came are in the id.
type sealedSessions struct {
	seal   seal
	now    func() time.Time
	shared Shared // has the ids that clients ended
}

const sessionLife = 24 * time.Hour

const canElicit = 1

// ResolveSessionIdManager implements server.SessionIdManagerResolver.
func (s *sealedSessions) ResolveSessionIdManager(r *http.Request) server.SessionIdManager {
	m := &sealer{sealedSessions: s}
	if r != nil {
		m.forgets = forgets(r.Context())
		if elicits(r.Context()) {
			m.flags = canElicit
		}
	}
	return m
}

type sealer struct {
	*sealedSessions
	flags   byte
	forgets bool
}

func (s *sealer) Generate() string {
	body := make([]byte, 9, 9+12)
	body[0] = s.flags
	binary.BigEndian.PutUint64(body[1:], uint64(s.now().Unix()))
	return s.seal.close("session", append(body, rand.Text()[:12]...))
}

// read reads a session id: what its client can do, and when it was made.
func (s *sealedSessions) read(id string) (flags byte, made time.Time, err error) {
	body, err := s.seal.open("session", id)
	if err != nil {
		return 0, made, err
	}
	if len(body) < 9 {
		return 0, made, errSeal
	}
	made = time.Unix(int64(binary.BigEndian.Uint64(body[1:9])), 0)
	if age := s.now().Sub(made); age > sessionLife || age < -time.Minute {
		return 0, made, errors.New("the session has expired")
	}
	return body[0], made, nil
}

// Validate implements server.SessionIdManager.
func (s *sealedSessions) Validate(id string) (ended bool, err error) {
	if _, _, err := s.read(id); err != nil {
		return false, err
	}
	_, ended, err = s.shared.Value(endedKey(id))
	return ended, err
}

// Terminate implements server.SessionIdManager.
func (s *sealer) Terminate(id string) (notAllowed bool, err error) {
	if s.forgets {
		return false, nil
	}
	if _, _, err := s.read(id); err != nil {
		return false, err
	}
	_, err = s.shared.Put(endedKey(id), nil, s.now().Add(sessionLife))
	return false, err
}

func endedKey(id string) string { return "ended-" + digest(id) }

// digest is a short name of an id.
func digest(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}

// pendingState is what a client brings back with an answer: the answer counts
// for that very question of that very call, once, and for a while.
type pendingState struct {
	ID       string `json:"i"`
	Tool     string `json:"t"`
	Args     []byte `json:"a"` // sha256
	Question []byte `json:"q"` // sha256
	Until    int64  `json:"u"`
	// Anew says that the call may be made once more from its begin, with the
	// answers that were given so far.
	Anew  bool                              `json:"n,omitempty"`
	Given map[string]*mcp.ElicitationResult `json:"g,omitempty"`
}

const answerLife = 10 * time.Minute

func (s seal) question(p pendingState) string {
	b, _ := json.Marshal(p)
	return s.close("question", b)
}

func (s seal) answered(text string) (p pendingState, err error) {
	b, err := s.open("question", text)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return p, err
	}
	if time.Now().Unix() > p.Until {
		return p, errors.New("the question has expired")
	}
	return p, nil
}
