package config

import (
	"fmt"

	"github.com/elfhost/elfhost/internal/config/manifest"
	"github.com/elfhost/elfhost/internal/config/strict"
)

// policyFile is policy.toml. The tags are its documentation: `config explain`
// and docs/config.md are made from them.
type policyFile struct {
	Default             string          `toml:"default" default:"allow" doc:"what holds for capabilities that no [[allow]] names: allow or deny"`
	Modes               *[]string       `toml:"modes" doc:"the modes that may be used; all when absent"`
	RestrictToWorkspace *bool           `toml:"restrict_to_workspace" default:"true" layer:"user" doc:"whether the builtin tools stay inside the workspace; only the system, or without a system policy the user, may turn it off"`
	RequireSandbox      bool            `toml:"require_sandbox" doc:"no programs without a kernel sandbox"`
	DenyMultilink       bool            `toml:"deny_multilink" doc:"files with several hard links are not opened"`
	ExecTime            strict.Duration `toml:"exec_time" doc:"the longest that a command may take"`
	Allow               []capFile       `toml:"allow"`
	Deny                []capFile       `toml:"deny"`
	Tools               toolsFile       `toml:"tools"`
	Limits              manifest.Limits `toml:"limits"`
	Network             networkFile     `toml:"network"`
	Packages            packagesFile    `toml:"packages"`
}

// capFile is one [[allow]], [[deny]] or [[packages.ceiling]].
type capFile struct {
	Cap   string `toml:"cap" doc:"the capability"`
	Scope any    `toml:"scope" doc:"its scopes; without one, [[deny]] and [[packages.ceiling]] leave nothing of it"`
}

// toolsFile is [tools].
type toolsFile struct {
	Allow []string `toml:"allow" layer:"user" doc:"rules about calls that are not asked about, such as Bash(git status:*)"`
	Ask   []string `toml:"ask" doc:"rules about calls that are always asked about"`
	Deny  []string `toml:"deny" doc:"rules about calls that are refused"`
	Only  []string `toml:"only" doc:"where there are any, calls that none of them covers are refused"`
}

// packagesFile is [packages].
type packagesFile struct {
	Signature     string     `toml:"signature" default:"unsigned" doc:"how much a package has to be vouched for at the least: unsigned, signed, or pinned (by a key that packages.allow.keys names or that was pinned before)"`
	NeverTogether [][]string `toml:"never_together" doc:"groups of capabilities that no one package may ask for together"`
	Allow         listsFile  `toml:"allow"`
	Deny          listsFile  `toml:"deny"`
	Ceiling       []capFile  `toml:"ceiling"`
}

// listsFile is [packages.allow] or [packages.deny]. Where a list of what is
// allowed is there, whatever it leaves out is refused.
type listsFile struct {
	Names      []string `toml:"names" doc:"packages: a name, a name with a range of versions (fetch >=1.2, <2), or a digest (sha256:…); * stands for any letters"`
	Publishers []string `toml:"publishers" doc:"publishers; to be allowed a package has to be signed"`
	Keys       []string `toml:"keys" doc:"minisign public keys; after a publisher's name and a space, for that publisher alone"`
	Hubs       []string `toml:"hubs" doc:"addresses where packages come from, with all below: https://hub.example.com, oci://registry.example.com/tools, file:///srv/hub"`
}

// networkFile is [network], or network = "off".
type networkFile struct {
	Off        bool     `toml:"off" doc:"no network at all; network = \"off\" is the same"`
	Proxy      string   `toml:"proxy" layer:"system" doc:"the proxy for all that leaves this machine; the environment's variables are ignored"`
	CAFile     string   `toml:"ca_file" layer:"system" doc:"PEM file of roots, added to the system's"`
	ClientCert string   `toml:"client_cert" layer:"system" doc:"PEM file of a certificate that this machine shows"`
	ClientKey  string   `toml:"client_key" layer:"system" doc:"PEM file of its key"`
	Private    []string `toml:"private" layer:"system" doc:"blocks of private addresses, such as 10.0.0.0/8, that hubs, registries, models and MCP servers may have which somebody configured by name"`
	Listen     string   `toml:"listen" layer:"system" doc:"HOST:PORT that mcp serve --http may listen at although other machines reach it"`

	err error
}

// UnmarshalText reads the short form. What is wrong is kept: the TOML library
// would report it without a line.
func (n *networkFile) UnmarshalText(b []byte) error {
	if n.Off = string(b) == "off"; !n.Off {
		n.err = fmt.Errorf(`%q is not "off"; the rest is written as a table [network]`, b)
	}
	return nil
}

// Misread tells strict.Decode.
func (n networkFile) Misread() error { return n.err }
