package schema

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func compiled(t testing.TB, raw string) *Schema {
	t.Helper()
	s, err := Compile(json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const tool = `{"type":"object","required":["path"],"properties":{
	"path":{"type":"string"}, "limit":{"type":"integer"}, "ratio":{"type":"number"}, "force":{"type":"boolean"},
	"tags":{"type":"array","items":{"type":"string"}}, "ids":{"type":"array","items":{"type":"integer"}},
	"opts":{"type":"object","properties":{"deep":{"type":"integer"}}},
	"country":{"type":"string"}, "note":{"type":["string","null"]},
	"either":{"anyOf":[{"type":"string"},{"type":"integer"}]},
	"maybe":{"anyOf":[{"type":"integer"},{"type":"null"}]},
	"env":{"type":"object","additionalProperties":{"type":"string"}},
	"entries":{"type":"array","items":{"type":"object","required":["content"],"properties":{"content":{"type":"string"},"n":{"type":"integer"}}}}
}}`

func TestCoerce(t *testing.T) {
	s := compiled(t, tool)
	for _, c := range []struct{ name, in, want, note string }{
		{"nothing to do keeps the text", `{ "path" : "a",  "limit":3 }`, `{ "path" : "a",  "limit":3 }`, ""},
		{"string to integer", `{"path":"a","limit":"3"}`, `{"limit":3,"path":"a"}`, "`limit` was the string \"3\" and was read as the number 3"},
		{"exponent in a string", `{"path":"a","limit":"1e9"}`, `{"limit":1000000000,"path":"a"}`, "1000000000"},
		{"signed, spaced", `{"path":"a","limit":" -7 "}`, `{"limit":-7,"path":"a"}`, "-7"},
		{"no integer stays", `{"path":"a","limit":"3.5"}`, `{"path":"a","limit":"3.5"}`, ""},
		{"words stay", `{"path":"a","limit":"three"}`, `{"path":"a","limit":"three"}`, ""},
		{"an integer written as a fraction", `{"path":"a","limit":3.0}`, `{"limit":3,"path":"a"}`, ""},
		{"more digits than a float holds", `{"path":"a","limit":"9007199254740993"}`, `{"limit":9007199254740993,"path":"a"}`, "9007199254740993"},
		{"exact fraction", `{"path":"a","ratio":"0.1000000000000000055511151231257827"}`, `{"path":"a","ratio":0.1000000000000000055511151231257827}`, ""},
		{"true in a string", `{"path":"a","force":"True"}`, `{"force":true,"path":"a"}`, "the boolean true"},
		{"yes is not a boolean", `{"path":"a","force":"yes"}`, `{"path":"a","force":"yes"}`, ""},
		{"scalar to array", `{"path":"a","tags":"x"}`, `{"path":"a","tags":["x"]}`, "array of one element"},
		{"scalar to array, converted", `{"path":"a","ids":"7"}`, `{"ids":[7],"path":"a"}`, "number 7"},
		{"a number where text is listed stays", `{"path":"a","tags":5}`, `{"path":"a","tags":5}`, ""},
		{"object to array of objects", `{"path":"a","entries":{"content":"c","n":"2"}}`, `{"entries":[{"content":"c","n":2}],"path":"a"}`, "entries[0].n"},
		{"inside an object in a string", `{"path":"a","opts":"{\"deep\":\"4\"}"}`, `{"opts":{"deep":4},"path":"a"}`, "`opts.deep`"},
		{"text is left where text may stand", `{"path":"[1]","either":"12"}`, `{"path":"[1]","either":"12"}`, ""},
		{"html is not escaped", `{"path":"<a&b>","limit":"1"}`, `{"limit":1,"path":"<a&b>"}`, ""},
		{"missing arguments", ``, `{}`, ""},
		{"null arguments", `null`, `{}`, ""},
		{"empty string for arguments", `""`, `{}`, ""},
		{"all of it in a string", `"{\"path\":\"a\"}"`, `{"path":"a"}`, "the arguments"},
		{"null in anyOf stays", `{"path":"a","maybe":null}`, `{"path":"a","maybe":null}`, ""},
		{"a number in anyOf with null", `{"path":"a","maybe":"4"}`, `{"maybe":4,"path":"a"}`, "4"},
		{"free keys may differ by case", `{"path":"a","env":{"http_proxy":"1","HTTP_PROXY":"2"}}`, `{"path":"a","env":{"http_proxy":"1","HTTP_PROXY":"2"}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, notes, err := s.Coerce(json.RawMessage(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if string(out) != c.want {
				t.Errorf("out = %s\nwant  %s", out, c.want)
			}
			if told := strings.Join(notes, "; "); !strings.Contains(told, c.note) || c.note == "" && c.in == c.want && told != "" {
				t.Errorf("notes = %q, want %q in them", told, c.note)
			}
		})
	}
}

// TestC01CoerceArray: JSON in a string becomes what the schema wants, and only there.
func TestC01CoerceArray(t *testing.T) {
	s := compiled(t, tool)
	out, notes, err := s.Check(json.RawMessage(`{"path":"[\"a\",\"b\"]","tags":"[\"a\",\"b\"]","opts":"{\"a\":1}"}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"opts":{"a":1},"path":"[\"a\",\"b\"]","tags":["a","b"]}`; string(out) != want {
		t.Errorf("out = %s, want %s", out, want)
	}
	if len(notes) != 2 {
		t.Errorf("notes = %q, want two", notes)
	}
}

// TestC03CoerceNull: null is absent for an optional parameter, stays for a
// nullable one, and is an error for a required one.
func TestC03CoerceNull(t *testing.T) {
	s := compiled(t, tool)
	out, notes, err := s.Check(json.RawMessage(`{"path":"x","country":null,"note":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != `{"note":null,"path":"x"}` || len(notes) != 1 {
		t.Errorf("out = %s, notes = %q", out, notes)
	}
	if _, _, err := s.Check(json.RawMessage(`{"path":null}`)); err == nil {
		t.Error("null passes for a required string")
	}
}

// TestC04CoerceNullText: null never becomes ["null"] or "null".
func TestC04CoerceNullText(t *testing.T) {
	s := compiled(t, `{"type":"object","required":["tags","name"],"properties":{"tags":{"type":"array","items":{"type":"string"}},"name":{"type":"string"}}}`)
	out, _, err := s.Coerce(json.RawMessage(`{"tags":null,"name":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != `{"tags":null,"name":null}` {
		t.Errorf("out = %s", out)
	}
	if err := s.Validate(out); err == nil {
		t.Error("null passes for a required list")
	}
}

// TestC06ArgsMalformed: the error says where the text broke off.
func TestC06ArgsMalformed(t *testing.T) {
	s := compiled(t, tool)
	for in, want := range map[string]string{
		`{"path": "a`:             "byte 11",
		`{"path": "a"} {"x":1}`:   "byte 14",
		`{"path": 'a'}`:           "byte 9",
		`{"path": "a",}`:          "byte 13",
		"{\"path\": \"a\nb\"}":    "control character",
		`{"path": "\q"}`:          "escape",
		`{"path": 01}`:            "begins with 0",
		`{"path": nul}`:           "byte 9",
		`{"a":` + "\xff" + `}`:    "byte 5",
		`{"a":1e99999999999}`:     "exponent",
		`{"a":1` + zeros(2000):    "digits",
		strings.Repeat("[", 5000): "deeper than 128",
	} {
		out, _, err := s.Check(json.RawMessage(in))
		var bad *Syntax
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) || out != nil {
			t.Errorf("%.40q: %v, want %q", in, err, want)
		}
	}
}

func zeros(n int) string { return strings.Repeat("0", n) }

// TestC07ArgTypes: wrong types are errors in words, nothing more.
func TestC07ArgTypes(t *testing.T) {
	s := compiled(t, `{"type":"object","properties":{"file_path":{"type":"string"},"command":{"type":"string"}}}`)
	for _, in := range []string{`{"file_path":5}`, `{"file_path":{}}`, `{"command":["ls"]}`, `{"file_path":{"toString":1}}`, `[]`, `"x"`, `7`} {
		_, _, err := s.Check(json.RawMessage(in))
		var bad *Invalid
		if !errors.As(err, &bad) || len(bad.Problems) == 0 {
			t.Errorf("%s: %v", in, err)
		}
	}
	_, _, err := s.Check(json.RawMessage(`{"file_path":5}`))
	if err == nil || err.Error() != "`file_path`: expected string, but got number." {
		t.Errorf("err = %v", err)
	}
}

// TestFB07Keys: equal keys, and keys that encoding/json would take for each
// other, are refused.
func TestFB07Keys(t *testing.T) {
	s := compiled(t, tool)
	for in, want := range map[string]string{
		`{"path":"safe","path":"../c"}`:                          `the key "path" appears twice`,
		`{"path":"safe","\u0070ath":"../c"}`:                     `the key "path" appears twice`,
		`{"path":"safe","PATH":"../c"}`:                          "differ by case alone",
		`{"PATH":"../c"}`:                                        "spelled `path`",
		`{"path":"a","tag` + "\u017f" + `":["x"]}`:               "spelled `tags`",
		`{"path":"a","opts":{"Deep":1}}`:                         "spelled `deep`",
		`{"path":"a","opts":"{\"Deep\":1}"}`:                     "spelled `deep`",
		`{"path":"a","opts":{"deep":1,"deep":2}}`:                "appears twice",
		`{"path":"a","entries":[{"content":"a","Content":"b"}]}`: "differ by case alone",
		`{"path":"a","x":1,"X":2}`:                               "differ by case alone",
		`{"path":["a"],"limit":"1e9"}`:                           "expected string",
	} {
		if _, _, err := s.Check(json.RawMessage(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

func TestMissingAreAllTold(t *testing.T) {
	s := compiled(t, `{"type":"object","required":["a","b"],"allOf":[{"required":["c"]}],"properties":{"a":{},"b":{},"c":{}}}`)
	_, _, err := s.Check(json.RawMessage(`{"b":1}`))
	if err == nil || err.Error() != "The required parameters `a`, `c` are missing." {
		t.Errorf("err = %v", err)
	}
}

func TestErrorsAreReadable(t *testing.T) {
	s := compiled(t, `{"type":"object","additionalProperties":false,"properties":{
		"mode":{"enum":["a","b"]}, "list":{"type":"array","items":{"type":"object","properties":{"a/b":{"type":"integer"}}}},
		"pick":{"oneOf":[{"type":"integer","minimum":3},{"type":"array"}]}}}`)
	for in, want := range map[string]string{
		`{"mode":"c"}`:              "`mode`: value must be one of \"a\", \"b\".",
		`{"list":[{"a/b":true}]}`:   "`list[0].a/b`: expected integer, but got boolean.",
		`{"extra":1}`:               "There is no parameter `extra`; the parameters are `list`, `mode`, `pick`.",
		`{"pick":{}}`:               "`pick` fits none of the allowed forms: (1) `pick`: expected integer, but got object; (2) `pick`: expected array, but got object.",
		`{"mode":"c","list":[5,6]}`: "`list[0]`: expected object, but got number.\n`list[1]`: expected object, but got number.\n`mode`: value must be one of \"a\", \"b\".",
	} {
		if _, _, err := s.Check(json.RawMessage(in)); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %v", in, err, want)
		}
	}
}

func TestCheckIsSafeForConcurrentUse(t *testing.T) {
	s := compiled(t, tool)
	done := make(chan error)
	for range 8 {
		go func() {
			for range 200 {
				if _, _, err := s.Check(json.RawMessage(`{"path":"a","limit":"3","tags":["x"]}`)); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzCheck(f *testing.F) {
	s := compiled(f, tool)
	for _, seed := range []string{`{"path":"a","limit":"3"}`, `{"tags":"[1]"}`, `"{}"`, `{"entries":{"n":"1e3"}}`, `{"a":"\ud800"}`, `{"path":` + "\"\xff\"}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out, _, err := s.Check(in)
		if err != nil {
			return
		}
		if !json.Valid(out) {
			t.Fatalf("%q became %q, which is not JSON", in, out)
		}
		again, notes, err := s.Check(out)
		if err != nil || len(notes) > 0 || string(again) != string(out) {
			t.Fatalf("not stable: %q, then %q, %q, %v", out, again, notes, err)
		}
	})
}
