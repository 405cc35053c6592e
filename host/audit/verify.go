package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
)

// Report is what Verify found. The log is whole when Bad is nil.
type Report struct {
	Files   int
	Records uint64 // good ones, up to the first bad one
	Head    string // "seq:hash" of the last good record: note it elsewhere to recognise an old copy
	Behind  int    // good records behind the head, by a process that died; no fault
	Bad     *Bad
}

// Bad is the first record, or place, that is not as it was written.
type Bad struct {
	File string
	Line int // from 1; 0: the file as a whole
	Why  string
}

func (b *Bad) Error() string {
	if b.Line == 0 {
		return fmt.Sprintf("%s: %s", b.File, b.Why)
	}
	return fmt.Sprintf("%s:%d: %s", b.File, b.Line, b.Why)
}

// Verify reads the whole log and checks every record, the order, and the end.
// expect is a Head that was noted earlier, or empty: the log must still hold
// it. The error says that the log could not be read; what was done to it is
// in the report.
func Verify(dir string, key []byte, expect string) (Report, error) {
	v := &verifier{dir: dir, seal: newSeal(key), expect: expect}
	err := v.run()
	var bad *Bad
	if errors.As(err, &bad) {
		v.rep.Bad, err = bad, nil
	}
	if err != nil {
		return v.rep, fmt.Errorf("verifying the audit log: %w", err)
	}
	return v.rep, nil
}

type verifier struct {
	dir    string
	seal   *seal
	expect string
	rep    Report
	seq    uint64
	hash   string
	met    bool // expect
	head   head
}

func (v *verifier) run() error {
	files, err := logFiles(v.dir)
	if err != nil {
		return err
	}
	if err := v.readHead(len(files)); err != nil {
		return err
	}
	for i, name := range files {
		if name != fileName(i+1) {
			return &Bad{File: fileName(i + 1), Why: "the file is missing"}
		}
		v.rep.Files++
		if err := v.file(i+1, name); err != nil {
			return err
		}
	}
	switch {
	case v.seq < v.head.seq:
		return &Bad{File: "head", Why: fmt.Sprintf("it names %d records, the log has %d: the last ones were cut off", v.head.seq, v.seq)}
	case v.expect != "" && !v.met:
		return &Bad{File: "head", Why: fmt.Sprintf("the record %.40s… that was noted is not in the log: this is an older or another log", v.expect)}
	}
	return nil
}

func (v *verifier) readHead(files int) error {
	f, err := os.Open(filepath.Join(v.dir, "head"))
	if errors.Is(err, fs.ErrNotExist) {
		if files > 0 {
			return &Bad{File: "head", Why: "it is gone: nothing says where the log ended"}
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if v.head, err = readHead(f, v.seal); err != nil {
		return &Bad{File: "head", Why: err.Error()}
	}
	if v.head.file == 0 && files > 0 {
		return &Bad{File: "head", Why: "it is empty: nothing says where the log ended"}
	}
	return nil
}

func (v *verifier) file(n int, name string) error {
	f, err := os.Open(filepath.Join(v.dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 64<<10)
	for line := 1; ; line++ {
		text, err := readLine(in)
		if err == io.EOF && len(text) == 0 {
			return nil
		}
		if err == io.EOF && v.seq >= v.head.seq && n >= v.head.file {
			return nil // torn by a process that died, never acknowledged
		}
		if err != nil {
			return &Bad{File: name, Line: line, Why: "it is cut off"}
		}
		_, sum, err := v.seal.check(text, v.seq+1, v.hash)
		if err != nil {
			return &Bad{File: name, Line: line, Why: err.Error()}
		}
		v.seq, v.hash = v.seq+1, sum
		if v.seq == v.head.seq && sum != v.head.hash {
			return &Bad{File: name, Line: line, Why: "it is not the record that the head names"}
		}
		if v.seq > v.head.seq {
			v.rep.Behind++
		}
		v.rep.Records, v.rep.Head = v.seq, fmt.Sprintf("%d:%s", v.seq, sum)
		v.met = v.met || v.rep.Head == v.expect
	}
}

// logFiles lists the log's files, oldest first.
func logFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if ok, _ := filepath.Match("audit-[0-9]*.jsonl", e.Name()); ok {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

// Records reads the records that a filter chooses, oldest first. It does not
// verify them. A line that is no record is an error in its place; the reading
// goes on behind it.
func Records(dir string, f Filter) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		files, err := logFiles(dir)
		if err != nil {
			yield(Record{}, fmt.Errorf("reading the audit log: %w", err))
			return
		}
		for _, name := range files {
			if !recordsOf(dir, name, f, yield) {
				return
			}
		}
	}
}

func recordsOf(dir, name string, f Filter, yield func(Record, error) bool) bool {
	file, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return yield(Record{}, fmt.Errorf("reading the audit log: %w", err))
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 64<<10)
	for line := 1; ; line++ {
		text, err := readLine(in)
		if err == io.EOF {
			return true // a torn end is not a record yet
		}
		if err != nil {
			return yield(Record{}, &Bad{File: name, Line: line, Why: err.Error()})
		}
		r, err := decode(text)
		if err != nil {
			if !yield(Record{}, &Bad{File: name, Line: line, Why: "it is not a record"}) {
				return false
			}
			continue
		}
		if f.Match(r) && !yield(r, nil) {
			return false
		}
	}
}
