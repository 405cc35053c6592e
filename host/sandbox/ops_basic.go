package sandbox

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach/secret"
)

func invalid(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, abi.ErrInvalid)...)
}

type logHeader struct {
	Level string `json:"level"`
}

func opLog(_ context.Context, c *call, h logHeader, body []byte) (any, []byte, error) {
	if h.Level == "" {
		h.Level = "info"
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, h.Level) {
		return nil, nil, invalid("no level %q; there are debug, info, warn and error", h.Level)
	}
	c.logs.write(h.Level, body)
	return nil, nil, nil
}

type progressHeader struct {
	Message string  `json:"message"`
	Done    float64 `json:"done"`
	Total   float64 `json:"total"`
}

func opProgress(_ context.Context, c *call, h progressHeader, _ []byte) (any, []byte, error) {
	if h.Done < 0 || h.Total < 0 || math.IsInf(h.Done, 0) || math.IsInf(h.Total, 0) {
		return nil, nil, invalid("done and total are not below zero")
	}
	if c.from.Progress != nil {
		c.from.Progress(abi.Progress{Message: oneLine(h.Message), Done: h.Done, Total: h.Total})
	}
	return nil, nil, nil
}

type nameHeader struct {
	Name string `json:"name"`
}

// opSecret hands out a placeholder. That a secret exists is told to those only
// who have a grant of it.
func opSecret(_ context.Context, c *call, h nameHeader, _ []byte) (any, []byte, error) {
	http := c.plugin.loader.HTTP
	if http == nil || http.Secrets == nil || http.Secrets.Store == nil {
		return nil, nil, fmt.Errorf("this host keeps no secrets: %w", abi.ErrUnsupported)
	}
	if h.Name == "" || strings.ContainsAny(h.Name, "@ \x00") {
		return nil, nil, invalid("no secret can have the name %q", h.Name)
	}
	if !c.mayUseSecret(h.Name) {
		err := c.noSecret(h.Name)
		c.note(policy.Use{Cap: abi.Secret, Target: h.Name}, err)
		return nil, nil, err
	}
	if _, err := http.Secrets.Store.Get(h.Name); err != nil {
		return nil, nil, fmt.Errorf("no value is set for the secret %q: %w", h.Name, abi.ErrNotFound)
	}
	return struct{}{}, []byte(secret.Placeholder(h.Name)), nil
}

// mayUseSecret looks for a grant of the secret at any host: at which one it may
// be filled in is asked when a request goes out.
func (c *call) mayUseSecret(name string) bool {
	for _, g := range c.rights.Grants.List() {
		if g.Cap != abi.Secret {
			continue
		}
		for _, s := range g.Scope {
			if n, _, _ := strings.Cut(s, "@"); n == name {
				return true
			}
		}
	}
	return false
}

// noSecret is the denial of a placeholder: of the use that the manifest asks
// for, so that it names the grant that would help.
func (c *call) noSecret(name string) error {
	for _, n := range c.plugin.pkg.Manifest.Needs {
		for _, s := range n.Scope {
			if of, _, _ := strings.Cut(s, "@"); n.Cap == abi.Secret && of == name {
				if err := c.rights.Grants.Check(policy.Use{Cap: abi.Secret, Target: s}); err != nil {
					return err
				}
			}
		}
	}
	return &policy.Denial{Use: policy.Use{Cap: abi.Secret, Target: name}, Layer: "the manifest", Final: true, Why: "the manifest does not ask for it"}
}

func (c *call) lookupEnv(name string) (string, bool) {
	if f := c.plugin.loader.Env; f != nil {
		return f(name)
	}
	return os.LookupEnv(name)
}

func opEnvGet(ctx context.Context, c *call, h nameHeader, _ []byte) (any, []byte, error) {
	if h.Name == "" || strings.ContainsAny(h.Name, "=\x00") {
		return nil, nil, invalid("no variable can have the name %q", h.Name)
	}
	if err := c.rights.Check(ctx, policy.Use{Cap: abi.Env, Target: h.Name}); err != nil {
		return nil, nil, err
	}
	v, ok := c.lookupEnv(h.Name)
	if !ok {
		return nil, nil, fmt.Errorf("the variable %s is not set: %w", h.Name, abi.ErrNotFound)
	}
	return struct{}{}, []byte(v), nil
}

// opEnvList names what is granted and set, without a question to anybody.
func opEnvList(_ context.Context, c *call, _ struct{}, _ []byte) (any, []byte, error) {
	names := []string{}
	for _, g := range c.rights.Grants.List() {
		if g.Cap != abi.Env {
			continue
		}
		for _, name := range g.Scope {
			_, set := c.lookupEnv(name)
			if set && c.rights.Grants.Check(policy.Use{Cap: abi.Env, Target: name}) == nil {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return map[string]any{"names": slices.Compact(names)}, nil, nil
}

type toolHeader struct {
	Tool string `json:"tool"`
}

type toolReply struct {
	IsError bool `json:"is_error,omitempty"`
}

// checkKey holds a key against the rules of docs/abi.md.
func checkKey(key string) error {
	if key == "" || len(key) > 512 || !utf8.ValidString(key) || strings.ContainsRune(key, 0) {
		return invalid("a key is 1 to 512 bytes of UTF-8 without NUL")
	}
	return nil
}
