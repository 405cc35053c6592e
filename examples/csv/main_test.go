package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/pdk/pdktest"
)

func TestCSV(t *testing.T) {
	h := pdktest.New(t)
	var big strings.Builder
	big.WriteString("n\n")
	for i := range maxSorted + 1 {
		fmt.Fprintln(&big, i)
	}
	for name, text := range map[string]string{
		"a.csv":      "\xef\xbb\xbfName,Age,City\nAda,36,London\nBob,9,\"New York, NY\"\nZoë,,\"a \"\"b\"\"\nc\"\n",
		"semi.csv":   "a;b\n1,5;2\n3,5;4\n",
		"tabs.tsv":   "a\tb\n1\t2\n",
		"ragged.csv": "a,b\n1,2\n3\n4,5,6\n",
		"lazy.csv":   "a,b\n5\" disk,x\n",
		"empty.csv":  "",
		"bin":        "a\x00b",
		"big.csv":    big.String(),
	} {
		if err := os.WriteFile(h.Path("/ws/"+name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ tool, args, want string }{
		{"csv_query", `{"path":"a.csv"}`, "| Name | Age | City |\n|---|---|---|\n| Ada | 36 | London |\n| Bob | 9 | New York, NY |\n| Zoë |  | a \"b\" ⏎ c |\n\nRows 1 to 3 of 3 that match.\n"},
		{"csv_query", `{"path":"/ws/a.csv","columns":["city","Name"],"limit":1}`, "| City | Name |\n|---|---|\n| London | Ada |\n\nRows 1 to 1 of 3 that match. The next: offset 1."},
		{"csv_query", `{"path":"a.csv","columns":["Name"],"sortBy":"Age"}`, "| Bob |\n| Ada |\n| Zoë |"}, // as numbers, text last
		{"csv_query", `{"path":"a.csv","columns":["Name"],"sortBy":"Age","descending":true,"offset":2}`, "| Bob |\n\nRows 3 to 3 of 3"},
		{"csv_query", `{"path":"a.csv","columns":["Name"],"where":[{"column":"Age","op":"lt","value":"10"}]}`, "| Bob |\n\nRows 1 to 1 of 1"},
		{"csv_query", `{"path":"a.csv","columns":["Name"],"where":[{"column":"Age","op":"empty"}]}`, "| Zoë |\n\nRows 1 to 1 of 1"},
		{"csv_query", `{"path":"a.csv","columns":["Name"],"where":[{"column":"City","op":"contains","value":"new"},{"column":"Name","op":"matches","value":"^B"}]}`, "| Bob |"},
		{"csv_query", `{"path":"a.csv","where":[{"column":"Age","op":"gt","value":"99"}]}`, "of 0 that match"},
		{"csv_query", `{"path":"a.csv","columns":["Nope"]}`, `There is no column "Nope". The columns are: Name, Age, City.`},
		{"csv_query", `{"path":"a.csv","where":[{"column":"Name","op":"matches","value":"("}]}`, "not a regular expression"},
		{"csv_query", `{"path":"semi.csv"}`, "| a | b |\n|---|---|\n| 1,5 | 2 |"},
		{"csv_query", `{"path":"tabs.tsv","noHeader":true}`, "| 1 | 2 |\n|---|---|\n| a | b |\n| 1 | 2 |"},
		{"csv_query", `{"path":"tabs.tsv","delimiter":"\\t"}`, "| a | b |"},
		{"csv_query", `{"path":"ragged.csv"}`, "Note: 2 rows have more or fewer fields than the head's 2, the first of them in line 3"},
		{"csv_query", `{"path":"lazy.csv"}`, "| 5\" disk | x |"},
		{"csv_query", `{"path":"big.csv","limit":1,"offset":200000}`, "| 200000 |"},
		{"csv_query", `{"path":"big.csv","sortBy":"n"}`, "cannot be sorted here"},
		{"csv_query", `{"path":"empty.csv"}`, "is empty"},
		{"csv_query", `{"path":"bin"}`, "not a text file"},
		{"csv_query", `{"path":"none.csv"}`, `There is no file "none.csv" in the workspace.`},
		{"csv_query", `{"path":"a.csv","delimiter":"ab"}`, "one character"},
		{"csv_describe", `{"path":"a.csv"}`, "3 rows, 3 columns, delimiter ','.\n"},
		{"csv_describe", `{"path":"a.csv"}`, "| Age | number | 1 | 2 | 9 | 36 | 45 | 22.5 |"},
		{"csv_describe", `{"path":"a.csv"}`, "| Name | text | 0 | 3 | Ada | Zoë |  |  |"},
		{"csv_describe", `{"path":"big.csv"}`, "| n | number | 0 | over 1000 | 0 | 200000 |"},
	} {
		if got := h.Call(c.tool, c.args).Text(); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %q, want %q", c.tool, c.args, got, c.want)
		}
	}
}

// Whatever a file holds, it is read to its end or refused in a sentence.
func FuzzTable(f *testing.F) {
	f.Add("a,b\n1,2\n", "")
	f.Add("\"", ";")
	f.Fuzz(func(t *testing.T, text, comma string) {
		h := pdktest.New(t)
		if err := os.WriteFile(h.Path("/ws/x"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		tab, err := open(h.Context(), source{Path: "x", Delimiter: comma})
		if err != nil {
			return
		}
		defer tab.close()
		for row := []string{}; row != nil; {
			if row, err = tab.next(); err != nil {
				return
			}
			if row != nil && len(row) != len(tab.head) {
				t.Fatalf("a row of %d cells under a head of %d", len(row), len(tab.head))
			}
		}
	})
}

// TestCases runs testdata/cases natively.
func TestCases(t *testing.T) { pdktest.Cases(t) }
