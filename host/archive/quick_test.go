package archive

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/elfhost/elfhost/host/agent"
)

// What quick reads is what encoding/json reads, and it reads what we write.
func TestQuickReadsWhatIsWritten(t *testing.T) {
	for _, r := range append(sample().Records, eventful(t).Records...) {
		b, err := json.Marshal(r)
		must(t, err)
		var fast, slow agent.Record
		must(t, json.Unmarshal(b, &slow))
		if !new(quick).read(string(b), &fast) {
			t.Errorf("gave up on %s", b)
		} else if !reflect.DeepEqual(fast, slow) {
			t.Errorf("%s\n%+v\n%+v", b, fast, slow)
		}
	}
}

func FuzzQuick(f *testing.F) {
	for _, r := range sample().Records {
		b, _ := json.Marshal(r)
		f.Add(b)
	}
	for _, s := range []string{
		`{"seq":1,"seq":2}`, `{"seq":01}`, `{"seq":-0}`, `{"kind":"\ud800"}`, "{\"kind\":\"\xff\"}", `{"kind":null}`, `{"Kind":"x"}`, `{"step":1e3}`,
		`{"message":{"blocks":[]}}`, `{"message":{"blocks":[{"content":{"type":"image","data":"eA=="}}]}}`, `{"time":"x"}`, `{"usage":{"cost":0.5}}`, `{"seq":1} `, `{"run":{}}x`,
		`{"result":{"content":[{"type":"text","text":"a\u003cb\n"}],"structuredContent":{"a":[1,"]"]}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var fast, slow agent.Record
		if !new(quick).read(string(b), &fast) {
			return
		}
		if err := json.Unmarshal(b, &slow); err != nil {
			t.Fatalf("quick reads %q, and it is no record: %v", b, err)
		}
		if !reflect.DeepEqual(fast, slow) {
			t.Fatalf("%q\n%#v\n%#v", b, fast, slow)
		}
	})
}
