package frontmatter

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

func text(t *testing.T, d Document, key string) string {
	t.Helper()
	s, err := d.Fields.Text(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parse(t *testing.T, s string) Document {
	t.Helper()
	d, err := Parse([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// K01: an unquoted colon spoils one value, not the others.
func TestK01UnquotedColon(t *testing.T) {
	d := parse(t, "---\nname: review\ndescription: Review along two axes: standards and risk\nallowed-tools: Read, Bash(git diff:*)\n---\nbody\n")
	if got := text(t, d, "description"); got != "Review along two axes: standards and risk" {
		t.Errorf("description %q", got)
	}
	if tools, set, _ := d.Fields.Tools("allowed-tools"); !set || !reflect.DeepEqual(tools, []string{"Read", "Bash(git diff:*)"}) {
		t.Errorf("allowed-tools %v %v", tools, set)
	}
	if len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "description is no YAML") {
		t.Errorf("warnings %q", d.Warnings)
	}
}

// K03: only the first closing line ends the block.
func TestK03RulesInTheBody(t *testing.T) {
	d := parse(t, "---\nname: a\n---\none\n\n---\n\ntwo: x\n---\nthree\n")
	if d.Body != "one\n\n---\n\ntwo: x\n---\nthree\n" || d.Line != 4 || len(d.Fields) != 1 {
		t.Errorf("%+v", d)
	}
}

// K07: the words for yes are yes, anything else is an error.
func TestK07Booleans(t *testing.T) {
	for in, want := range map[string]bool{"yes": true, `"on"`: true, "1": true, "true": true, "True": true, "no": false, "0": false, "off": false} {
		d := parse(t, "---\nuser-invocable: "+in+"\n---\n")
		if got, set, err := d.Fields.Bool("user-invocable"); err != nil || !set || got != want {
			t.Errorf("%s: %v %v %v", in, got, set, err)
		}
	}
	for _, in := range []string{"maybe", "2", "[true]", "{a: b}"} {
		d := parse(t, "---\nuser-invocable: "+in+"\n---\n")
		if _, _, err := d.Fields.Bool("user-invocable"); err == nil {
			t.Errorf("%s was taken", in)
		}
	}
	if _, set, err := (Fields)(nil).Bool("x"); set || err != nil {
		t.Error("a missing key is set")
	}
}

// K08: braces are text.
func TestK08BraceBomb(t *testing.T) {
	bomb := strings.Repeat("{a,b}", 20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, in := range []string{`"` + bomb + `"`, bomb} {
		d := parse(t, "---\nname: a\npaths: "+in+"\n---\n")
		if got := text(t, d, "name"); got != "a" {
			t.Errorf("%s: name %q", in, got)
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("the braces were expanded: %d bytes were used", n)
	}
}

func TestBombsAreRefused(t *testing.T) {
	laughs := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		p := string(c - 1)
		laughs += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+p+",", 8) + "*" + p + "]\n"
	}
	for name, block := range map[string]string{
		"flow":    "name: a\nx: " + strings.Repeat("[", 30000),
		"maps":    "name: a\nx: " + strings.Repeat("{a: ", 15000),
		"dashes":  "name: a\nx:\n  " + strings.Repeat("- ", 30000) + "y",
		"indent":  "name: a\n" + staircase(700),
		"laughs":  "name: a\n" + laughs,
		"nodes":   "name: a\nx: [" + strings.Repeat("1,", 20000) + "]",
		"merge":   "name: a\nx: &x {a: b}\ny:\n  <<: *x\n",
		"anchor":  "name: a\nx: &x y",
		"binary":  "name: a\nx: !!binary aGk=",
		"many":    strings.Repeat("name: a\n", 8000),
		"colons":  "name: a\nx: " + strings.Repeat(": ", 20000),
		"quotes":  "name: a\nx: " + strings.Repeat(`"`, 20001),
		"percent": "name: a\nx: y\n%YAML 9.9\n",
	} {
		start := time.Now()
		d := parse(t, "---\n"+block+"\n---\nbody")
		if d.Body != "body" || text(t, d, "name") != "a" {
			t.Errorf("%s: %q, name %q, %q", name, d.Body, text(t, d, "name"), d.Warnings)
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
}

func staircase(n int) string {
	var b strings.Builder
	for i := range n / 10 {
		b.WriteString(strings.Repeat(" ", i*10) + "k:\n")
	}
	return b.String()
}

func TestForms(t *testing.T) {
	for name, c := range map[string]struct {
		in, key, want, body string
		warns               bool
	}{
		"bom":           {"\ufeff---\nname: a\n---\nb", "name", "a", "b", true},
		"crlf":          {"---\r\nname: a\r\ndescription: |\r\n  one\r\n  two\r\n---\r\nb\r\nc", "description", "one\ntwo", "b\nc", false},
		"none":          {"# Title\n\n---\nname: a\n---\n", "name", "", "# Title\n\n---\nname: a\n---\n", false},
		"empty":         {"---\n---\nb", "name", "", "b", false},
		"unclosed":      {"---\nname: a\ndescription: d\n\n# Title\nb", "name", "a", "\n# Title\nb", true},
		"rule only":     {"---\nSome prose here.\n", "name", "", "Some prose here.\n", true},
		"dots":          {"---\nname: a\n...\nb", "name", "a", "b", false},
		"blank first":   {"\n\n---\nname: a\n---\nb", "name", "a", "b", true},
		"spaces":        {"---  \nname: a\n--- \nb", "name", "a", "b", false},
		"version":       {"---\nversion: 1.10\n---\n", "version", "1.10", "", false},
		"no":            {"---\ncountry: no\n---\n", "country", "no", "", false},
		"tab":           {"---\nname: a\nlist:\n\t- x\n\t- y\n---\n", "list", "x, y", "", true},
		"star":          {"---\nname: a\nglobs: *.ts\n---\n", "globs", "*.ts", "", true},
		"at":            {"---\nname: a\nowner: @me\n---\n", "owner", "@me", "", true},
		"stray":         {"---\nhello\nname: a\n---\n", "name", "a", "", true},
		"folded":        {"---\nd: >-\n  one\n  two\n---\n", "d", "one two", "", false},
		"continued":     {"---\nname: a\nd: one: two\n  three\n---\n", "d", "one: two three", "", true},
		"spelling":      {"---\nArgument_Hint: x\n---\n", "argument-hint", "x", "", false},
		"twice":         {"---\nname: a\nname: b\n---\n", "name", "a", "", true},
		"only keys":     {"---\njust a word\n---\nb", "name", "", "b", true},
		"emoji":         {"---\nname: наука 🦞\n---\n", "name", "наука 🦞", "", false},
		"quoted inside": {"---\nd: \"a\" and \"b\"\nname: x\n---\n", "name", "x", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			d := parse(t, c.in)
			if got := text(t, d, c.key); got != c.want || d.Body != c.body || (len(d.Warnings) > 0) != c.warns {
				t.Errorf("%q, body %q, warnings %q", got, d.Body, d.Warnings)
			}
		})
	}
}

func TestJSONMetadata(t *testing.T) {
	for _, in := range []string{
		`metadata: {"clawdbot":{"emoji":"x","requires":{"bins":["jq","curl"]}}}`,
		"metadata:\n  {\n\t\"clawdbot\": {\"requires\": {\"bins\": [\"jq\", \"curl\"]}}\n  }",
		`metadata: {"clawdbot":{"requires":{"bins":["jq","curl"]}}}` + "\ndescription: a: b",
	} {
		d := parse(t, "---\n"+in+"\n---\n")
		v, _ := d.Fields.Get("metadata")
		f, _ := v.(Fields)
		v, _ = f.Get("clawdbot")
		f, _ = v.(Fields)
		v, _ = f.Get("requires")
		f, _ = v.(Fields)
		if bins, err := f.List("bins"); err != nil || !reflect.DeepEqual(bins, []string{"jq", "curl"}) {
			t.Errorf("%s: %v %v %q", in, bins, err, d.Warnings)
		}
	}
}

func TestToolLists(t *testing.T) {
	for in, want := range map[string][]string{
		"Read, Grep, Bash(git add:*)": {"Read", "Grep", "Bash(git add:*)"},
		"Bash(gno:*) Read":            {"Bash(gno:*)", "Read"},
		"[Bash, Read]":                {"Bash", "Read"},
		`["Read", "Bash"]`:            {"Read", "Bash"},
		"'[\"Read\", \"Bash\"]'":      {"Read", "Bash"},
		"\n  - Read\n  - Bash(a, b)":  {"Read", "Bash(a, b)"},
		"Bash(git (x) y) Read":        {"Bash(git (x) y)", "Read"},
		"{Read: true, Bash: no}":      {"Read"},
		"Read, Bash(git":              {"Read"},
		"\"\"":                        {},
	} {
		d := parse(t, "---\nallowed-tools: "+in+"\n---\n")
		got, set, _ := d.Fields.Tools("allowedTools")
		if !set || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q %v %q", in, got, set, d.Warnings)
		}
	}
	d := parse(t, "---\nallowed-tools:\n---\n")
	if _, set, warn := d.Fields.Tools("allowed-tools"); set || len(warn) != 1 {
		t.Errorf("an empty key: %v %q", set, warn)
	}
}

func TestNotText(t *testing.T) {
	for _, b := range []string{"\xff\xfe-\x00", "a\x00b", "\xc3\x28"} {
		if _, err := Parse([]byte(b)); err == nil {
			t.Errorf("%q was taken for text", b)
		}
	}
	if _, err := Parse(make([]byte, MaxFile+1)); err == nil {
		t.Error("a file over the limit was taken")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"---\nname: a\ndescription: b: c\n---\nbody", "\ufeff---\r\na: [1,\r\n---", "---\na: |\n  x\n y\n---\n", "---\n? a\n: b\n---\n",
		"---\nmetadata: {\"a\": [1, {\"b\": null}]}\n---\n", "---\na: !!map {x: y}\nb: &c *c\n<<: *b\n---\n", "---\n- a\n---\n", "---\n\"a\": 'b'\n---\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Parse(b)
		if err != nil {
			return
		}
		if len(d.Warnings) > maxWarnings {
			t.Errorf("%d warnings", len(d.Warnings))
		}
		clean := strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(string(b), "\ufeff"), "\r\n", "\n"), "\r", "\n")
		if !strings.HasSuffix(clean, d.Body) {
			t.Errorf("the body is not the end of the file: %q", d.Body)
		}
		lines := strings.SplitAfter(clean, "\n")
		if d.Line < 1 || d.Line > len(lines)+1 || strings.Join(lines[min(d.Line-1, len(lines)):], "") != d.Body {
			t.Errorf("line %d does not begin the body %q of %q", d.Line, d.Body, clean)
		}
		for _, x := range d.Fields {
			_, _ = d.Fields.Text(x.Key)
			_, _ = d.Fields.List(x.Key)
			_, _, _ = d.Fields.Bool(x.Key)
			_, _, _ = d.Fields.Tools(x.Key)
		}
	})
}
