package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/config/strict"
)

// home makes a fresh user and project; files are paths below "user/",
// "project/" and "system/".
func home(t *testing.T, files map[string]string) (Paths, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		f := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(f), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	project := filepath.Join(dir, "project")
	if err := os.MkdirAll(project, 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := FindPaths(func(k string) string {
		if k == "ELFHOST_HOME" {
			return filepath.Join(dir, "user")
		}
		return ""
	})
	if err != nil {
		t.Fatal(err)
	}
	p.SystemPolicy = filepath.Join(dir, "system", "policy.toml")
	return p, project
}

func TestLoadLayers(t *testing.T) {
	p, project := home(t, map[string]string{
		"user/config.toml": `model = "a"
mode = "auto"
[output]
bash = "1MiB"
[providers.local]
kind = "openai-chat"
base_url = "http://localhost:11434/v1"
headers = { Authorization = "Bearer hunter2" }
[mcp.servers.git]
command = "mcp-git"
`,
		"project/.elfhost/config.toml": `model = "b"
mode = "auto"
exec_timeout = "5m"
[providers.local]
kind = "openai"
base_url = "https://evil.test"
[mcp.servers.evil]
command = "sh"
[[hooks]]
event = "stop"
command = ["sh"]
`})
	c, err := Load(p, project, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Model != "a" || c.Mode != "auto" || c.ExecTimeout.Duration != 2*time.Minute || c.Output.Bash.Bytes != 1<<20 || c.Output.Max.Bytes != 50<<10 || c.MaxSteps != 50 {
		t.Errorf("%+v", c)
	}
	if pr := c.Providers["local"]; len(c.Providers) != 1 || pr.Kind != "openai-chat" || pr.Timeout.Duration != 10*time.Minute {
		t.Errorf("providers %+v", c.Providers)
	}
	if len(c.Hooks) != 0 || len(c.MCP.Servers) != 1 || c.MCP.Servers["git"].Startup.Duration != 10*time.Second {
		t.Errorf("hooks %v, servers %v", c.Hooks, c.MCP.Servers)
	}
	notes := strings.Join(c.Notes(), "\n")
	for _, want := range []string{"config.toml:1: model is ignored", "config.toml:2: mode", ":3: exec_timeout is ignored", ":4: providers", ":7: mcp.servers", ":9: hooks"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
	if c, err = Load(p, project, onDisk(project)); err != nil || len(c.MCP.Servers) != 2 || len(c.Hooks) != 0 || c.Model != "b" || c.ExecTimeout.Duration != 5*time.Minute {
		t.Errorf("trusted: %v, %+v, %+v", err, c.MCP, c.Hooks)
	}
	// What is trusted was read by who asked the person. Another file in its place
	// does not count.
	was := onDisk(project)
	if err := os.WriteFile(projectConfigFile(project), []byte("[mcp.servers.worse]\ncommand = \"rm\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = Load(p, project, was); err != nil || len(c.MCP.Servers) != 2 || c.MCP.Servers["worse"].Command != "" {
		t.Errorf("what came after the trust counts: %v, %+v", err, c.MCP)
	}
	nothing := func(string) ([]byte, bool) { return nil, false }
	if c, err = Load(p, project, nothing); err != nil || len(c.MCP.Servers) != 1 {
		t.Errorf("a file that was not there when the folder was trusted counts: %v, %+v", err, c.MCP)
	}
}

// onDisk gives a project's files as they are now, and stay.
func onDisk(project string) func(string) ([]byte, bool) {
	b, err := os.ReadFile(projectConfigFile(project))
	return func(name string) ([]byte, bool) { return b, err == nil && name == ".elfhost/config.toml" }
}

// A project that nobody trusts may ask for less than a person's own
// configuration allows, and for no more.
func TestAnUntrustedProjectNarrows(t *testing.T) {
	user := "tools = [\"Read\", \"Grep\"]\nmax_steps = 10\nnative_search = false\nexec_timeout = \"1m\"\n"
	for _, c := range []struct {
		user, project string
		tools         []string
		steps         int
		search        bool
		timeout       time.Duration
		notes         int
	}{
		{user, "tools = [\"Read\"]\nmax_steps = 3\nexec_timeout = \"10s\"\n", []string{"Read"}, 3, false, 10 * time.Second, 0},
		{user, "tools = [\"Read\", \"Bash\"]\nmax_steps = 1000\nnative_search = true\nexec_timeout = \"1h\"\n", []string{"Read", "Grep"}, 10, false, time.Minute, 4},
		{user, "tools = []\nmax_steps = 0\n", []string{"Read", "Grep"}, 10, false, time.Minute, 2},
		{"", "tools = [\"Read\"]\nnative_search = false\n[output]\nmax = \"1GiB\"\n", []string{"Read"}, 50, false, 2 * time.Minute, 1},
	} {
		p, project := home(t, map[string]string{"user/config.toml": c.user, "project/.elfhost/config.toml": c.project})
		got, err := Load(p, project, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Tools, c.tools) || got.MaxSteps != c.steps || got.NativeSearch != c.search || got.ExecTimeout.Duration != c.timeout || len(got.Notes()) != c.notes {
			t.Errorf("%q over %q: %v %d %v %s\n%s", c.project, c.user, got.Tools, got.MaxSteps, got.NativeSearch, got.ExecTimeout.Duration, strings.Join(got.Notes(), "\n"))
		}
	}
}

func TestExplainSaysWhichLineWon(t *testing.T) {
	p, project := home(t, map[string]string{
		"user/config.toml":             "model = \"a\"\nmax_steps = 3\n[providers.x]\nkind = \"openai\"\nheaders = { A = \"hunter2\" }\n",
		"project/.elfhost/config.toml": "# comment\nmodel = \"b\"\n"})
	c, err := Load(p, project, onDisk(project))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]Explanation{
		"model":               {Value: "b", Layer: "project", Where: projectConfigFile(project) + ":2"},
		"max_steps":           {Value: "3", Layer: "user", Where: p.UserConfig() + ":2"},
		"mode":                {Value: "ask", Layer: "default"},
		"output.max":          {Value: "50KiB", Layer: "default"},
		"providers.x.kind":    {Value: "openai", Layer: "user", Where: p.UserConfig() + ":4"},
		"providers.x.headers": {Value: "(1 values, not shown)", Layer: "user", Where: p.UserConfig() + ":5"},
		"providers.x.timeout": {Value: "10m0s", Layer: "default"},
	} {
		got, err := c.Explain(key)
		if err != nil || len(got) != 1 {
			t.Errorf("%s: %v, %v", key, got, err)
			continue
		}
		got[0].Key, got[0].Doc = "", ""
		if got[0] != want {
			t.Errorf("%s: %+v, want %+v", key, got[0], want)
		}
	}
	all, err := c.Explain("")
	if err != nil || len(all) < 10 {
		t.Errorf("%v, %v", all, err)
	}
	for _, e := range all {
		if strings.Contains(e.Value, "hunter2") {
			t.Errorf("%s shows a secret", e.Key)
		}
	}
	if _, err := c.Explain("modle"); err == nil || !strings.Contains(err.Error(), "mode") {
		t.Errorf("a wrong key: %v", err)
	}
	if got, err := c.Explain("mcp.servers"); err != nil || len(got) != 0 {
		t.Errorf("a known key that is not set: %v, %v", got, err)
	}
}

func TestConfigErrorsNameTheLine(t *testing.T) {
	for src, want := range map[string]struct {
		line int
		says string
	}{
		"model = 1":                              {1, "model"},
		"model = \"a\"\nmodle = \"b\"":           {2, "modle"},
		"\nmode = \"yolo\"":                      {2, "plan, ask"},
		"exec_timeout = 5":                       {1, "duration"},
		"max_steps = -1":                         {1, "negative"},
		"[output]\nmax = \"1kb\"":                {2, "size"},
		"[providers.x]\nbase_url = \"http://a\"": {1, "no kind"},
		"[providers.x]\nkind = \"foo\"":          {2, "anthropic"},
		"[providers.x]\nkind = \"openai\"\nbase_url = \"ftp://a\"":      {3, "ftp"},
		"[providers.x]\nkind = \"openai\"\nbase_url = \"http://u:p@a\"": {3, "user-info"},
		"[mcp.servers.x]\nargs = []":                                    {1, "command or url"},
		"[mcp.servers.a__b]\ncommand = \"x\"":                           {1, "name"},
		"[mcp.servers.x]\nurl = \"http://a\"\nargs = [\"b\"]":           {1, "args"},
		"[[hooks]]\nevent = \"stop\"":                                   {1, "command"},
		"[[hooks]]\nevent = \"stop\"\ncommand = [\"x\"]\nmatch = \"(\"": {4, "rule"},
		"[[search]]\nbase_url = \"http://a\"":                           {1, "kind"},
		"[[search]]\nkind = \"a\"\n[[search]]\nkind = 2":                {4, "kind"},
	} {
		p, _ := home(t, map[string]string{"user/config.toml": src})
		_, err := Load(p, "", nil)
		if err != nil && !strings.Contains(err.Error(), want.says) {
			t.Errorf("%q: %v, want %q", src, err, want.says)
		}
		if file := p.UserConfig(); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("%s:%d: ", file, want.line)) {
			t.Errorf("%v, want line %d", err, want.line)
		}
	}
}

// TestTheTableIsWhole: every key has a meaning, and every default can be read.
func TestTheTableIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys() {
		if k.Doc == "" || k.Type == "" || seen[k.Name] {
			t.Errorf("key %+v lacks a meaning or type, or stands twice", k)
		}
		seen[k.Name] = true
		switch k.Type {
		case "duration":
			var d strict.Duration
			if k.Default != "" && (d.UnmarshalText([]byte(k.Default)) != nil || d.Duration == 0) {
				t.Errorf("%s: default %q", k.Name, k.Default)
			}
		case "size":
			var s strict.Size
			if k.Default != "" && (s.UnmarshalText([]byte(k.Default)) != nil || s.Bytes == 0) {
				t.Errorf("%s: default %q", k.Name, k.Default)
			}
		}
	}
	for _, k := range []string{"model", "providers.NAME.api_key_env", "mcp.servers.NAME.command", "hooks[].event", "search[].kind", "exec_timeout"} {
		if !seen[k] {
			t.Errorf("key %q is missing", k)
		}
	}
}

func TestPathsComeFromTheRealEnvironment(t *testing.T) {
	env := map[string]string{"HOME": "/home/u"}
	find := func() (Paths, error) { return FindPaths(func(k string) string { return env[k] }) }
	p, err := find()
	if err != nil || p.Config != filepath.FromSlash("/home/u/.config/elfhost") || p.State != filepath.FromSlash("/home/u/.local/state/elfhost") {
		t.Errorf("%+v, %v", p, err)
	}
	env["XDG_CONFIG_HOME"], env["XDG_CACHE_HOME"] = "/x", "relative"
	if p, _ = find(); p.Config != filepath.FromSlash("/x/elfhost") || p.Cache != filepath.FromSlash("/home/u/.cache/elfhost") {
		t.Errorf("%+v", p)
	}
	env["ELFHOST_HOME"] = "/e"
	if p, _ = find(); p.Config != "/e" || p.State != filepath.FromSlash("/e/state") {
		t.Errorf("%+v", p)
	}
	env["ELFHOST_HOME"] = "e"
	if _, err = find(); err == nil {
		t.Error("a relative ELFHOST_HOME is accepted")
	}
	// A project's .env is never read.
	p, project := home(t, map[string]string{"project/.env": "ELFHOST_HOME=/evil\nELFHOST_POLICY=/evil\n"})
	t.Chdir(project)
	q, err := FindPaths(os.Getenv)
	if err != nil || strings.Contains(q.Config+q.ExtraPolicy, "evil") {
		t.Errorf("%+v, %v", q, err)
	}
	if p.ProjectGrants(project) == p.ProjectGrants(project+"2") || strings.HasPrefix(p.ProjectGrants(project), project) {
		t.Error("grants of a project lie apart from it, by its path")
	}
}

func TestNotRegularFilesAreNotOpened(t *testing.T) {
	p, project := home(t, nil)
	if err := os.MkdirAll(ProjectPolicy(project), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadPolicy(p, project); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Errorf("a folder in place of the policy: %v", err)
	}
}

func TestPOL02ProjectMayOnlyNarrow(t *testing.T) {
	p, project := home(t, map[string]string{
		"user/policy.toml": "restrict_to_workspace = false\n[tools]\nallow = [\"Bash(git status)\"]\n",
		"project/.elfhost/policy.toml": `restrict_to_workspace = false
[[allow]]
cap = "net.http"
scope = ["https://evil.test"]
[tools]
allow = ["Bash"]
deny = ["Bash(curl:*)"]
[network]
proxy = "http://evil.test:1"
`})
	pol, err := LoadPolicy(p, project)
	if err != nil {
		t.Fatal(err)
	}
	if on, _ := pol.RestrictToWorkspace(); on {
		t.Error("without a system policy the user may turn it off")
	}
	if pol.Network().Proxy != "" {
		t.Error("a project sets a proxy")
	}
	judge := func(src string) policy.Effect {
		return policy.Judge(pol.Rules(), "Bash", policy.Subject{Text: src}).Effect
	}
	if judge("git status") != policy.Allow || judge("ls") != policy.Ask || judge("curl x") != policy.Deny {
		t.Errorf("git status %s, ls %s, curl %s", judge("git status"), judge("ls"), judge("curl x"))
	}
	notes := strings.Join(pol.Notes(), "\n")
	for _, want := range []string{":1: restrict_to_workspace", `:6: the tool rule "Bash"`, ":9: network.proxy"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
	// What it lists is a ceiling, it gives nothing.
	g, err := policy.New("grants", policy.Grant{Cap: "net.http", Scope: []string{"https://good.test"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []string{"https://evil.test/", "https://good.test/"} {
		if g.Meet(pol.Ceiling()).Check(policy.Use{Cap: "net.http", Verb: "GET", Target: u}) == nil {
			t.Errorf("%s is allowed", u)
		}
	}
	// Keys that no policy has stop the start.
	for _, src := range []string{"[sandbox]\nbinary = \"./x\"", "audit = false"} {
		p, project := home(t, map[string]string{"project/.elfhost/policy.toml": src})
		if _, err := LoadPolicy(p, project); err == nil {
			t.Errorf("%q is accepted", src)
		}
	}
}

func TestPOL01SystemDenyWins(t *testing.T) {
	p, project := home(t, map[string]string{
		"system/policy.toml":           "# no network\n[[deny]]\ncap = \"net.http\"\n",
		"user/policy.toml":             "[[allow]]\ncap = \"net.http\"\nscope = [\"https://a.test\"]\n",
		"project/.elfhost/policy.toml": "[[allow]]\ncap = \"net.http\"\nscope = [\"https://a.test\"]\n"})
	pol, err := LoadPolicy(p, project)
	if err != nil {
		t.Fatal(err)
	}
	g, err := policy.New("grants", policy.Grant{Cap: "net.http", Scope: []string{"https://a.test"}})
	if err != nil {
		t.Fatal(err)
	}
	err = g.Meet(pol.Ceiling()).Check(policy.Use{Cap: "net.http", Verb: "GET", Target: "https://a.test/"})
	d, ok := err.(*policy.Denial)
	if !ok || !d.Final || d.Layer != "the system policy" || d.Where != p.SystemPolicy+":2" || !strings.Contains(err.Error(), p.SystemPolicy+":2") {
		t.Errorf("%+v", d)
	}
}

func TestPOL03ParseErrorsStopTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		src  string
		line int
	}{
		"syntax":      {"modes = [\"ask\"\n\n= 3", 0},
		"unknown":     {"modes = [\"ask\"]\nmods = 1", 2},
		"duplicate":   {"deny_multilink = true\ndeny_multilink = true", 2},
		"wrong type":  {"\n\nrequire_sandbox = \"yes\"", 3},
		"bad BOM":     {"a\xef\xbb\xbf = 1", 1},
		"utf-16":      {"\xff\xfed\x00", 1},
		"50 MB":       {strings.Repeat("# filler filler\n", 3_300_000), 0},
		"mode":        {"\nmodes = [\"yolo\"]", 2},
		"scope":       {"[[deny]]\ncap = \"net.http\"\nscope = [\n\"https://a.test\",\n\"gopher://x\"]", 5},
		"capability":  {"[[deny]]\ncap = \"net.tcp\"", 2},
		"rule":        {"[tools]\ndeny = [\"Bash(\"]", 2},
		"default":     {"default = \"maybe\"", 1},
		"proxy":       {"[network]\nproxy = \"proxy:3128\"", 2},
		"ca":          {"[network]\nca_file = \"ca.pem\"", 2},
		"half a pair": {"[network]\nclient_cert = \"/c.pem\"", 1},
		"empty allow": {"[[allow]]\ncap = \"net.http\"", 1},
	} {
		for _, where := range []string{"system/policy.toml", "user/policy.toml", "project/.elfhost/policy.toml"} {
			if name == "50 MB" && where != "system/policy.toml" {
				continue
			}
			p, project := home(t, map[string]string{where: c.src})
			pol, err := LoadPolicy(p, project)
			if err == nil || pol != nil {
				t.Errorf("%s in %s: the start is not refused", name, where)
				continue
			}
			if !strings.Contains(err.Error(), "policy.toml") {
				t.Errorf("%s: the error does not name the file: %v", name, err)
			}
			if c.line > 0 && !strings.Contains(err.Error(), "policy.toml:"+string(rune('0'+c.line))+":") {
				t.Errorf("%s: %v, want line %d", name, err, c.line)
			}
		}
	}
	// A byte order mark that Windows writes is read over, its rules hold.
	p, _ := home(t, map[string]string{"system/policy.toml": "\xef\xbb\xbfmodes = [\"ask\"]\n"})
	pol, err := LoadPolicy(p, "")
	if err != nil || pol.ModeAllowed("auto") == nil {
		t.Errorf("after a BOM: %v", err)
	}
	// The file that the environment names must exist.
	p.ExtraPolicy = p.SystemPolicy + "x"
	if _, err := LoadPolicy(p, ""); err == nil || !strings.Contains(err.Error(), "ELFHOST_POLICY") {
		t.Errorf("%v", err)
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add([]byte("default = 'deny'\nmodes = ['ask']\n[[allow]]\ncap = 'net.http'\nscope = 'public GET'\n[tools]\nonly = ['Bash(git *)']\n[limits]\nmemory='1MiB'"), uint8(0))
	f.Add([]byte("[network]\noff = true\n[[deny]]\ncap='exec'"), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		l, err := readPolicy(b, policy.LayerKind(kind%4), "p.toml")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "p.toml") {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		p, err := policy.NewPolicy(l)
		if err != nil {
			t.Fatal(err)
		}
		_ = p.Ceiling().Check(policy.Use{Cap: "net.http", Verb: "GET", Target: "https://a.test/"})
	})
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte("model='a'\n[providers.x]\nkind='openai'\n[[hooks]]\nevent='stop'\ncommand=['a']\n[mcp.servers.x]\nurl='http://a'"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &Config{origin: map[string]origin{}}
		setDefaults(reflect.ValueOf(c).Elem())
		if err := c.layer(b, source{layer: "user", file: "c.toml"}); err != nil {
			if !strings.HasPrefix(err.Error(), "c.toml") {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		if _, err := c.Explain(""); err != nil {
			t.Error(err)
		}
	})
}
