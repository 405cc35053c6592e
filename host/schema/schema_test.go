package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func refused(t *testing.T, raw, want string) {
	t.Helper()
	start := time.Now()
	_, err := Compile(json.RawMessage(raw))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%.60s: %v, want %q", raw, err, want)
	}
	if took := time.Since(start); took > 2*time.Minute {
		t.Errorf("%.60s: took %v to refuse", raw, took)
	}
}

// TestMC06SchemaFileRef: nothing is loaded, whatever the reference names.
func TestMC06SchemaFileRef(t *testing.T) {
	for _, ref := range []string{"file:///etc/passwd", "http://127.0.0.1:1/x", "https://json-schema.org/draft/2020-12/schema", "other.json", "/etc/passwd", "//host/x"} {
		for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
			refused(t, fmt.Sprintf(`{"type":"object","properties":{"a":{%q:%q}}}`, keyword, ref), "not local")
		}
		refused(t, fmt.Sprintf(`{"$ref":%q}`, ref), "not local")
	}
	refused(t, `{"$schema":"file:///etc/passwd","type":"object"}`, "not loaded")
	refused(t, `{"properties":{"a":{"$id":"file:///etc/","properties":{"b":{"$ref":"#/x"}}}}}`, "nested $id")
	refused(t, `{"$ref":"#/$defs/none"}`, "leads nowhere")
	refused(t, `{"$ref":"#none"}`, "leads nowhere")
	refused(t, `{"$ref":5}`, "not a string")
}

// doubling is a chain of n definitions, each of which tries the next twice.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"type":"string","minLength":9}}}`, n)
	return b.String()
}

// TestMC07SchemaExponential: the expansion of references is counted before
// anything is checked with them, and the work of a check while it runs.
func TestMC07SchemaExponential(t *testing.T) {
	refused(t, doubling(17), "expands to more than 10000")
	refused(t, doubling(60), "expands to more than 10000")
	if _, err := Compile(json.RawMessage(doubling(8))); err != nil {
		t.Errorf("a small expansion is refused: %v", err)
	}
	s := compiled(t, `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"c":{"anyOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}]}, "x":{"type":"integer"}}}}}`)
	deep := strings.Repeat(`{"c":`, 60) + `{"x":true}` + strings.Repeat(`}`, 60)
	start := time.Now()
	_, _, err := s.Check(json.RawMessage(deep))
	if err == nil || !strings.Contains(err.Error(), "too much work") {
		t.Errorf("err = %v", err)
	}
	if took := time.Since(start); took > 2*time.Minute {
		t.Errorf("took %v", took)
	}
	refused(t, `{"$ref":"#"}`, "without end")
	refused(t, `{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"not":{"$ref":"#/$defs/a"}}}}`, "without end")
}

// TestMC08SchemaDepth: size, depth, count and patterns have caps.
func TestMC08SchemaDepth(t *testing.T) {
	refused(t, strings.Repeat(`{"not":`, 20_000)+`{}`+strings.Repeat(`}`, 20_000), "deeper than 128")
	refused(t, `{"enum":["`+strings.Repeat("x", 5<<20)+`"]}`, "over the limit")
	refused(t, `{"properties":{"a":{"pattern":"(a{100}){100}"}}}`, "invalid repeat count")
	refused(t, `{"patternProperties":{"(a{100}){100}":{}}}`, "invalid repeat count")
	refused(t, `{"pattern":"`+strings.Repeat("a", 5000)+`"}`, "over the limit")
	refused(t, `{"pattern":"["}`, "missing closing ]")
	many := strings.TrimSuffix(strings.Repeat(`{"type":"string"},`, 6000), ",")
	refused(t, `{"anyOf":[`+many+`]}`, "more than 5000")
	refused(t, `{"type":"object"`, "ends where")
	refused(t, `{"type":"nonsense"}`, "")
	refused(t, `{"minimum":1e9999999}`, "exponent")
	refused(t, `5`, "neither an object nor a boolean")
	refused(t, `{"properties":{"a":5}}`, "neither an object nor a boolean")
}

// TestManySubschemas: what is accepted is compiled in bounded time.
func TestManySubschemas(t *testing.T) {
	var b strings.Builder
	for i := range 2400 {
		fmt.Fprintf(&b, `,"p%d":{"type":"array","items":{"type":"string"}}`, i)
	}
	start := time.Now()
	compiled(t, `{"type":"object","properties":{`+b.String()[1:]+`}}`)
	if took := time.Since(start); took > 2*time.Minute {
		t.Errorf("took %v", took)
	}
}

// TestABI11Numbers: numbers and text that make the validator or encoding/json
// fail are errors or are repaired.
func TestABI11Numbers(t *testing.T) {
	s := compiled(t, `{"type":"object","properties":{"n":{"type":"integer","multipleOf":3},"s":{"type":"string"}}}`)
	for in, want := range map[string]string{
		`{"n":1e100000000}`:  "exponent is over",
		`{"n":1e999999999}`:  "exponent is over",
		`{"n":-1e999999999}`: "exponent is over",
		`{"n":1e-999999999}`: "exponent is over",
		`{"n":NaN}`:          "JSON value",
		`{"n":Infinity}`:     "JSON value",
		`{"n":1,"n":2}`:      "appears twice",
		`{"n":` + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000) + `}`: "deeper than",
		`{"n":4e900}`: "not multipleOf",
	} {
		if err := s.Validate(json.RawMessage(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %.200v, want %q", in, err, want)
		}
	}
	out, _, err := s.Check(json.RawMessage("{\"s\":\"a\xff\\ud800b\"}"))
	if err != nil || string(out) != `{"s":"a��b"}` {
		t.Errorf("out = %s, %v", out, err)
	}
}

// TestPatternsOfOtherEngines: look-around, which RE2 lacks, is not enforced
// rather than making the tool unusable.
func TestPatternsOfOtherEngines(t *testing.T) {
	s := compiled(t, `{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)"},"b":{"pattern":"^b$"}},
		"patternProperties":{"(?=z)":{"type":"integer"}},"additionalProperties":false}`)
	if err := s.Validate(json.RawMessage(`{"a":"x","b":"b","zz":1}`)); err != nil {
		t.Error(err)
	}
	if err := s.Validate(json.RawMessage(`{"b":"c"}`)); err == nil {
		t.Error("a pattern that RE2 has is not enforced")
	}
}

// TestM01Ref: references, recursive and into the middle of the schema, resolve.
func TestM01Ref(t *testing.T) {
	s := compiled(t, `{"properties":{"q":{"$ref":"#/$defs/Q"}},"$defs":{"Q":{"type":"object","properties":{"limit":{"type":"integer"},"sub":{"$ref":"#/$defs/Q"}}}},"required":["q"]}`)
	out, _, err := s.Check(json.RawMessage(`{"q":{"sub":{"sub":{"limit":"5"}}}}`))
	if err != nil || string(out) != `{"q":{"sub":{"sub":{"limit":5}}}}` {
		t.Errorf("out = %s, %v", out, err)
	}
	if err := s.Validate(json.RawMessage(`{"q":{"sub":{"limit":"x"}}}`)); err == nil || !strings.Contains(err.Error(), "`q.sub.limit`") {
		t.Errorf("err = %v", err)
	}
}

// TestM04RefPath: a pointer may lead anywhere.
func TestM04RefPath(t *testing.T) {
	s := compiled(t, `{"type":"object","properties":{
		"body":{"anyOf":[{"type":"null"},{"type":"object","properties":{"x":{"type":"array","items":{"type":"integer"}}}}]},
		"y":{"$ref":"#/properties/body/anyOf/1/properties/x/items"}}}`)
	out, _, err := s.Check(json.RawMessage(`{"y":"7"}`))
	if err != nil || string(out) != `{"y":7}` {
		t.Errorf("out = %s, %v", out, err)
	}
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{tool, doubling(4), `{"$ref":"#/a","a":{"type":"string"}}`, `{"items":[{}],"additionalItems":{}}`, `true`,
		`{"$anchor":"a","properties":{"x":{"$ref":"#a"}}}`, `{"$schema":"http://json-schema.org/draft-07/schema#","format":"regex"}`,
		`{"dependencies":{"a":["b"],"c":{"type":"object"}},"if":{},"then":{},"else":false}`, `{"allOf":[{"$ref":"#/definitions/x"}],"definitions":{"x":{"enum":[1,"a",null]}}}`} {
		f.Add([]byte(seed), []byte(`{"path":"a","x":{"x":1}}`))
	}
	f.Fuzz(func(t *testing.T, raw, value []byte) {
		slow := time.AfterFunc(2*time.Minute, func() { panic(fmt.Sprintf("too slow: %q %q", raw, value)) })
		defer slow.Stop()
		if out, err := Gemini(raw); err == nil && out != nil && !json.Valid(out) {
			t.Fatalf("Gemini(%q) = %q", raw, out)
		}
		if out, err := Plain(raw); err == nil && !json.Valid(out) {
			t.Fatalf("Plain(%q) = %q", raw, out)
		}
		s, err := Compile(raw)
		if err != nil {
			return
		}
		if out, _, err := s.Check(value); err == nil && !json.Valid(out) {
			t.Fatalf("Check(%q) = %q", value, out)
		}
	})
}
