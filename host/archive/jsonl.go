package archive

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/store"
)

// exportVersion is the version of the JSON lines. It grows when a field
// changes its meaning or goes away.
const exportVersion = 1

// The lines of an export, by their type.
type (
	headLine struct {
		V    int    `json:"v"`
		Type string `json:"type"` // "session"
		Info
	}
	recordLine struct {
		Type string `json:"type"` // "record"
		agent.Record
	}
	noteLine struct {
		Type string `json:"type"` // "note"
		store.Note
	}
	draftLine struct {
		Type    string         `json:"type"` // "draft"
		Text    string         `json:"text"` // of its content
		Message *model.Message `json:"message"`
	}
)

// WriteJSONL writes one line about the session, then a line a record in their
// order, a line a note, and what was being said when it was cut off.
func (t *Transcript) WriteJSONL(w io.Writer) error {
	buf := bufio.NewWriter(w)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(headLine{exportVersion, "session", t.Info})
	for _, r := range t.Records {
		err = errors.Join(err, enc.Encode(recordLine{"record", r}))
	}
	for _, n := range t.Notes {
		err = errors.Join(err, enc.Encode(noteLine{"note", n}))
	}
	if t.Draft != nil {
		err = errors.Join(err, enc.Encode(draftLine{"draft", t.Draft.Text(), t.Draft}))
	}
	return errors.Join(err, buf.Flush())
}

// Bounds of what ReadJSONL takes.
const (
	maxLine    = 64 << 20 // bytes
	maxRecords = 1 << 20
)

// ReadJSONL reads what WriteJSONL wrote. Lines of a type that it does not know
// are passed over.
func ReadJSONL(r io.Reader) (*Transcript, error) {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), maxLine)
	t := &Transcript{}
	for n := 1; in.Scan(); n++ {
		line := bytes.TrimSpace(in.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := t.line(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if len(t.Records) > maxRecords {
			return nil, fmt.Errorf("line %d: more than %d records", n, maxRecords)
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	if t.Info.ID == "" {
		return nil, errors.New("no line tells of the session: this is no export")
	}
	return t, nil
}

func (t *Transcript) line(line []byte) error {
	var kind struct {
		V    int    `json:"v"`
		Type string `json:"type"`
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return err
	}
	switch kind.Type {
	case "session":
		if kind.V > exportVersion {
			return fmt.Errorf("version %d is newer than this program", kind.V)
		}
		return json.Unmarshal(line, &t.Info)
	case "record":
		var r agent.Record
		err := json.Unmarshal(line, &r)
		t.Records = append(t.Records, r)
		return err
	case "note":
		var n store.Note
		err := json.Unmarshal(line, &n)
		t.Notes = append(t.Notes, n)
		return err
	case "draft":
		var d draftLine
		err := json.Unmarshal(line, &d)
		if t.Draft = d.Message; t.Draft == nil && d.Text != "" { // of an older export
			c := abi.TextBlock(d.Text)
			t.Draft = &model.Message{Role: model.RoleAssistant, Blocks: []model.Block{{Content: &c}}}
		}
		return err
	}
	return nil
}
