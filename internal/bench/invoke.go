package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/audit"
	"github.com/elfhost/elfhost/host/schema"
)

// noop is a tool that does nothing.
type noop struct{ input json.RawMessage }

func (n noop) Spec() host.Spec {
	return host.Spec{Name: "Read", Input: n.input, Origin: host.Origin{Source: host.Builtin}, Kind: host.KindRead}
}

func (noop) Call(context.Context, host.Call) (abi.Result, error) { return abi.Text("ok"), nil }

const (
	input = `{"type":"object","required":["path"],"additionalProperties":false,"properties":{
		"path":{"type":"string","minLength":1},"offset":{"type":"integer","minimum":1},"limit":{"type":"integer","minimum":1},
		"tags":{"type":"array","items":{"type":"string"}}}}`
	args = `{"path":"host/policy/grants.go","offset":10,"limit":200,"tags":["a","b"]}`
)

// Invoke measures the one door with a tool that does nothing against what no
// host can leave out: decoding, validating and one line of audit.
func Invoke(w io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "elfhost-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	log, err := audit.Open(filepath.Join(dir, "audit"), audit.Options{Key: make([]byte, 32)})
	if err != nil {
		return err
	}
	defer log.Close()
	sch, err := schema.Compile(json.RawMessage(input))
	if err != nil {
		return err
	}
	fail := func(e error) {
		if e != nil && err == nil {
			err = e
		}
	}
	line := audit.Record{Event: audit.EventVerdict, Session: "s", Call: "c", Tool: "Read", Source: "builtin", Args: args, Outcome: audit.Allowed, By: "safe"}
	var value any
	decode := func() {
		d := json.NewDecoder(bytes.NewReader([]byte(args)))
		d.UseNumber()
		fail(d.Decode(&value))
	}
	validate := func() { fail(sch.ValidateValue(value)) }
	record := func() { fail(log.Append(line)) }

	open := func(record func(host.Verdict) error) func() {
		r := host.New(host.Options{Gate: &host.Gate{Audit: record}})
		fail(r.Add(noop{json.RawMessage(input)}))
		c := host.Call{ID: "c", Tool: "Read", Args: json.RawMessage(args), Caller: host.Caller{Session: "s"}}
		return func() {
			if res := r.Invoke(context.Background(), c); res.IsError {
				fail(fmt.Errorf("invoking: %s", res.Text()))
			}
		}
	}
	audited := open(func(v host.Verdict) error {
		l := line
		l.Args = string(v.Call.Args)
		return log.Append(l)
	})
	silent := open(nil)
	decode()
	t := Times(15, 400, decode, validate, record, audited, silent)
	parts := t[0] + t[1] + t[2]
	fmt.Fprintf(w, "decode %v, validate %v, audit append %v; Invoke %v, %v without audit\n", t[0], t[1], t[2], t[3], t[4])
	Figure(w, "invoke.ratio", float64(t[3])/float64(parts), 2)
	return err
}
