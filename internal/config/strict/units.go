package strict

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Duration is written with a unit: "10s", "2m".
type Duration struct {
	time.Duration
	err error
}

// UnmarshalText reads a duration that is not negative. What is wrong is kept
// for unitErrors: the TOML library would report a bare number without a line.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil || v < 0 {
		d.err = fmt.Errorf("%q is not a duration such as \"10s\"", b)
		return nil
	}
	d.Duration = v
	return nil
}

// Size is a number of bytes, written with a unit: "64MiB".
type Size struct {
	Bytes int64
	err   error
}

var sizeUnits = []struct {
	name string
	n    int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// UnmarshalText reads a whole number of B, KiB, MiB or GiB.
func (s *Size) UnmarshalText(b []byte) error {
	for _, u := range sizeUnits {
		if num, ok := strings.CutSuffix(string(b), u.name); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(num), 10, 64)
			if err != nil || n < 0 || n > math.MaxInt64/u.n {
				break
			}
			s.Bytes = n * u.n
			return nil
		}
	}
	s.err = fmt.Errorf("%q is not a size such as \"64MiB\"", b)
	return nil
}

// unitErrors finds the first Size or Duration below v that was written wrongly,
// or another type that kept such an error and tells it by Misread.
func unitErrors(v reflect.Value, key string) (string, error) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return unitErrors(v.Elem(), key)
		}
	case reflect.Struct:
		switch x := v.Interface().(type) {
		case Duration:
			return key, x.err
		case Size:
			return key, x.err
		case interface{ Misread() error }:
			if err := x.Misread(); err != nil {
				return key, err
			}
		}
		for i := range v.NumField() {
			name := v.Type().Field(i).Tag.Get("toml")
			if name == "" || name == "-" {
				continue
			}
			if key != "" {
				name = key + "." + name
			}
			if k, err := unitErrors(v.Field(i), name); err != nil {
				return k, err
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if k, err := unitErrors(v.Index(i), fmt.Sprintf("%s[%d]", key, i)); err != nil {
				return k, err
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			if k, err := unitErrors(v.MapIndex(k), key+"."+k.String()); err != nil {
				return k, err
			}
		}
	}
	return "", nil
}

func (s Size) String() string {
	for _, u := range sizeUnits {
		if s.Bytes >= u.n && s.Bytes%u.n == 0 {
			return strconv.FormatInt(s.Bytes/u.n, 10) + u.name
		}
	}
	return "0B"
}

// Texts reads a string or an array of strings.
func Texts(v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{v}, nil
	case []any:
		out := make([]string, len(v))
		for i, x := range v {
			s, ok := x.(string)
			if !ok {
				return nil, fmt.Errorf("element %d is not a string", i+1)
			}
			out[i] = s
		}
		return out, nil
	}
	return nil, errors.New("it is neither a string nor an array of strings")
}
