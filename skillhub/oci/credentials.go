package oci

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"
)

// Credential opens a registry. It prints as nothing.
type Credential struct {
	User, Password string
	Refresh        string // a token to get tokens with
	Token          string // a token to show as it is
}

// String hides it from logs and errors.
func (Credential) String() string { return "[credential]" }

// GoString hides it as well.
func (Credential) GoString() string { return "[credential]" }

// Credentials are those of registries, by what a Docker configuration calls
// them: "ghcr.io", "registry.example.com:5000", "ghcr.io/acme".
type Credentials map[string]Credential

// ErrLogin is a registry that wants a log-in, or another one.
var ErrLogin = errors.New("the registry wants a log-in")

// ErrHelper is a registry whose credentials are behind a program. Elfhost
// starts no program that a configuration names, other than hooks and MCP
// servers.
var ErrHelper = errors.New("its credentials are kept by a credential helper, a program, and elfhost starts none; log in to a file of its own: DOCKER_CONFIG=DIR docker login, or skopeo login --authfile, and set DOCKER_CONFIG or REGISTRY_AUTH_FILE")

// helped marks a registry as one of a helper.
const helped = "\x00helper"

// maxConfig bounds a Docker configuration, in bytes.
const maxConfig = 1 << 20

// ReadCredentials reads the credentials of this person: the file that
// REGISTRY_AUTH_FILE names, else config.json of the folder DOCKER_CONFIG, else
// of ~/.docker. A file that is not there has none.
func ReadCredentials(getenv func(string) string) (Credentials, error) {
	name := getenv("REGISTRY_AUTH_FILE")
	if name == "" {
		dir := getenv("DOCKER_CONFIG")
		if dir == "" {
			home := getenv("HOME")
			if home == "" {
				home = getenv("USERPROFILE")
			}
			if home == "" {
				return nil, nil
			}
			dir = filepath.Join(home, ".docker")
		}
		name = filepath.Join(dir, "config.json")
	}
	b, err := readRegular(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the registries' credentials: %w", err)
	}
	c, err := ParseCredentials(b)
	if err != nil {
		return nil, fmt.Errorf("reading the registries' credentials: %q: %w", name, err)
	}
	return c, nil
}

func readRegular(name string) ([]byte, error) {
	if st, err := os.Stat(name); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() { // a FIFO would wait
		return nil, fmt.Errorf("%q is not a regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(b) > maxConfig {
		err = fmt.Errorf("%q is over %d bytes", name, maxConfig)
	}
	return b, err
}

// ParseCredentials reads a Docker configuration. No error holds a part of it.
func ParseCredentials(b []byte) (Credentials, error) {
	var file struct {
		Auths map[string]struct {
			Auth          string `json:"auth"`
			Username      string `json:"username"`
			Password      string `json:"password"`
			IdentityToken string `json:"identitytoken"`
			RegistryToken string `json:"registrytoken"`
		} `json:"auths"`
		CredsStore  string            `json:"credsStore"`
		CredHelpers map[string]string `json:"credHelpers"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("it is not JSON, at byte %d", syntax.Offset)
		}
		return nil, errors.New("it is not a Docker configuration")
	}
	out := Credentials{}
	for name, a := range file.Auths {
		c := Credential{User: a.Username, Password: a.Password, Refresh: a.IdentityToken, Token: a.RegistryToken}
		if a.Auth != "" {
			text, err := base64.StdEncoding.DecodeString(a.Auth)
			user, password, ok := strings.Cut(string(text), ":")
			if err != nil || !ok {
				return nil, fmt.Errorf("the auth of %q is not base64 of user:password", name)
			}
			c.User, c.Password = user, strings.TrimRight(password, "\x00")
		}
		if c == (Credential{}) && file.CredsStore != "" {
			c.Token = helped // the file only remembers that somebody logged in
		}
		if c != (Credential{}) {
			out[registryKey(name)] = c
		}
	}
	for name := range file.CredHelpers {
		out[registryKey(name)] = Credential{Token: helped}
	}
	return out, nil
}

// registryKey writes the name of an entry as a registry is written:
// "https://index.docker.io/v1/" is docker.io.
func registryKey(name string) string {
	name = strings.ToLower(name)
	for _, p := range []string{"https://", "http://"} {
		name = strings.TrimPrefix(name, p)
	}
	name = strings.TrimSuffix(name, "/")
	for _, s := range []string{"/v1", "/v2"} {
		name = strings.TrimSuffix(name, s)
	}
	if name == "index.docker.io" || name == "registry-1.docker.io" {
		return "docker.io"
	}
	return name
}

// find gives what is known for a repository: of several entries the one that
// names most of it.
func (c Credentials) find(l location) (Credential, bool) {
	for key := registryKey(l.registry) + "/" + l.repo; ; {
		if found, ok := c[key]; ok {
			return found, true
		}
		i := strings.LastIndexByte(key, '/')
		if i < 0 {
			return Credential{}, false
		}
		key = key[:i]
	}
}

// credential answers a registry that wants one. It is given to that registry
// alone.
func (g *Registry) credential(l location) auth.CredentialFunc {
	return func(_ context.Context, hostport string) (auth.Credential, error) {
		if hostport != l.host {
			return auth.EmptyCredential, nil
		}
		c, ok := g.Credentials.find(l)
		switch {
		case !ok:
			return auth.EmptyCredential, nil
		case c.Token == helped:
			return auth.EmptyCredential, ErrHelper
		}
		if g.HTTP.Secrets != nil {
			for _, secret := range []string{c.Password, c.Refresh, c.Token} {
				g.HTTP.Secrets.Scrub.Add(secret)
			}
		}
		return auth.Credential{Username: c.User, Password: c.Password, RefreshToken: c.Refresh, AccessToken: c.Token}, nil
	}
}
