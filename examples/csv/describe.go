package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// maxDistinct is how many different values of a column are counted.
const maxDistinct = 1000

// column gathers what is told of one.
type column struct {
	name             string
	empty            int
	numbers, texts   int
	sum              float64
	least, most      float64
	first, last      string // of texts, in their order
	seen             map[string]struct{}
	moreThanDistinct bool
}

func describe(ctx context.Context, in source) (string, error) {
	t, err := open(ctx, in)
	if err != nil {
		return "", err
	}
	defer t.close()
	cols := make([]column, len(t.head))
	for i, h := range t.head {
		cols[i] = column{name: h, seen: map[string]struct{}{}}
	}
	for {
		row, err := t.next()
		if err != nil {
			return "", err
		}
		if row == nil {
			break
		}
		for i := range cols {
			cols[i].add(row[i])
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d rows, %d columns, delimiter %q.\n\n| column | kind | empty | distinct | least | greatest | sum | mean |\n|---|---|---|---|---|---|---|---|\n", t.rows, len(t.head), t.comma)
	for i := range cols {
		writeRow(&b, cols[i].row())
	}
	b.WriteString("\n" + t.notes())
	return b.String(), nil
}

func (c *column) add(cell string) {
	if strings.TrimSpace(cell) == "" {
		c.empty++
		return
	}
	if _, known := c.seen[cell]; !known {
		if len(c.seen) < maxDistinct {
			c.seen[strings.Clone(cell)] = struct{}{}
		} else {
			c.moreThanDistinct = true
		}
	}
	if n, ok := number(cell); ok {
		if c.numbers == 0 || n < c.least {
			c.least = n
		}
		if c.numbers == 0 || n > c.most {
			c.most = n
		}
		c.numbers++
		c.sum += n
		return
	}
	if c.texts == 0 || cell < c.first {
		c.first = strings.Clone(cell)
	}
	if c.texts == 0 || cell > c.last {
		c.last = strings.Clone(cell)
	}
	c.texts++
}

func (c *column) row() []string {
	distinct := strconv.Itoa(len(c.seen))
	if c.moreThanDistinct {
		distinct = "over " + distinct
	}
	out := []string{c.name, "text", strconv.Itoa(c.empty), distinct, short(c.first), short(c.last), "", ""}
	switch {
	case c.numbers == 0 && c.texts == 0:
		out[1] = "empty"
	case c.texts == 0:
		out[1] = "number"
		out[4], out[5], out[6], out[7] = figure(c.least), figure(c.most), figure(c.sum), figure(c.sum/float64(c.numbers))
	case c.numbers > 0:
		out[1] = fmt.Sprintf("text, and %d numbers", c.numbers)
	}
	return out
}

func figure(f float64) string { return strconv.FormatFloat(f, 'g', 10, 64) }

func short(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
