package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/elfhost/elfhost/host/sandbox"
)

func FuzzParseRecording(f *testing.F) {
	f.Add([]byte(`{"v":1,"elfhost":"x","plugin":"p","digest":"00","tool":"t","args":"e30=","events":[{"f":"elf:io.x","p":[1],"r":1,"w":[{"o":0,"b":"AA=="}]}],"result":{"content":[]},"fuel":1}`))
	f.Add([]byte(`{"v":2}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, b []byte) {
		rec, err := parseRecording(b)
		if (rec == nil) == (err == nil) {
			t.Fatalf("parseRecording gave %v and %v", rec, err)
		}
		if rec != nil && (rec.Digest == "" || rec.Tool == "") {
			t.Fatal("a recording without module or tool was accepted")
		}
	})
}

func TestRecordingsArePrivateAndWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	if err := keepRecording(path, &sandbox.Recording{}); err == nil {
		t.Fatal("a call that entered no module was kept as a recording")
	}
	if _, err := os.Stat(path); err == nil {
		t.Fatal("a file was left behind")
	}
	if err := keepRecording(path, &sandbox.Recording{Digest: "ab", Tool: "t", Fuel: 7}); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm()&0o077 != 0 {
		t.Fatalf("others may read the recording: %v %v", st.Mode(), err)
	}
	rec, err := readRecording(path)
	if err != nil || rec.Fuel != 7 {
		t.Fatalf("readRecording = %+v, %v", rec, err)
	}
}
