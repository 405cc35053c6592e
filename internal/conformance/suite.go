// Package conformance holds the contract elf/1 against hosts: modules, calls
// and what must come of them, hostile ones among them, and a small protocol in
// which any host can be asked. docs/abi.md, section 8, describes it, so that a
// host can be written, and tried, from that page and the exported folder alone.
package conformance

import (
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/elfhost/elfhost/pdk/golden"
)

//go:embed suite
var embedded embed.FS

// Suite is a folder with suite.json, modules and their sources.
type Suite struct {
	ABI   string `json:"abi"`
	Cases []Case `json:"cases"`

	dir fs.FS
}

// Case is one module, what its loading must come to, and calls, which are made
// in turn.
type Case struct {
	Name    string   `json:"name"`
	Section string   `json:"section"` // of docs/abi.md
	About   string   `json:"about"`
	Module  string   `json:"module"` // in modules/; or
	Hex     string   `json:"hex"`    // its bytes
	Needs   []Need   `json:"needs"`
	Limits  Limits   `json:"limits"`
	Tools   []string `json:"tools"`  // that the manifest declares; none: elf_describe does
	Load    string   `json:"load"`   // "": it loads; "refused"; "either"
	Offers  []string `json:"offers"` // the tools that it must have then
	Calls   []Call   `json:"calls"`
}

// Need is one of the manifest's.
type Need struct {
	Cap   string   `json:"cap"`
	Scope []string `json:"scope"`
}

// Limits of the manifest; 0: the default.
type Limits struct {
	TimeMS int64 `json:"time_ms,omitempty"`
	Memory int64 `json:"memory,omitempty"`
	Output int64 `json:"output,omitempty"`
}

// Call is a call, what the host answers the module meanwhile, and what must
// come of it.
type Call struct {
	golden.Case
	About  string          `json:"about"`
	OneOf  []string        `json:"one_of"`    // the text is one of these
	As     json.RawMessage `json:"text_json"` // the text is this JSON
	Blocks []string        `json:"blocks"`    // the types of the content blocks
	// Ends: the call ends without an answer: "trap", "exit", "limit", "abi" (the
	// module broke the contract), "any".
	Ends   string `json:"ends"`
	Unlike bool   `json:"unlike_before"` // another text than the call before
	Same   bool   `json:"as_before"`
	// UnlikeOr: another text than the call before, or this one.
	UnlikeOr string `json:"unlike_before_or"`
}

// Default is the suite that this program carries.
func Default() (*Suite, error) {
	dir, err := fs.Sub(embedded, "suite")
	if err != nil {
		return nil, err
	}
	return Read(dir)
}

// maxSuite bounds suite.json, in bytes.
const maxSuite = 16 << 20

// Read reads a suite from its folder.
func Read(dir fs.FS) (*Suite, error) {
	b, err := fs.ReadFile(dir, "suite.json")
	if err != nil {
		return nil, err
	}
	if len(b) > maxSuite {
		return nil, fmt.Errorf("suite.json has more than %d bytes", maxSuite)
	}
	s := &Suite{dir: dir}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("suite.json: %w", err)
	}
	return s, nil
}

// Wasm is the module of a case.
func (s *Suite) Wasm(c *Case) ([]byte, error) {
	if c.Hex != "" {
		return hex.DecodeString(c.Hex)
	}
	return fs.ReadFile(s.dir, path.Join("modules", c.Module))
}

// Export writes the suite that this program carries to a folder, which must
// not exist or be empty.
func Export(dir string) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%q is not empty", dir)
	}
	return fs.WalkDir(embedded, "suite", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := embedded.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("suite", filepath.FromSlash(p))
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, b, 0o644))
	})
}
