package config

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/config/strict"
)

// check judges what the types cannot.
func check(c *Config, file string, ls strict.Lines) error {
	if err := checkOneOf(reflect.ValueOf(c).Elem(), "", file, ls); err != nil {
		return err
	}
	if c.MaxSteps < 0 || c.MaxCost < 0 || c.MaxCost != c.MaxCost {
		return ls.Fail(file, "max_steps", "max_steps and max_cost are not negative")
	}
	for name, p := range c.Providers {
		key := "providers." + name
		if p.Kind == "" {
			return ls.Fail(file, key, "%s has no kind", key)
		}
		if err := checkBase(p.BaseURL); err != nil {
			return ls.Fail(file, key+".base_url", "%s.base_url: %w", key, err)
		}
	}
	for name, p := range c.Prices {
		for _, dollars := range []float64{p.Input, p.Output, p.CacheRead, p.CacheWrite} {
			if !(dollars >= 0 && dollars < 1e6) {
				return ls.Fail(file, "prices."+name, "a price is a number of US dollars, from 0 to a million")
			}
		}
	}
	for name, s := range c.MCP.Servers {
		if err := s.check(name, file, ls); err != nil {
			return err
		}
	}
	for i, h := range c.Hooks {
		key := fmt.Sprintf("hooks[%d]", i)
		if h.Event == "" || len(h.Command) == 0 || h.Command[0] == "" {
			return ls.Fail(file, key, "a hook has an event and a command")
		}
		if h.Match != "" {
			if _, err := policy.ParsePattern(h.Match); err != nil {
				return ls.Fail(file, key+".match", "%w", err)
			}
		}
		if !ls.Has(key + ".timeout") {
			setDefaults(reflect.ValueOf(&c.Hooks[i]).Elem())
		}
	}
	for i, s := range c.Search {
		key := fmt.Sprintf("search[%d]", i)
		if s.Kind == "" {
			return ls.Fail(file, key, "a search service has a kind")
		}
		if err := checkBase(s.BaseURL); err != nil {
			return ls.Fail(file, key+".base_url", "%w", err)
		}
	}
	return nil
}

func (s MCPServer) check(name, file string, ls strict.Lines) error {
	key := "mcp.servers." + name
	fail := func(format string, args ...any) error {
		return ls.Fail(file, key, key+": "+format, args...)
	}
	switch {
	case name == "" || strings.Contains(name, "__") || strings.HasSuffix(name, "_") || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
		return fail("a server's name holds letters, digits, - and single _, and ends in no _")
	case (s.Command == "") == (s.URL == ""):
		return fail("either command or url is given")
	case s.Command == "" && (s.Transport == "stdio" || len(s.Args) > 0 || len(s.Env) > 0):
		return fail("a url takes no stdio, args or env")
	case s.Command != "" && s.Transport != "" && s.Transport != "stdio":
		return fail("a command speaks stdio, not %s", s.Transport)
	}
	if err := checkBase(s.URL); err != nil {
		return fail("url: %w", err)
	}
	return nil
}

func checkBase(raw string) error {
	if raw == "" {
		return nil
	}
	_, err := policy.CheckURL(raw)
	if err == nil {
		if u, perr := url.Parse(raw); perr != nil || u.Fragment != "" {
			return fmt.Errorf("it is not a plain URL")
		}
	}
	return err
}

func checkOneOf(v reflect.Value, key, file string, ls strict.Lines) error {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name := f.Tag.Get("toml")
			if name == "" {
				continue
			}
			if key != "" {
				name = key + "." + name
			}
			if set := f.Tag.Get("oneof"); set != "" {
				if s := v.Field(i).String(); s != "" && !slices.Contains(strings.Fields(set), s) {
					return ls.Fail(file, name, "%s is one of %s, not %q", name, strings.ReplaceAll(set, " ", ", "), s)
				}
			}
			if err := checkOneOf(v.Field(i), name, file, ls); err != nil {
				return err
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			if err := checkOneOf(v.MapIndex(k), key+"."+k.String(), file, ls); err != nil {
				return err
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := checkOneOf(v.Index(i), fmt.Sprintf("%s[%d]", key, i), file, ls); err != nil {
				return err
			}
		}
	}
	return nil
}
