// Csv reads tables out of text files, row by row: a large file costs no more
// memory than a small one, unless it is to be sorted.
package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/pdk"
)

const (
	defaultRows = 50
	maxRows     = 5_000
	maxSorted   = 200_000 // rows that are kept to be sorted
)

type source struct {
	Path      string `json:"path" desc:"The file, relative to the workspace."`
	Delimiter string `json:"delimiter,omitempty" desc:"The character between fields; found out when left out."`
	NoHeader  bool   `json:"noHeader,omitempty" desc:"The first line is data: columns are called 1, 2, 3…"`
}

type queryArgs struct {
	source
	Columns    []string    `json:"columns,omitempty" desc:"The columns to show, in this order; all when left out."`
	Where      []condition `json:"where,omitempty" desc:"Show rows for which all of these hold."`
	SortBy     string      `json:"sortBy,omitempty" desc:"Sort by this column, numbers as numbers."`
	Descending bool        `json:"descending,omitempty" desc:"Largest first."`
	Limit      int         `json:"limit,omitempty" desc:"How many rows to show at the most." min:"1" max:"5000" default:"50"`
	Offset     int         `json:"offset,omitempty" desc:"How many rows to pass over first." min:"0"`
}

func init() {
	pdk.Tool(pdk.Spec{
		Name: "csv_query", ReadOnly: true,
		Description: "Shows rows of a CSV or TSV file as a table: chosen columns, filtered, sorted, page by page. Call csv_describe first to learn the columns.",
	}, query)
	pdk.Tool(pdk.Spec{
		Name: "csv_describe", ReadOnly: true,
		Description: "Describes a CSV or TSV file: delimiter, number of rows, and for each column its kind, empty and distinct values, least and greatest, sum and mean of numbers.",
	}, describe)
}

func main() { pdk.Main() }

func query(ctx context.Context, in queryArgs) (string, error) {
	t, err := open(ctx, in.source)
	if err != nil {
		return "", err
	}
	defer t.close()
	shown, err := t.columns(in.Columns)
	if err != nil {
		return "", err
	}
	keep, err := filter(t, in.Where)
	if err != nil {
		return "", err
	}
	limit := min(in.Limit, maxRows)
	if limit < 1 {
		limit = defaultRows
	}
	rows, total, err := collect(t, in, keep, limit)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	names := make([]string, len(shown))
	for i, c := range shown {
		names[i] = t.head[c]
	}
	writeRow(&b, names)
	b.WriteString(strings.Repeat("|---", len(names)) + "|\n")
	for _, r := range rows {
		cells := make([]string, len(shown))
		for i, c := range shown {
			cells[i] = r[c]
		}
		writeRow(&b, cells)
	}
	fmt.Fprintf(&b, "\nRows %d to %d of %d that match.", min(in.Offset+1, total), in.Offset+len(rows), total)
	if in.Offset+len(rows) < total {
		fmt.Fprintf(&b, " The next: offset %d.", in.Offset+len(rows))
	}
	b.WriteString("\n" + t.notes())
	return b.String(), nil
}

// collect reads all rows, so that their number can be told, and keeps one page.
func collect(t *table, in queryArgs, keep func([]string) bool, limit int) (page [][]string, total int, err error) {
	by := -1
	if in.SortBy != "" {
		c, err := t.columns([]string{in.SortBy})
		if err != nil {
			return nil, 0, err
		}
		by = c[0]
	}
	for {
		row, err := t.next()
		if err != nil {
			return nil, 0, err
		}
		if row == nil {
			break
		}
		if !keep(row) {
			continue
		}
		total++
		switch {
		case by >= 0 && total > maxSorted:
			return nil, 0, pdk.Failf("More than %d rows match; that many cannot be sorted here. Filter with where.", maxSorted)
		case by >= 0 || total > in.Offset && len(page) < limit:
			page = append(page, slices.Clone(row))
		}
	}
	if by < 0 {
		return page, total, nil
	}
	slices.SortStableFunc(page, func(a, b []string) int {
		n := compare(a[by], b[by])
		if in.Descending {
			n = -n
		}
		return n
	})
	from := min(in.Offset, len(page))
	return page[from:min(from+limit, len(page))], total, nil
}

// compare puts numbers before text, and numbers in the order of their values.
func compare(a, b string) int {
	x, okA := number(a)
	y, okB := number(b)
	switch {
	case okA && okB:
		return cmp.Compare(x, y)
	case okA:
		return -1
	case okB:
		return 1
	}
	return strings.Compare(a, b)
}

var escape = strings.NewReplacer("|", `\|`, "\r\n", " ⏎ ", "\n", " ⏎ ", "\r", " ⏎ ")

func writeRow(b *strings.Builder, cells []string) {
	for _, c := range cells {
		b.WriteString("| " + escape.Replace(c) + " ")
	}
	b.WriteString("|\n")
}
