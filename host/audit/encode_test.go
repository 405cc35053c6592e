package audit

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
)

// filled sets every field of a struct, so that none is forgotten.
func filled(v reflect.Value, text string, n int64) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString(text)
		case reflect.Int64:
			f.SetInt(n)
		case reflect.Uint64:
			f.SetUint(uint64(n))
		case reflect.Slice:
			f.Set(reflect.ValueOf([]string{text, "", text}))
		case reflect.Map:
			f.Set(reflect.ValueOf(map[string]int{text: int(n), "b": 2}))
		case reflect.Pointer, reflect.Struct: // Receipt and Time, which the test sets
		default:
			panic(v.Type().Field(i).Name + ": a kind that this test does not know")
		}
	}
}

// A record is written by hand, and says what json.Marshal would.
func FuzzEncode(f *testing.F) {
	f.Add("plain", int64(1))
	f.Add("a \"quote\" \\ <b> & \u2028 \x00\x7f \xff é", int64(-5))
	f.Add("", int64(0))
	f.Fuzz(func(t *testing.T, text string, n int64) {
		for _, r := range []Record{{}, {Receipt: &abi.Receipt{}}, {}} {
			if r.Receipt != nil {
				filled(reflect.ValueOf(r.Receipt).Elem(), text, n)
			}
			filled(reflect.ValueOf(&r).Elem(), text, n)
			r.Time = time.Unix(n%(1<<31), n%1e9).UTC()
			want, err := json.Marshal(r)
			got, err2 := appendRecord(nil, r)
			if err != nil || err2 != nil || string(got) != string(want) {
				t.Errorf("%v, %v\n%s\n%s", err, err2, got, want)
			}
		}
	})
}

// Times that no log should hold are written, or refused, as json.Marshal does.
func TestEncodeOddTimes(t *testing.T) {
	at := func(year int, offset time.Duration) time.Time {
		return time.Date(year, 1, 2, 3, 4, 5, 60070, time.FixedZone("", int(offset/time.Second)))
	}
	for _, tm := range []time.Time{
		{}, at(2026, 0), at(2026, 90*time.Minute), at(2026, -12*time.Hour), at(9999, 0), at(0, 0), time.Now(),
		at(10000, 0), at(-1, 0), at(2026, 24*time.Hour), at(2026, 30*time.Second),
	} {
		r := Record{Time: tm}
		want, err := json.Marshal(r)
		got, err2 := appendRecord(nil, r)
		if (err == nil) != (err2 == nil) || string(got) != string(want) {
			t.Errorf("%v: %v, %v\n%s\n%s", tm, err, err2, got, want)
		}
	}
}

// A head that others cut is noticed, also by who just wrote it, each time.
func TestHeadThatWasCutIsNoticed(t *testing.T) {
	l := opened(t, t.TempDir(), Options{})
	if err := l.Append(Record{Event: EventNote}); err != nil {
		t.Fatal(err)
	}
	if err := l.head.Truncate(0); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := l.Append(Record{Event: EventNote}); err == nil {
			t.Fatal("a record was added to a log without a head")
		}
	}
}
