package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/elfhost/elfhost/pdk"
)

const (
	maxColumns = 4096
	sniffed    = 64 << 10 // bytes that the delimiter is found out from
)

// table reads a file row by row. Every row has as many cells as the head.
type table struct {
	file   *os.File
	csv    *csv.Reader
	comma  rune
	head   []string
	first  []string // a first line that is data
	ragged int      // rows with more or fewer fields
	where  int      // the first line of them
	rows   int
}

func open(ctx context.Context, in source) (*table, error) {
	f, err := os.Open(pdk.Path(ctx, in.Path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, pdk.Failf("There is no file %q in the workspace.", in.Path)
	case errors.Is(err, fs.ErrPermission):
		return nil, pdk.Failf("The file %q may not be read.", in.Path)
	case err != nil:
		return nil, err
	}
	t := &table{file: f}
	if err := t.start(in); err != nil {
		f.Close()
		return nil, err
	}
	return t, nil
}

func (t *table) start(in source) error {
	if info, err := t.file.Stat(); err != nil || !info.Mode().IsRegular() {
		return pdk.Failf("%q is not a file.", in.Path)
	}
	r := bufio.NewReaderSize(t.file, sniffed)
	sample, err := r.Peek(sniffed)
	if err != nil && err != io.EOF {
		return err
	}
	if bytes.HasPrefix(sample, []byte("\xef\xbb\xbf")) {
		if _, err := r.Discard(3); err != nil {
			return err
		}
		sample = sample[3:]
	}
	if bytes.IndexByte(sample, 0) >= 0 {
		return pdk.Failf("%q is not a text file in UTF-8.", in.Path)
	}
	if t.comma, err = delimiter(in.Delimiter, sample); err != nil {
		return err
	}
	t.csv = csv.NewReader(r)
	t.csv.Comma, t.csv.FieldsPerRecord, t.csv.LazyQuotes, t.csv.ReuseRecord = t.comma, -1, true, true
	head, err := t.csv.Read()
	switch {
	case err == io.EOF:
		return pdk.Failf("%q is empty.", in.Path)
	case err != nil:
		return explain(err)
	case len(head) > maxColumns:
		return pdk.Failf("%q has %d columns; %d are read at the most.", in.Path, len(head), maxColumns)
	}
	t.head = slices.Clone(head)
	if in.NoHeader {
		t.first = slices.Clone(head)
		for i := range t.head {
			t.head[i] = strconv.Itoa(i + 1)
		}
	}
	return nil
}

// delimiter is the one that was asked for, or the one that gives the first
// lines the most fields, the same number in each.
func delimiter(asked string, sample []byte) (rune, error) {
	if asked == `\t` {
		asked = "\t"
	}
	if asked != "" {
		r, n := utf8.DecodeRuneInString(asked)
		if n != len(asked) || strings.ContainsRune("\"\r\n\uFFFD", r) {
			return 0, pdk.Failf("delimiter is one character, and no quote or line end.")
		}
		return r, nil
	}
	best, most := ',', 1
	for _, c := range []rune{',', ';', '\t', '|'} {
		r := csv.NewReader(bytes.NewReader(sample))
		r.Comma, r.LazyQuotes, r.FieldsPerRecord = c, true, -1
		fields := 0
		for range 5 {
			row, err := r.Read()
			if err != nil {
				break
			}
			if fields != 0 && len(row) != fields {
				fields = 0
				break
			}
			fields = len(row)
		}
		if fields > most {
			best, most = c, fields
		}
	}
	return best, nil
}

// next is the next row, valid until the one after it; nil at the end.
func (t *table) next() ([]string, error) {
	row := t.first
	if t.first = nil; row == nil {
		var err error
		if row, err = t.csv.Read(); err == io.EOF {
			return nil, nil
		} else if err != nil {
			return nil, explain(err)
		}
	}
	t.rows++
	if len(row) == len(t.head) {
		return row, nil
	}
	if t.ragged++; t.where == 0 {
		t.where, _ = t.csv.FieldPos(0)
	}
	fixed := make([]string, len(t.head))
	copy(fixed, row)
	return fixed, nil
}

// notes says what a reader of the rows must know.
func (t *table) notes() string {
	if t.ragged == 0 {
		return ""
	}
	return fmt.Sprintf("Note: %d rows have more or fewer fields than the head's %d, the first of them in line %d; what is missing is shown empty, what is over is left out.\n", t.ragged, len(t.head), t.where)
}

// columns finds columns by name, exactly or but for case.
func (t *table) columns(names []string) ([]int, error) {
	if len(names) == 0 {
		all := make([]int, len(t.head))
		for i := range all {
			all[i] = i
		}
		return all, nil
	}
	var out []int
	for _, n := range names {
		i := slices.Index(t.head, n)
		if i < 0 {
			i = slices.IndexFunc(t.head, func(h string) bool { return strings.EqualFold(strings.TrimSpace(h), strings.TrimSpace(n)) })
		}
		if i < 0 {
			return nil, pdk.Failf("There is no column %q. The columns are: %s.", n, strings.Join(t.head[:min(len(t.head), 50)], ", "))
		}
		out = append(out, i)
	}
	return out, nil
}

func (t *table) close() { t.file.Close() }

func explain(err error) error {
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		return pdk.Failf("Line %d cannot be read: %v.", bad.Line, bad.Err)
	}
	return err
}

// number reads a cell as a number. Infinities and NaN are text.
func number(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	if s == "" || strings.ContainsAny(s, "xXpP_iInN") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}
