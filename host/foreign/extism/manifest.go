package extism

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// Manifest is Extism's, as its hosts read it.
type Manifest struct {
	Wasm   []Source `json:"wasm"`
	Memory struct {
		MaxPages    int64  `json:"max_pages"`
		MaxResponse *int64 `json:"max_http_response_bytes"`
		MaxVars     *int64 `json:"max_var_bytes"`
	} `json:"memory"`
	Config       map[string]string `json:"config"`
	AllowedHosts []string          `json:"allowed_hosts"`
	AllowedPaths map[string]string `json:"allowed_paths"` // host → guest
	TimeoutMS    int64             `json:"timeout_ms"`
}

// maxModules bounds what one manifest links.
const maxModules = 16

// Source is where a module of a manifest comes from.
type Source struct {
	Path string `json:"path"`
	URL  string `json:"url"`
	Data []byte `json:"data"`
	Name string `json:"name"`
	Hash string `json:"hash"` // sha256 in hex
}

// ParseManifest reads a manifest. ok is false for JSON that is none.
func ParseManifest(b []byte) (m Manifest, ok bool, err error) {
	var head struct {
		Wasm json.RawMessage `json:"wasm"`
	}
	if json.Unmarshal(b, &head) != nil || len(head.Wasm) == 0 || head.Wasm[0] != '[' {
		return m, false, nil
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, true, err
	}
	switch {
	case m.TimeoutMS < 0 || m.TimeoutMS > 1<<40 || m.Memory.MaxPages < 0 || m.Memory.MaxPages > 1<<16:
		return m, true, errors.New("timeout_ms or memory.max_pages is out of range")
	case len(m.Wasm) == 0:
		return m, true, errors.New("it names no module")
	case len(m.Wasm) > maxModules:
		return m, true, fmt.Errorf("it links %d modules; the limit is %d", len(m.Wasm), maxModules)
	}
	return m, true, nil
}

// Split gives the module that is called, the one named main or else the last,
// and those that it may link, in their order.
func (m Manifest) Split() (main Source, libraries []Source) {
	at := slices.IndexFunc(m.Wasm, func(s Source) bool { return s.Name == "main" })
	if at < 0 {
		at = len(m.Wasm) - 1
	}
	return m.Wasm[at], slices.Concat(m.Wasm[:at], m.Wasm[at+1:])
}

// methods are what Extism lets a plugin do with a host that it may reach.
const methods = " GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS"

// HostNeeds turns patterns of hosts into needs. A pattern that no scope can
// say becomes "public"; the format still holds requests against the pattern.
func HostNeeds(patterns []string) []abi.Need {
	var scopes []string
	wide := false
	for _, p := range patterns {
		pair := []string{"https://" + p + methods, "http://" + p + methods}
		_, err := policy.FromNeeds([]abi.Need{{Cap: abi.NetHTTP, Scope: pair}})
		if err != nil || strings.ContainsAny(strings.TrimPrefix(p, "*."), "*?[{") {
			wide = true
			continue
		}
		scopes = append(scopes, pair...)
	}
	if wide {
		scopes = append(scopes, "public"+methods)
	}
	if len(scopes) == 0 {
		return nil
	}
	return []abi.Need{{Cap: abi.NetHTTP, Scope: slices.Compact(scopes),
		Reason: "its manifest allows the hosts " + strings.Join(patterns, ", ")}}
}

// PathNeeds turns a mapping of folders into needs, and into what guests see:
// guest path → virtual path. virtual says where a folder of the host lies below
// the virtual root, or that it does not.
func PathNeeds(paths map[string]string, virtual func(host string) (string, error)) ([]abi.Need, map[string]string, error) {
	var reads, writes []string
	guest := map[string]string{}
	for from, to := range paths {
		host, readOnly := strings.CutPrefix(from, "ro:")
		name, err := virtual(host)
		if err != nil {
			return nil, nil, fmt.Errorf("allowed_paths: the folder %q: %w", host, err)
		}
		to = path.Join("/", to)
		guest[to] = name
		reads = append(reads, name, strings.TrimSuffix(name, "/")+"/**")
		if !readOnly {
			writes = append(writes, strings.TrimSuffix(name, "/")+"/**")
		}
	}
	slices.Sort(reads)
	slices.Sort(writes)
	var needs []abi.Need
	const reason = "its manifest allows these folders"
	if len(reads) > 0 {
		needs = append(needs, abi.Need{Cap: abi.FSRead, Scope: slices.Compact(reads), Reason: reason})
	}
	if len(writes) > 0 {
		needs = append(needs, abi.Need{Cap: abi.FSWrite, Scope: slices.Compact(writes), Reason: reason})
	}
	return needs, guest, nil
}

// Limits are those that a manifest sets.
func (m Manifest) Limits() abi.Limits {
	return abi.Limits{Memory: m.Memory.MaxPages << 16, Time: time.Duration(m.TimeoutMS) * time.Millisecond, HostCalls: HostCalls}
}

// Options are those that a manifest sets. Paths are left to PathNeeds.
func (m Manifest) Options() Options {
	return Options{Config: m.Config, Hosts: m.AllowedHosts, MaxResponse: m.Memory.MaxResponse, MaxVars: m.Memory.MaxVars}
}
