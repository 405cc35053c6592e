package pdk

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
	"unsafe"
)

type word string

type flat struct {
	Name   string   `json:"name"`
	Word   word     `json:"word,omitempty"`
	Yes    bool     `json:"yes"`
	N      int      `json:"n"`
	I8     int8     `json:"i8"`
	U16    uint16   `json:"u16"`
	I32    int32    `json:"i32"`
	U64    uint64   `json:"u64"`
	F      float64  `json:"f"`
	Maybe  *string  `json:"maybe"`
	Limit  *int     `json:"limit,omitempty"`
	Flag   *bool    `json:"flag"`
	Ratio  *float64 `json:"ratio"`
	Small  *uint8   `json:"small"`
	List   []string `json:"list"`
	Hidden string   `json:"-"`
	Plain  string
	inner  int
}

// TestPlainFields: which structs are read without encoding/json.
func TestPlainFields(t *testing.T) {
	fields, ok := plainFields(reflect.TypeFor[flat]())
	if !ok || len(fields) != 16 {
		t.Errorf("%d fields, %v", len(fields), ok)
	}
	for _, no := range []any{
		struct{ T time.Time }{}, struct{ M map[string]int }{}, struct {
			N int `json:",string"`
		}{}, struct{ flat }{}, struct{ A any }{}, struct{ N json.Number }{}, struct{ B []byte }{}, struct{ R json.RawMessage }{},
		struct {
			A string `json:"x"`
			B string `json:"X"`
		}{}, struct{ P **string }{}, struct{ F float32 }{}, struct{ L []time.Duration }{}, struct{ D *time.Time }{}, struct{ U uintptr }{},
		reflect.Zero(reflect.StructOf([]reflect.StructField{{Name: "Q", Type: reflect.TypeFor[string](), Tag: `json:"it's"`}})).Interface(), // to encoding/json, it is Q
	} {
		if _, ok := plainFields(reflect.TypeOf(no)); ok {
			t.Errorf("%T is said to be plain", no)
		}
	}
}

// FuzzPlain: what is read as plain, encoding/json reads the same.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{
		`{"name":"Ada","word":"w","yes":true,"n":-12,"i8":127,"u16":65535,"i32":-2147483648,"u64":18446744073709551615,"f":1.5e-3}`,
		`{"maybe":null,"limit":3,"flag":false,"ratio":0,"small":255,"list":["a","é",""],"Plain":"p"}`, ` { } `, `{"list":[]}`, `{"list":null}`,
		`{"name":"a","name":"b"}`, `{"NAME":"x"}`, `{"name":null}`, `{"name":"\u0041"}`, `{"n":1.0}`, `{"n":1e3}`, `{"i8":128}`, `{"u16":-1}`, `{"n":01}`,
		`{"f":1e999}`, `{"name":"a"} x`, `{"name":"a"}{}`, `{"name":"\xff"}`, `{"name":1}`, `{"limit":1,"limit":null}`, `{"list":["a",]}`, `[]`, `null`, ``, `{`,
		`{"hidden":"x"}`, `{"-":"x"}`, `{"inner":1}`, "{\"name\":\"a\tb\"}", `{"f":-0}`, `{"f":.5}`, `{"f":1.}`, `{"n":-}`, `{"yes":tru}`, `{"n":-0}`,
	} {
		f.Add([]byte(s))
	}
	fields, _ := plainFields(reflect.TypeFor[flat]())
	f.Fuzz(func(t *testing.T, b []byte) {
		var got, want flat
		if !readPlain(b, unsafe.Pointer(&got), fields) {
			return
		}
		if err := decodeArgs(b, &want); err != nil {
			t.Fatalf("%q is read, but encoding/json says: %v", b, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q is read as\n%+v\nnot\n%+v", b, got, want)
		}
	})
}

// TestPlainIsRead: the common forms do not fall back.
func TestPlainIsRead(t *testing.T) {
	fields, _ := plainFields(reflect.TypeFor[flat]())
	for _, s := range []string{
		`{"name":"Ada","word":"w","yes":true,"n":-12,"i8":127,"u16":65535,"i32":-1,"u64":18446744073709551615,"f":1.5e-3}`,
		` { "maybe" : "é" , "limit":3,"flag":false,"ratio":0,"small":255,"list":["a", "b"],"Plain":"p" } `, `{}`, `{"list":[],"maybe":null}`,
	} {
		var v flat
		if !readPlain([]byte(s), unsafe.Pointer(&v), fields) {
			t.Errorf("%s is not read", s)
		}
	}
}
