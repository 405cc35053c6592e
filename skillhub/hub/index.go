package hub

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/skillhub"
)

// The index is lines of JSON under gzip: a head, then the publishers, then one
// row a package, by name. It says of each package's newest version what a
// search shows, and leaves the digest to the package's document: digests are
// what no compression makes smaller, and neither are keys, which are there once.
type indexHead struct {
	Format     int `json:"elfhost-index"` // 1
	Publishers int `json:"publishers"`
	Rows       int `json:"rows"`
}

// indexPublisher is a publisher with one of its keys.
type indexPublisher struct {
	Name  string `json:"p,omitempty"`
	KeyID string `json:"k,omitempty"`
}

// indexRow has short keys, since it is downloaded by everybody.
type indexRow struct {
	Name        string    `json:"n"`
	Version     string    `json:"v"`
	Publisher   int       `json:"p"` // the number of its line, from 0
	Description string    `json:"d,omitempty"`
	Kind        string    `json:"t"`
	Needs       []needRow `json:"c,omitempty"`
	Tools       []string  `json:"u,omitempty"`
	Size        int64     `json:"s,omitempty"`
	Installs    int64     `json:"i,omitempty"`
}

// needRow is a need without its reason, which the install screen shows.
type needRow struct {
	Cap   abi.Capability `json:"c"`
	Scope []string       `json:"s,omitempty"`
}

// Bounds of an index.
const (
	maxRows     = 2_000_000
	maxIndexRow = 64 << 10
)

func rowOf(l skillhub.Listing, publisher int) indexRow {
	r := indexRow{
		Name: l.Name, Version: l.Version, Publisher: publisher, Description: short(l.Description, maxIndexDescription),
		Kind: string(l.Kind), Tools: l.Tools, Size: l.Size, Installs: l.Installs,
	}
	for _, n := range l.Needs {
		r.Needs = append(r.Needs, needRow{n.Cap, n.Scope})
	}
	return r
}

// maxIndexDescription is what of a description is in the index, in bytes.
const maxIndexDescription = 300

func short(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

func (r indexRow) listing(p indexPublisher) skillhub.Listing {
	l := skillhub.Listing{
		Name: r.Name, Version: r.Version, Publisher: p.Name, KeyID: p.KeyID, Description: r.Description,
		Kind: skillhub.Kind(r.Kind), Tools: r.Tools, Size: r.Size, Installs: r.Installs,
	}
	for _, n := range r.Needs {
		l.Needs = append(l.Needs, abi.Need{Cap: n.Cap, Scope: n.Scope})
	}
	return l
}

// encodeIndex writes an index over the newest versions of packages, in any order.
func encodeIndex(rows []skillhub.Listing) ([]byte, error) {
	slices.SortFunc(rows, func(a, b skillhub.Listing) int { return strings.Compare(a.Name, b.Name) })
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	enc := json.NewEncoder(z)
	enc.SetEscapeHTML(false)
	numbers := map[indexPublisher]int{}
	var publishers []indexPublisher
	for _, l := range rows {
		p := indexPublisher{l.Publisher, l.KeyID}
		if _, ok := numbers[p]; !ok {
			numbers[p] = len(publishers)
			publishers = append(publishers, p)
		}
	}
	if err := enc.Encode(indexHead{1, len(publishers), len(rows)}); err != nil {
		return nil, err
	}
	for _, p := range publishers {
		if err := enc.Encode(p); err != nil {
			return nil, err
		}
	}
	for _, l := range rows {
		if err := enc.Encode(rowOf(l, numbers[indexPublisher{l.Publisher, l.KeyID}])); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	if out.Len() > maxIndex {
		return nil, fmt.Errorf("the index is larger than %d bytes", maxIndex)
	}
	return out.Bytes(), nil
}

// decodeRows reads an index row by row. It ends with an error at the first row
// that is not as it has to be: in order of names, within bounds, as many as the
// head says. The rows have no digests.
func decodeRows(b []byte) iter.Seq2[skillhub.Listing, error] {
	return func(yield func(skillhub.Listing, error) bool) {
		if err := decodeIndex(b, func(l skillhub.Listing) bool { return yield(l, nil) }); err != nil {
			yield(skillhub.Listing{}, fmt.Errorf("the index: %w", err))
		}
	}
}

func decodeIndex(b []byte, yield func(skillhub.Listing) bool) error {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return err
	}
	text := &io.LimitedReader{R: z, N: maxIndexText}
	lines := bufio.NewScanner(text)
	lines.Buffer(make([]byte, 4096), maxIndexRow)
	next := func(into any) error {
		if !lines.Scan() {
			return cmp.Or(lines.Err(), io.ErrUnexpectedEOF)
		}
		return json.Unmarshal(lines.Bytes(), into)
	}
	var head indexHead
	if err := next(&head); err != nil {
		return fmt.Errorf("its head: %w", err)
	}
	if head.Format != 1 || head.Rows < 0 || head.Rows > maxRows || head.Publishers < 0 || head.Publishers > head.Rows {
		return fmt.Errorf("its format is %d with %d rows, which this elfhost does not read", head.Format, head.Rows)
	}
	var publishers []indexPublisher
	for range head.Publishers {
		var p indexPublisher
		if err := next(&p); err != nil {
			return fmt.Errorf("its publishers: %w", err)
		}
		publishers = append(publishers, p)
	}
	last := ""
	for n := range head.Rows {
		var r indexRow
		if err := next(&r); err != nil {
			return fmt.Errorf("row %d of %d: %w", n+1, head.Rows, err)
		}
		if r.Publisher < 0 || r.Publisher >= len(publishers) {
			return fmt.Errorf("row %d is of publisher %d of %d", n+1, r.Publisher, len(publishers))
		}
		l := r.listing(publishers[r.Publisher])
		if err := checkRow(&l); err != nil {
			return fmt.Errorf("row %d: %w", n+1, err)
		}
		if l.Name <= last {
			return fmt.Errorf("row %d: %q is out of order", n+1, l.Name)
		}
		last = l.Name
		if !yield(l) {
			return nil
		}
	}
	if lines.Scan() || lines.Err() != nil || text.N <= 0 {
		return cmp.Or(lines.Err(), fmt.Errorf("it goes on after the %d rows that its head states", head.Rows))
	}
	return nil
}

func checkRow(l *skillhub.Listing) error {
	if err := abi.CheckName(l.Name); err != nil {
		return err
	}
	if err := skillhub.CheckVersion(l.Version); err != nil {
		return err
	}
	return checkTexts(l)
}

// index reads the rows of the hub's own index, by name.
func (s *state) index() (map[string]skillhub.Listing, error) {
	b, err := s.target(indexTarget, maxIndex)
	if err != nil {
		return nil, err
	}
	rows := map[string]skillhub.Listing{}
	for l, err := range decodeRows(b) {
		if err != nil {
			return nil, err
		}
		rows[l.Name] = l
	}
	return rows, nil
}

// setIndex writes the index anew.
func (s *state) setIndex(ctx context.Context, rows map[string]skillhub.Listing) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	list := make([]skillhub.Listing, 0, len(rows))
	for _, l := range rows {
		list = append(list, l)
	}
	b, err := encodeIndex(list)
	if err != nil {
		return err
	}
	return s.setTarget(indexTarget, b)
}
