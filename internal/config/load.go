package config

import (
	"fmt"
	"github.com/elfhost/elfhost/internal/config/strict"
	"reflect"
	"slices"
	"strconv"
)

// Load reads the user's configuration, then the project's over it (project may
// be ""). trusted gives the project's files that the person trusts, by their
// paths below it; what it has is not read again, since another may lie there by
// now. Only what is trusted names programs to start, or widens anything. Nil:
// nothing is trusted.
func Load(p Paths, project string, trusted func(path string) ([]byte, bool)) (*Config, error) {
	c := &Config{origin: map[string]origin{}}
	setDefaults(reflect.ValueOf(c).Elem())
	files := []source{{layer: "user", file: p.UserConfig()}}
	if project != "" {
		files = append(files, source{layer: "project", file: projectConfigFile(project), project: true})
	}
	for _, s := range files {
		var b []byte
		var present bool
		var err error
		if s.project && trusted != nil {
			b, s.trusted = trusted(projectConfig)
			present = s.trusted
		}
		if !s.trusted {
			b, present, err = strict.ReadIfPresent(s.file)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the %s configuration: %w", s.layer, err)
		}
		if !present {
			continue
		}
		if err := c.layer(b, s); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// source is one file of configuration.
type source struct {
	layer, file      string
	project, trusted bool
}

// origin is where a value came from.
type origin struct{ layer, where string }

// layer reads one file and takes over the keys that it holds.
func (c *Config) layer(b []byte, s source) error {
	var f Config
	ls, err := strict.Decode(b, s.file, &f)
	if err != nil {
		return err
	}
	if err := check(&f, s.file, ls); err != nil {
		return err
	}
	c.take(reflect.ValueOf(c).Elem(), reflect.ValueOf(&f).Elem(), "", s, ls)
	return nil
}

// take copies what the file sets, unless its layer may not.
func (c *Config) take(to, from reflect.Value, prefix string, s source, ls strict.Lines) {
	for i := range to.NumField() {
		f := to.Type().Field(i)
		name := f.Tag.Get("toml")
		if name == "" {
			continue
		}
		key := prefix + name
		if !ls.Has(key) {
			continue
		}
		where := ls.Where(s.file, key)
		switch {
		case s.project && f.Tag.Get("user") == "only":
			c.notes = append(c.notes, fmt.Sprintf("%s: %s is ignored: only the user's configuration may set it", where, key))
		case s.project && !s.trusted && f.Tag.Get("trust") == "only":
			c.notes = append(c.notes, fmt.Sprintf("%s: %s is ignored: %s, and this folder is not trusted", where, key, f.Tag.Get("since")))
		case s.project && !s.trusted && f.Tag.Get("trust") == "narrow" && !narrower(from.Field(i), to.Field(i)):
			c.notes = append(c.notes, fmt.Sprintf("%s: %s is ignored: it allows more than what stands without it, and this folder is not trusted", where, key))
		case f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[strict.Duration]() && f.Type != reflect.TypeFor[strict.Size]():
			c.take(to.Field(i), from.Field(i), key+".", s, ls)
		case f.Type.Kind() == reflect.Map:
			c.takeMap(to.Field(i), from.Field(i), key, s, ls)
		default:
			to.Field(i).Set(from.Field(i))
			c.origin[key] = origin{s.layer, where}
		}
	}
}

// narrower reports a value that allows less than another, or just as much.
func narrower(v, than reflect.Value) bool {
	switch v := v.Interface().(type) {
	case strict.Duration:
		now := than.Interface().(strict.Duration).Duration
		return v.Duration > 0 && (now <= 0 || v.Duration <= now)
	case strict.Size:
		now := than.Interface().(strict.Size).Bytes
		return v.Bytes > 0 && (now <= 0 || v.Bytes <= now)
	case int:
		now := int(than.Int())
		return v > 0 && (now <= 0 || v <= now)
	case bool:
		return !v || than.Bool()
	case []string:
		now := than.Interface().([]string)
		return len(now) == 0 || len(v) > 0 && !slices.ContainsFunc(v, func(s string) bool { return !slices.Contains(now, s) })
	}
	return false
}

// takeMap merges by name: a name in a later file replaces the whole entry.
func (c *Config) takeMap(to, from reflect.Value, key string, s source, ls strict.Lines) {
	if to.IsNil() {
		to.Set(reflect.MakeMap(to.Type()))
	}
	for _, k := range from.MapKeys() {
		entry := reflect.New(to.Type().Elem()).Elem()
		entry.Set(from.MapIndex(k))
		name := key + "." + k.String()
		for i := range entry.NumField() {
			part := name + "." + entry.Type().Field(i).Tag.Get("toml")
			if !ls.Has(part) {
				delete(c.origin, part)
				setDefault(entry.Field(i), entry.Type().Field(i))
				continue
			}
			c.origin[part] = origin{s.layer, ls.Where(s.file, part)}
		}
		to.SetMapIndex(k, entry)
	}
}

func setDefaults(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Tag.Get("toml") == "":
		case f.Type.Kind() == reflect.Struct && f.Tag.Get("default") == "":
			setDefaults(v.Field(i))
		default:
			setDefault(v.Field(i), f)
		}
	}
}

// setDefault reads the tag; the test of the table proves that all can be read.
func setDefault(v reflect.Value, f reflect.StructField) {
	text, ok := f.Tag.Lookup("default")
	if !ok {
		return
	}
	switch x := v.Addr().Interface().(type) {
	case *strict.Duration:
		_ = x.UnmarshalText([]byte(text))
	case *strict.Size:
		_ = x.UnmarshalText([]byte(text))
	case *string:
		*x = text
	case *bool:
		*x = text == "true"
	case *int:
		*x, _ = strconv.Atoi(text)
	}
}
