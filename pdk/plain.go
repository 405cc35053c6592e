package pdk

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Arguments are mostly a flat object of texts, numbers, truths and lists of
// texts, some of them optional. A guest begins each call with cold caches, where
// encoding/json takes most of a small tool's time; such objects are read here. What is not exactly one of them goes
// to encoding/json, which alone decides what is an error.

// plainField is a field that a plain value can be written to.
type plainField struct {
	name   string
	offset uintptr
	kind   reflect.Kind // of the value, or of what it points to
	form   plainForm
}

// plainName is what a name in a tag may consist of, and be this very name.
const plainName = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

type plainForm uint8

const (
	plainValue plainForm = iota
	plainPointer
	plainTexts // a slice of texts
)

var (
	jsonReader = reflect.TypeFor[json.Unmarshaler]()
	textReader = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// plainFields lists the fields of a struct that has no others. ok is false for
// one that only encoding/json can read.
func plainFields(t reflect.Type) (fields []plainField, ok bool) {
	if pt := reflect.PointerTo(t); pt.Implements(jsonReader) || pt.Implements(textReader) {
		return nil, false
	}
	for f := range t.Fields() {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous || strings.Contains(opts, "string"):
			return nil, false
		case !f.IsExported() || name == "-" && opts == "":
			continue
		case name == "":
			name = f.Name
		case strings.Trim(name, plainName) != "": // encoding/json drops some of them
			return nil, false
		}
		kind, form, ok := plainKind(f.Type)
		if !ok {
			return nil, false
		}
		for _, other := range fields {
			if strings.EqualFold(other.name, name) {
				return nil, false
			}
		}
		fields = append(fields, plainField{name, f.Offset, kind, form})
	}
	return fields, true
}

func plainKind(t reflect.Type) (reflect.Kind, plainForm, bool) {
	form := plainValue
	switch t.Kind() {
	case reflect.Pointer:
		t, form = t.Elem(), plainPointer
	case reflect.Slice:
		if t.Elem().Kind() != reflect.String || t.Implements(jsonReader) || reflect.PointerTo(t).Implements(jsonReader) || reflect.PointerTo(t).Implements(textReader) {
			return 0, 0, false
		}
		t, form = t.Elem(), plainTexts
	}
	if pt := reflect.PointerTo(t); pt.Implements(jsonReader) || pt.Implements(textReader) || t == numberType {
		return 0, 0, false
	}
	k := t.Kind()
	return k, form, k == reflect.Bool || k == reflect.String || k >= reflect.Int && k <= reflect.Uint64 || k == reflect.Float64
}

// readPlain reads a plain object into the struct at v. Its texts share the
// memory of b, which must not change any more. Where it reports false, some
// fields may have been written.
func readPlain(b []byte, v unsafe.Pointer, fields []plainField) bool {
	s := plainScan{b: b}
	if !s.take('{') {
		return false
	}
	if s.take('}') {
		return s.end()
	}
	for {
		key, ok := s.text()
		if !ok || !s.take(':') {
			return false
		}
		if !s.field(key, v, fields) {
			return false
		}
		if !s.take(',') {
			return s.take('}') && s.end()
		}
	}
}

type plainScan struct {
	b []byte
	i int
}

func (s *plainScan) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\t' || s.b[s.i] == '\r') {
		s.i++
	}
}

// take passes over one character, and the space before it.
func (s *plainScan) take(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *plainScan) end() bool {
	s.space()
	return s.i == len(s.b)
}

// text is a string without escapes. It shares its memory with the input: the
// arguments of a call are written once.
func (s *plainScan) text() (string, bool) {
	if !s.take('"') {
		return "", false
	}
	rest := s.b[s.i:]
	n := bytes.IndexByte(rest, '"')
	if n < 0 {
		return "", false
	}
	s.i += n + 1
	t := unsafe.String(unsafe.SliceData(rest), n)
	ascii, ok := unescaped(rest[:n])
	return t, ok && (ascii || utf8.ValidString(t))
}

// unescaped reports whether a string's bytes are what it says, and whether they
// are ASCII. It looks at eight at a time: a text may have megabytes.
func unescaped(b []byte) (ascii, ok bool) {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	var seen, bad uint64
	for ; len(b) >= 8; b = b[8:] {
		w := binary.LittleEndian.Uint64(b)
		slash := w ^ '\\'*ones
		seen |= w
		bad |= (w-' '*ones)&^w | (slash-ones)&^slash
	}
	for _, c := range b {
		seen |= uint64(c)
		if c < ' ' || c == '\\' {
			bad = tops
		}
	}
	return seen&tops == 0, bad&tops == 0
}

// number is one as JSON spells it; whole says that it has digits alone.
func (s *plainScan) number() (text string, whole, ok bool) {
	s.space()
	from := s.i
	digits := func() bool {
		at := s.i
		for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
			s.i++
		}
		return s.i > at
	}
	if s.i < len(s.b) && s.b[s.i] == '-' {
		s.i++
	}
	lead := s.i
	if !digits() || s.b[lead] == '0' && s.i > lead+1 {
		return "", false, false
	}
	whole = true
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if whole = false; !digits() {
			return "", false, false
		}
	}
	if s.i < len(s.b) && (s.b[s.i] == 'e' || s.b[s.i] == 'E') {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		if whole = false; !digits() {
			return "", false, false
		}
	}
	return string(s.b[from:s.i]), whole, true
}

func (s *plainScan) word(w string) bool {
	s.space()
	if !strings.HasPrefix(string(s.b[s.i:min(len(s.b), s.i+len(w))]), w) {
		return false
	}
	s.i += len(w)
	return true
}

// field reads a value into the field of that very name.
func (s *plainScan) field(name string, v unsafe.Pointer, fields []plainField) bool {
	for _, f := range fields {
		if f.name == name {
			return s.form(unsafe.Add(v, f.offset), f)
		}
	}
	return false
}

func (s *plainScan) form(at unsafe.Pointer, f plainField) bool {
	switch f.form {
	case plainValue:
		return s.value(at, f.kind)
	case plainPointer:
		to := (*unsafe.Pointer)(at)
		if *to = nil; s.word("null") {
			return true
		}
		*to = room(f.kind)
		return s.value(*to, f.kind)
	}
	to := (*[]string)(at)
	if *to = nil; s.word("null") {
		return true
	}
	if !s.take('[') {
		return false
	}
	list := []string{}
	if !s.take(']') {
		for {
			t, ok := s.text()
			if !ok {
				return false
			}
			list = append(list, t)
			if s.take(']') {
				break
			}
			if !s.take(',') {
				return false
			}
		}
	}
	*to = list
	return true
}

// room is memory for a value of a kind.
func room(k reflect.Kind) unsafe.Pointer {
	switch k {
	case reflect.String:
		return unsafe.Pointer(new(string))
	case reflect.Bool, reflect.Int8, reflect.Uint8:
		return unsafe.Pointer(new(uint8))
	case reflect.Int16, reflect.Uint16:
		return unsafe.Pointer(new(uint16))
	case reflect.Int32, reflect.Uint32:
		return unsafe.Pointer(new(uint32))
	case reflect.Int, reflect.Uint:
		return unsafe.Pointer(new(uint))
	}
	return unsafe.Pointer(new(uint64))
}

func (s *plainScan) value(at unsafe.Pointer, k reflect.Kind) bool {
	switch k {
	case reflect.String:
		t, ok := s.text()
		if ok {
			*(*string)(at) = t
		}
		return ok
	case reflect.Bool:
		yes := s.word("true")
		if !yes && !s.word("false") {
			return false
		}
		*(*bool)(at) = yes
		return true
	}
	text, whole, ok := s.number()
	switch {
	case !ok:
		return false
	case k == reflect.Float64:
		n, err := strconv.ParseFloat(text, 64)
		*(*float64)(at) = n
		return err == nil
	case !whole:
		return false
	}
	return setWhole(at, k, text)
}

func setWhole(at unsafe.Pointer, k reflect.Kind, text string) bool {
	if k >= reflect.Uint {
		n, err := strconv.ParseUint(text, 10, uintBits(k))
		if err != nil {
			return false
		}
		switch k {
		case reflect.Uint8:
			*(*uint8)(at) = uint8(n)
		case reflect.Uint16:
			*(*uint16)(at) = uint16(n)
		case reflect.Uint32:
			*(*uint32)(at) = uint32(n)
		case reflect.Uint64:
			*(*uint64)(at) = n
		default:
			*(*uint)(at) = uint(n)
		}
		return true
	}
	n, err := strconv.ParseInt(text, 10, uintBits(k-reflect.Int+reflect.Uint))
	if err != nil {
		return false
	}
	switch k {
	case reflect.Int8:
		*(*int8)(at) = int8(n)
	case reflect.Int16:
		*(*int16)(at) = int16(n)
	case reflect.Int32:
		*(*int32)(at) = int32(n)
	case reflect.Int64:
		*(*int64)(at) = n
	default:
		*(*int)(at) = int(n)
	}
	return true
}

// uintBits is the size of an unsigned kind in bits.
func uintBits(k reflect.Kind) int {
	switch k {
	case reflect.Uint8:
		return 8
	case reflect.Uint16:
		return 16
	case reflect.Uint32:
		return 32
	case reflect.Uint64:
		return 64
	}
	return strconv.IntSize
}
