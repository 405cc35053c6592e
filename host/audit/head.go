package audit

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strconv"
	"strings"
)

// hashKey begins the last member of every line. The hash is an HMAC of all
// that stands before it, with the closing brace: the previous hash included.
const hashKey = `,"hash":"`

// seal authenticates. It is not safe for concurrent use.
type seal struct{ mac hash.Hash }

func newSeal(key []byte) *seal { return &seal{hmac.New(sha256.New, key)} }

func (s *seal) sum(b []byte) string {
	s.mac.Reset()
	s.mac.Write(b)
	var out [sha256.Size]byte
	return hex.EncodeToString(s.mac.Sum(out[:0]))
}

// check verifies a line and returns its record, which must follow prev.
func (s *seal) check(line []byte, seq uint64, prev string) (Record, string, error) {
	i := bytes.LastIndex(line, []byte(hashKey))
	if i < 0 || !bytes.HasSuffix(line, []byte(`"}`)) {
		return Record{}, "", errors.New("it is not a record")
	}
	told := string(line[i+len(hashKey) : len(line)-2])
	body := append(bytes.Clone(line[:i]), '}')
	sum := s.sum(body)
	if !hmac.Equal([]byte(told), []byte(sum)) {
		return Record{}, "", errors.New("its hash does not fit its content")
	}
	r, err := decode(line)
	switch {
	case err != nil:
		return r, "", err
	case r.Seq != seq:
		return r, "", fmt.Errorf("it has number %d where %d is due", r.Seq, seq)
	case r.Prev != prev:
		return r, "", errors.New("it does not follow the record before it")
	}
	return r, sum, nil
}

// head says where the log ends: the file, its size, the last record. It is
// one line of fixed length, written in place after each record.
type head struct {
	file int
	size int64
	seq  uint64
	hash string
}

const headLen = 256

// headMark is what a head's signature begins with, so that it is no record's.
const headMark = "head "

// signed is what is signed of a head.
func (h head) signed() []byte {
	b := append(make([]byte, 0, headLen), headMark+"v1 "...)
	b = append(strconv.AppendInt(b, int64(h.file), 10), ' ')
	b = append(strconv.AppendInt(b, h.size, 10), ' ')
	b = append(strconv.AppendUint(b, h.seq, 10), ' ')
	return append(b, h.hash...)
}

func (l *Log) setHead(h head) error {
	b := h.signed()
	sum := l.seal.sum(b)
	line := append(append(b[len(headMark):], ' '), sum...)
	for len(line) < headLen-1 {
		line = append(line, ' ')
	}
	if _, err := l.head.WriteAt(append(line, '\n'), 0); err != nil {
		return err
	}
	l.last = h
	copy(l.said[:], line)
	l.said[headLen-1] = '\n'
	return nil
}

// readHead reads and verifies a head. An empty file is the head of no log.
func readHead(f io.ReaderAt, s *seal) (head, error) {
	var buf [headLen]byte
	n, err := f.ReadAt(buf[:], 0)
	if err != nil && err != io.EOF {
		return head{}, err
	}
	return parseHead(buf[:n], s)
}

func parseHead(b []byte, s *seal) (head, error) {
	if len(b) == 0 {
		return head{}, nil
	}
	w := strings.Fields(string(b))
	if len(w) == 5 { // no record yet: the hash is empty
		w = append(w[:4], "", w[4])
	}
	if len(w) != 6 || w[0] != "v1" {
		return head{}, errors.New("the head cannot be read")
	}
	var h head
	var err1, err2, err3 error
	h.file, err1 = strconv.Atoi(w[1])
	h.size, err2 = strconv.ParseInt(w[2], 10, 64)
	h.seq, err3 = strconv.ParseUint(w[3], 10, 64)
	h.hash = w[4]
	if err := errors.Join(err1, err2, err3); err != nil {
		return head{}, fmt.Errorf("the head cannot be read: %w", err)
	}
	if !hmac.Equal([]byte(w[5]), []byte(s.sum(h.signed()))) {
		return head{}, errors.New("the head's signature does not fit it: it was changed, or the key is another")
	}
	return h, nil
}

// catchUp takes over what other processes wrote, and what a process that died
// wrote after its last head. It is called with both locks held.
func (l *Log) catchUp() error {
	n, err := l.head.ReadAt(l.now[:], 0)
	if err != nil && err != io.EOF {
		return err
	}
	clear(l.now[n:])
	if l.file != nil && l.now == l.said { // nobody else wrote
		if info, err := l.file.Stat(); err == nil && info.Size() == l.last.size {
			return nil
		}
	}
	h, err := parseHead(l.now[:n], l.seal)
	if err != nil {
		return err
	}
	if h.file == 0 {
		if _, err := os.Lstat(l.path(1)); err == nil {
			if info, err := os.Stat(l.path(1)); err != nil || info.Size() > 0 {
				return errors.New("there are records, but the head is gone: run `elfhost audit verify`")
			}
		}
		l.closeFile()
		l.last, l.said = head{}, l.now
		return nil
	}
	if l.file == nil || l.last.file != h.file {
		l.closeFile()
		if l.file, err = openFile(l.path(h.file), os.O_RDWR); err != nil {
			return err
		}
	}
	l.last, l.said = h, l.now
	return l.recover()
}

// recover reads what lies behind the head: whole records that follow are
// taken over, a torn one is cut off.
func (l *Log) recover() error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	switch {
	case info.Size() == l.last.size:
		return nil
	case info.Size() < l.last.size:
		return fmt.Errorf("%s is shorter than its head says: records were cut off", fileName(l.last.file))
	}
	in := bufio.NewReaderSize(io.NewSectionReader(l.file, l.last.size, info.Size()-l.last.size), 64<<10)
	next := l.last
	for {
		line, err := readLine(in)
		if err != nil {
			break // the torn end
		}
		_, sum, err := l.seal.check(line, next.seq+1, next.hash)
		if err != nil {
			return fmt.Errorf("%s goes on behind its head with what this program did not write: %w", fileName(next.file), err)
		}
		next.seq, next.hash, next.size = next.seq+1, sum, next.size+int64(len(line))+1
	}
	if next.size < info.Size() {
		if err := l.file.Truncate(next.size); err != nil {
			return err
		}
	}
	return l.setHead(next)
}

// readLine reads one line without its end. A line that does not end, or is
// too long, is an error.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, errors.New("a line is too long")
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			return line, err
		}
		return line[:len(line)-1], nil
	}
}
