package host

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestAddIsAllOrNone(t *testing.T) {
	r := registry(t, Options{}, builtin("Read"))
	for want, tools := range map[string][]Tool{
		`the name is taken by "Read"`: {builtin("Write"), builtin("Read")},
		`name is taken by "Read"`:     {builtin("Write"), builtin("READ")},
		`taken by "Write"`:            {builtin("Write"), builtin("write")},
		`adding tool ""`:              {builtin("Write"), builtin("")},
		`adding tool "a b"`:           {builtin("Write"), builtin("a b")},
		`adding tool "é"`:             {builtin("é")},
		"1 to 64":                     {builtin(strings.Repeat("x", 65))},
		"nil tool":                    {builtin("Write"), nil},
	} {
		if err := r.Add(tools...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("err = %v, want %q", err, want)
		}
		if got := r.Names(); !slices.Equal(got, []string{"Read"}) {
			t.Fatalf("names = %v", got)
		}
	}
	if err := r.Filter(func(Spec) bool { return true }).Add(builtin("X")); err == nil {
		t.Error("a view takes tools")
	}
}

func TestReplace(t *testing.T) {
	r := registry(t, Options{}, builtin("a"), builtin("b"), builtin("c"))
	if err := r.Replace([]string{"a", "b"}, builtin("B"), builtin("d")); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.Names(), " "); got != "c B d" {
		t.Errorf("names: %s", got)
	}
	if err := r.Replace([]string{"B"}, builtin("e"), builtin("C")); err == nil || !r.Has("B") || r.Has("e") {
		t.Errorf("a taken name: %v; it has %v", err, r.Names())
	}
	if err := r.Filter(func(Spec) bool { return true }).Replace(nil); err == nil {
		t.Error("a view is changed")
	}
}

func TestRemoveGetHas(t *testing.T) {
	r := registry(t, Options{}, builtin("b"), builtin("a"), builtin("c"))
	if got := strings.Join(r.Names(), ""); got != "bac" || len(r.All()) != 3 {
		t.Errorf("names = %s", got)
	}
	if !r.Remove("a") || r.Remove("a") || r.Has("a") || !r.Has("c") {
		t.Error("removal")
	}
	if tool, ok := r.Get("c"); !ok || tool.Spec().Name != "c" {
		t.Error("Get")
	}
	if _, ok := r.Get("a"); ok {
		t.Error("Get finds what was removed")
	}
	if s, ok := r.Spec("b"); !ok || s.Name != "b" {
		t.Error("Spec")
	}
}

func TestViewsAreLive(t *testing.T) {
	r := registry(t, Options{}, builtin("Read"), builtin("Write"))
	view := r.Filter(func(s Spec) bool { return s.Name != "Write" }).Filter(func(s Spec) bool { return s.Name != "Glob" })
	behind := view.Under(&Gate{Mode: ModePlan})
	if err := r.Add(builtin("Grep"), builtin("Glob")); err != nil {
		t.Fatal(err)
	}
	for _, v := range []*Registry{view, behind} {
		if got := strings.Join(v.Names(), " "); got != "Read Grep" {
			t.Errorf("names = %s", got)
		}
	}
	if view.Has("Write") || view.Remove("Write") || !r.Has("Write") {
		t.Error("a view reaches what it leaves out")
	}
	refusedWith(t, view, "Write", `{}`, "There is no tool")
	if behind.Gate().Mode != ModePlan || view.Gate() != r.Gate() {
		t.Error("gates")
	}
}

func TestInherit(t *testing.T) {
	parent := registry(t, Options{Gate: &Gate{Mode: ModeAuto}}, builtin("Read"), builtin("list_skills"), bash())
	child := registry(t, Options{Inherit: parent.Filter(Inheritable)}, builtin("Read"))
	if got := strings.Join(child.Names(), " "); got != "Read list_skills" {
		t.Errorf("names = %s", got)
	}
	changed := child.Changed()
	if err := parent.Add(&fake{spec: Spec{Name: "mcp__x__y", Origin: Origin{Source: MCP}}}); err != nil {
		t.Fatal(err)
	}
	<-changed
	if !child.Has("mcp__x__y") || child.Has("Bash") {
		t.Errorf("names = %v", child.Names())
	}
	refusedWith(t, child, "mcp__x__y", `{}`, "nobody is there") // the child's gate, not the parent's
}

func TestChanged(t *testing.T) {
	r := New(Options{})
	view := r.Filter(func(Spec) bool { return true })
	ch := view.Changed()
	select {
	case <-ch:
		t.Fatal("changed before anything did")
	default:
	}
	if err := r.Add(builtin("a")); err != nil {
		t.Fatal(err)
	}
	<-ch
	ch = r.Changed()
	if err := r.Add(builtin("a")); err == nil {
		t.Fatal("taken")
	}
	select {
	case <-ch:
		t.Error("a failed Add is a change")
	default:
	}
	r.Remove("a")
	<-ch
}

// TestHammer runs everything at once; the race detector is the judge.
func TestHammer(t *testing.T) {
	g := &Gate{Approver: &person{answer: says(Session)}, Memory: &mem{}, Audit: func(Verdict) error { return nil }}
	r := registry(t, Options{Gate: g}, builtin("Read"), bash())
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 50 {
				name := fmt.Sprintf("t%d_%d", i, n)
				if err := r.Add(builtin(name)); err != nil {
					t.Error(err)
				}
				view := r.Filter(func(s Spec) bool { return s.Name != "Read" }).Under(g.Child(ModePlan))
				_ = view.Names()
				call(t, view, name, `{}`)
				allowed(t, r, "Read", `{}`)
				allowed(t, r, "Bash", fmt.Sprintf(`{"command":"echo %d"}`, n%5))
				if _, err := r.Definitions(FormatOpenAI); err != nil {
					t.Error(err)
				}
				if err := g.Switch(ModeAsk); err != nil {
					t.Error(err)
				}
				<-changedBy(r, func() { r.Remove(name) })
			}
		})
	}
	wg.Wait()
	if got := len(r.Names()); got != 2 {
		t.Errorf("%d tools left", got)
	}
}

func changedBy(r *Registry, do func()) <-chan struct{} {
	ch := r.Changed()
	do()
	return ch
}

// TestDefinitions compares what providers are sent with testdata, for schemas
// with what they trip over.
func TestDefinitions(t *testing.T) {
	r := New(Options{})
	for name, in := range map[string]string{
		"plain":  `{"type":"object","required":["path"],"additionalProperties":false,"properties":{"path":{"type":"string","description":"A path.","format":"uri"},"limit":{"type":["integer","null"],"minimum":1},"mode":{"enum":["a","b"]},"level":{"enum":[1,2]}}}`,
		"none":   `{}`,
		"m01":    `{"type":"object","properties":{"q":{"$ref":"#/$defs/Q"}},"$defs":{"Q":{"type":"object","properties":{"limit":{"type":"integer"},"sub":{"$ref":"#/$defs/Q"}}}},"required":["q"]}`,
		"m04":    `{"type":"object","properties":{"body":{"anyOf":[{"type":"null"},{"type":"object","properties":{"x":{"type":"array","items":{"type":"integer"}}}}]},"y":{"$ref":"#/properties/body/anyOf/1/properties/x/items"}}}`,
		"union":  `{"oneOf":[{"type":"object","required":["id","a"],"properties":{"id":{"type":"string"},"a":{"type":"integer"}}},{"type":"object","required":["id","b"],"properties":{"id":{"type":"string"},"b":{"type":"array"}}}]}`,
		"nested": `{"type":"object","properties":{"list":{"type":"array","items":{"allOf":[{"type":"object","properties":{"a":{"const":"x"}}},{"required":["a"]}]}},"tuple":{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}]},"map":{"type":"object","additionalProperties":{"type":"string"}},"any":{},"either":{"type":["string","array"]}}}`,
	} {
		if err := r.Add(&fake{spec: Spec{Name: name, Title: "T", Description: "Does " + name + ".", Input: json.RawMessage(in), Kind: KindRead, Origin: Origin{Source: Builtin}}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range Formats() {
		defs, err := r.Definitions(f)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(defs, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
		got, err := json.MarshalIndent(defs, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "definitions", string(f)+".json")
		if *update {
			if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
			t.Errorf("%s (go test -update to accept):\n%s", f, diff)
		}
	}
}

// TestM02DefsSurvive: $defs and additionalProperties reach those who take them.
func TestM02DefsSurvive(t *testing.T) {
	in := `{"type":"object","properties":{"q":{"$ref":"#/$defs/Q"}},"$defs":{"Q":{"type":"object","additionalProperties":false,"properties":{"limit":{"type":"integer"}}}},"required":["q"],"additionalProperties":false}`
	r := registry(t, Options{}, &fake{spec: Spec{Name: "a", Input: json.RawMessage(in)}})
	for _, f := range []Format{FormatOpenAI, FormatResponses, FormatAnthropic, FormatMCP} {
		defs, err := r.Definitions(f)
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := json.Unmarshal(defs[0].Input, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(in), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", f, diff)
		}
	}
}

func TestDefinitionsLeaveOutTheBroken(t *testing.T) {
	r := registry(t, Options{}, builtin("good"), &fake{spec: Spec{Name: "bad", Input: json.RawMessage(`{"properties":{"a":{"$ref":"http://x"}}}`)}})
	defs, err := r.Definitions(FormatAnthropic)
	if len(defs) != 1 || defs[0].Name != "good" || err == nil || !strings.Contains(err.Error(), `"bad"`) {
		t.Errorf("%+v, %v", defs, err)
	}
	if _, err := r.Definitions("nonsense"); err == nil {
		t.Error("an unknown format")
	}
}
