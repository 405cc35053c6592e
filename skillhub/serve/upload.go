package serve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/hub"
	"github.com/elfhost/elfhost/skillhub/internal/disk"
	"github.com/elfhost/elfhost/skillhub/pack"
	"github.com/elfhost/elfhost/skillhub/sign"
)

// uploadTime is how long one upload may take.
const uploadTime = 10 * time.Minute

// upload takes an archive as the body of a request. It is published before the
// answer, or not at all.
func (s *Server) upload(w http.ResponseWriter, r *http.Request) {
	publisher, err := s.publisher(r)
	if err != nil {
		s.log("an upload: %v", err)
		reply(w, http.StatusInternalServerError, problem{"uploads do not work now"})
		return
	}
	if publisher == "" {
		w.Header().Set("WWW-Authenticate", `Bearer realm="elfhost hub"`)
		reply(w, http.StatusUnauthorized, problem{"an upload needs a publisher's token: Authorization: Bearer TOKEN"})
		return
	}
	if r.ContentLength > skillhub.MaxArchive {
		reply(w, http.StatusRequestEntityTooLarge, problem{fmt.Sprintf("a package has %d bytes at the most", skillhub.MaxArchive)})
		return
	}
	select {
	case s.uploads <- struct{}{}:
		defer func() { <-s.uploads }()
	default:
		w.Header().Set("Retry-After", "10")
		reply(w, http.StatusServiceUnavailable, problem{"other uploads are under way; try again"})
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTime)) // not with a recorder
	l, err := s.take(r.Context(), http.MaxBytesReader(w, r.Body, skillhub.MaxArchive), publisher)
	if err != nil {
		s.refuseUpload(w, publisher, err)
		return
	}
	s.log("%s published %s %s", publisher, l.Name, l.Version)
	reply(w, http.StatusCreated, l)
}

// errNotTheirs is a package of another publisher than the token's.
var errNotTheirs = errors.New("the package names another publisher than the token is for")

// take receives an archive, checks it, and publishes it.
func (s *Server) take(ctx context.Context, body io.Reader, publisher string) (skillhub.Listing, error) {
	f, err := os.CreateTemp(s.state, "upload-*")
	if err != nil {
		return skillhub.Listing{}, err
	}
	defer os.Remove(f.Name())
	_, err = io.Copy(f, body)
	if err = errors.Join(err, f.Close()); err != nil {
		return skillhub.Listing{}, err
	}
	rel, err := hub.ReadRelease(ctx, f.Name())
	switch {
	case err != nil:
		return rel.Listing, err
	case rel.Key == "":
		return rel.Listing, hub.ErrUnsigned
	case rel.Listing.Publisher != publisher:
		return rel.Listing, errNotTheirs
	}
	if _, err := s.o.Author.Publish(ctx, hub.PublishOptions{}, rel); err != nil {
		return rel.Listing, err
	}
	_, err = s.set.Refresh(ctx, "")
	return rel.Listing, err
}

// refuseUpload answers with what a publisher can mend; the rest is the
// operator's, and goes to the log.
func (s *Server) refuseUpload(w http.ResponseWriter, publisher string, err error) {
	s.log("an upload of %s: %v", publisher, err)
	var large *http.MaxBytesError
	status, text := http.StatusInternalServerError, "the package could not be published"
	switch {
	case errors.As(err, &large):
		status, text = http.StatusRequestEntityTooLarge, fmt.Sprintf("a package has %d bytes at the most", skillhub.MaxArchive)
	case errors.Is(err, errNotTheirs):
		status, text = http.StatusForbidden, errNotTheirs.Error()
	case errors.Is(err, hub.ErrNotOwner):
		status, text = http.StatusForbidden, hub.ErrNotOwner.Error()
	case errors.Is(err, hub.ErrTaken):
		status, text = http.StatusConflict, hub.ErrTaken.Error()
	case errors.Is(err, hub.ErrUnsigned):
		status, text = http.StatusUnprocessableEntity, hub.ErrUnsigned.Error()
	case errors.Is(err, pack.ErrRefused), errors.Is(err, sign.ErrSignature):
		status, text = http.StatusUnprocessableEntity, reason(err)
	}
	reply(w, status, problem{text})
}

// reason cuts the server's own file name off an error.
func reason(err error) string {
	_, text, ok := strings.Cut(err.Error(), `": `)
	if !ok {
		return "the package is refused"
	}
	return text
}

// Tokens are kept as lines of a publisher's name and the SHA-256 of a token:
// who reads the file can upload nothing.
const maxTokens = 1 << 20

// publisher finds whose token a request has; "" is nobody's. It compares with
// all, each in constant time.
func (s *Server) publisher(r *http.Request) (string, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || s.o.Tokens == "" || len(token) > 512 {
		return "", nil
	}
	tokens, err := readTokens(s.o.Tokens)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(token))
	shown, found := hex.EncodeToString(sum[:]), ""
	for _, t := range tokens {
		if subtle.ConstantTimeCompare([]byte(t.sum), []byte(shown)) == 1 {
			found = t.publisher
		}
	}
	return found, nil
}

type tokenLine struct{ publisher, sum string }

func readTokens(file string) ([]tokenLine, error) {
	st, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && st.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the tokens in %q can be read by others (mode %04o): `chmod 600` it", file, st.Mode().Perm())
	}
	b, err := disk.ReadFile(file, maxTokens)
	if err != nil {
		return nil, err
	}
	var out []tokenLine
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 2 || len(f[1]) != 2*sha256.Size {
			return nil, fmt.Errorf("the tokens in %q: a line is PUBLISHER SHA256", file)
		}
		out = append(out, tokenLine{f[0], f[1]})
	}
	return out, nil
}

// NewToken makes a token for a publisher, and keeps its digest in the file. The
// token itself is returned, and kept nowhere.
func NewToken(ctx context.Context, file, publisher string) (string, error) {
	token := strings.ToLower(rand.Text() + rand.Text())
	sum := sha256.Sum256([]byte(token))
	return token, changeTokens(ctx, file, func(ts []tokenLine) []tokenLine {
		return append(ts, tokenLine{publisher, hex.EncodeToString(sum[:])})
	})
}

// RevokeTokens makes all tokens of a publisher worthless, and says how many
// there were.
func RevokeTokens(ctx context.Context, file, publisher string) (n int, err error) {
	err = changeTokens(ctx, file, func(ts []tokenLine) []tokenLine {
		var out []tokenLine
		for _, t := range ts {
			if t.publisher == publisher {
				n++
			} else {
				out = append(out, t)
			}
		}
		return out
	})
	return n, err
}

func changeTokens(ctx context.Context, file string, change func([]tokenLine) []tokenLine) error {
	unlock, err := disk.Lock(ctx, file+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	ts, err := readTokens(file)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("# Written by elfhost: publishers, and the SHA-256 of their tokens.\n")
	for _, t := range change(ts) {
		fmt.Fprintf(&b, "%s %s\n", t.publisher, t.sum)
	}
	return disk.Writer{}.Write(file, []byte(b.String()), 0o600)
}
