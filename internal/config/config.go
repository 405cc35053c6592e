// Package config reads config.toml and policy.toml in their layers and the hubs,
// writes what belongs into them, and knows where everything of a user lies.
package config

import "github.com/elfhost/elfhost/internal/config/strict"

// Config is config.toml. The struct is the one table of keys: name, type,
// default and meaning of each stand in its tags, and Keys, Explain and the
// documentation are made from them.
//
// A key tagged user:"only" counts in the user's file alone: it could send
// prompts or keys elsewhere, or loosen what is asked. One tagged trust:"only"
// counts in a project once the person trusts that folder; "since" says why. One
// tagged trust:"narrow" counts before that, too, where it allows less.
type Config struct {
	Model           string          `toml:"model" trust:"only" since:"it chooses who reads the conversation, and what that costs" doc:"the model that answers, as provider/name or a name that a configured provider has"`
	BackgroundModel string          `toml:"background_model" trust:"only" since:"it chooses who reads the conversation, and what that costs" doc:"the model for summaries and other small work; the answering model when empty"`
	Effort          string          `toml:"effort" oneof:"none low medium high" trust:"only" since:"it chooses what the answers cost" doc:"how much the model thinks before it answers, as far as it can be told: none, low, medium, high; the model's own when empty"`
	Mode            string          `toml:"mode" default:"ask" oneof:"plan ask acceptEdits auto" user:"only" doc:"how much is asked: plan, ask, acceptEdits, auto"`
	Dialect         string          `toml:"dialect" default:"tinyelf" oneof:"tinyelf acp" doc:"the names and parameters of the builtin tools"`
	Tools           []string        `toml:"tools" trust:"narrow" doc:"the tools to offer, by name; all when empty"`
	MaxSteps        int             `toml:"max_steps" default:"50" trust:"narrow" doc:"model turns of one run at the most"`
	MaxCost         float64         `toml:"max_cost" user:"only" doc:"US dollars of one run at the most; 0 sets no limit. The model's price must be known, see prices"`
	ExecTimeout     strict.Duration `toml:"exec_timeout" default:"2m" trust:"narrow" doc:"when Bash ends a command"`
	NativeSearch    bool            `toml:"native_search" default:"true" trust:"narrow" doc:"let a model's provider search the web by itself, where it can, in place of WebSearch"`
	Offline         bool            `toml:"offline" user:"only" doc:"use no network at all"`

	Output    Output              `toml:"output"`
	Providers map[string]Provider `toml:"providers" user:"only"`
	Prices    map[string]Price    `toml:"prices" user:"only"`
	MCP       MCP                 `toml:"mcp"`
	Hooks     []Hook              `toml:"hooks" user:"only"`
	Search    []SearchService     `toml:"search" user:"only"`

	notes  []string
	origin map[string]origin
}

// Output bounds what the model is shown of one tool's answer.
type Output struct {
	Max  strict.Size `toml:"max" default:"50KiB" trust:"narrow" doc:"of any tool without a limit of its own"`
	Read strict.Size `toml:"read" default:"128KiB" trust:"narrow" doc:"of Read"`
	Bash strict.Size `toml:"bash" default:"100KiB" trust:"narrow" doc:"of Bash and Shell"`
}

// Provider is [providers.NAME]: a place that serves models.
type Provider struct {
	Kind      string            `toml:"kind" oneof:"anthropic openai openai-chat gemini scripted" doc:"the protocol: anthropic, openai (Responses), openai-chat (every compatible server), gemini, scripted"`
	BaseURL   string            `toml:"base_url" doc:"where it is, when not at the vendor's address"`
	APIKeyEnv string            `toml:"api_key_env" doc:"the environment variable that holds the key"`
	Models    []string          `toml:"models" doc:"names it is known to have"`
	Headers   map[string]string `toml:"headers" secret:"true" doc:"sent with every request"`
	File      string            `toml:"file" doc:"the turns of a scripted model (docs/scripted.md)"`
	Context   int               `toml:"context" doc:"tokens of its models' context. Without it the built-in table counts, and for a model that it does not know what the provider publishes: it is asked once a conversation is long enough to mind, or has calls, and its answer kept in the cache for a week"`
	TextOnly  bool              `toml:"text_only" doc:"its models take no images"`
	Timeout   strict.Duration   `toml:"timeout" default:"10m" doc:"of one request, streaming included"`
}

// Price is [prices."PROVIDER/MODEL"]: US dollars for a million tokens. It
// stands over what vendors had published when the program was built.
type Price struct {
	Input      float64 `toml:"input" doc:"of the prompt"`
	Output     float64 `toml:"output" doc:"of the answer"`
	CacheRead  float64 `toml:"cache_read" doc:"of what the provider has cached"`
	CacheWrite float64 `toml:"cache_write" doc:"of what it puts into its cache; as the prompt when 0"`
}

// MCP is [mcp].
type MCP struct {
	Servers map[string]MCPServer `toml:"servers" trust:"only" since:"it starts programs"`
}

// MCPServer is [mcp.servers.NAME]: a program to start (Command) or a URL.
type MCPServer struct {
	Transport  string            `toml:"transport" oneof:"stdio http sse" doc:"stdio, http or sse; follows from command or url when empty"`
	Command    string            `toml:"command" doc:"the program to start"`
	Args       []string          `toml:"args" doc:"its arguments"`
	Cwd        string            `toml:"cwd" doc:"its folder; the project's when empty"`
	Env        map[string]string `toml:"env" secret:"true" doc:"variables it is given"`
	EnvFrom    []string          `toml:"env_from" doc:"names of variables it is given from the environment; it gets no others"`
	URL        string            `toml:"url" doc:"where it listens"`
	Headers    map[string]string `toml:"headers" secret:"true" doc:"sent with every request"`
	HeadersEnv map[string]string `toml:"headers_env" doc:"headers whose value is in an environment variable"`
	Tools      []string          `toml:"tools" doc:"the tools to offer, by the server's names; all when empty"`
	Timeout    strict.Duration   `toml:"timeout" default:"60s" doc:"of one call"`
	Startup    strict.Duration   `toml:"startup" default:"10s" doc:"until it has to be ready"`
	Disabled   bool              `toml:"disabled" doc:"not started"`
}

// Hook is one [[hooks]]: a program that is started at an event.
type Hook struct {
	Event   string          `toml:"event" doc:"when: session_start, prompt, before_tool, after_tool, stop, session_end"`
	Match   string          `toml:"match" doc:"a tool rule, such as Bash(git:*); any call when empty"`
	Command []string        `toml:"command" doc:"the program and its arguments, without a shell"`
	Timeout strict.Duration `toml:"timeout" default:"60s" doc:"when it is ended"`
}

// SearchService is one [[search]]: a service for WebSearch, tried in order.
type SearchService struct {
	Kind      string `toml:"kind" doc:"which service"`
	BaseURL   string `toml:"base_url" doc:"where it is, when not at the vendor's address"`
	APIKeyEnv string `toml:"api_key_env" doc:"the environment variable that holds the key"`
}

// Notes says what was ignored because the file may not say it, with file and line.
func (c *Config) Notes() []string { return c.notes }
