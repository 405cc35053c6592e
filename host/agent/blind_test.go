package agent

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/model"
)

// A model that takes no images is told that there is one, and the session
// keeps it for one that does.
func TestAModelThatTakesNoImages(t *testing.T) {
	picture := abi.Content{Type: abi.TypeImage, MIMEType: "image/png", Data: []byte("png")}
	look := tool{spec: spec("Look", true), call: func(context.Context, host.Call) (abi.Result, error) {
		return abi.Result{Content: []abi.Content{abi.TextBlock("a.png"), picture}}, nil
	}}
	for _, blind := range []bool{false, true} {
		m := &script{turns: []turn{does(model.Call{ID: "1", Name: "Look"}), says("done")}}
		l := newLoop(m, look)
		l.Info.TextOnly = blind
		s := New("s", nil)
		if _, err := drain(t, l.Run(t.Context(), s, abi.TextBlock("look"), picture)); err != nil {
			t.Fatal(err)
		}
		count := func(messages []model.Message) int {
			b, err := json.Marshal(messages)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Count(string(b), `"type":"image"`)
		}
		want := 2
		if blind {
			want = 0
		}
		if got := count(m.requests[1].Messages); got != want || count(s.Messages()) != 2 {
			t.Errorf("blind %v: it is shown %d images, the session holds %d", blind, got, count(s.Messages()))
		}
	}
}
