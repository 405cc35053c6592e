package audit

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
)

// encode makes the line of a record; one that is too long loses its receipt.
func (l *Log) encode(r Record) (line []byte, hash string, err error) {
	body, err := appendRecord(make([]byte, 0, 1<<10), r)
	if err == nil && len(body) > maxLine/2 {
		r.Receipt, r.Reason = nil, shorten(r.Reason+" (the receipt was too long to be kept)", maxText)
		body, err = appendRecord(body[:0], r)
	}
	if err != nil {
		return nil, "", err
	}
	hash = l.seal.sum(body)
	line = append(body[:len(body)-1], hashKey...)
	line = append(line, hash...)
	return append(line, "\"}\n"...), hash, nil
}

// appendRecord says what json.Marshal would, in a tenth of its time: a record
// is on the path of every call.
func appendRecord(b []byte, r Record) ([]byte, error) {
	b = append(b, `{"seq":`...)
	b = strconv.AppendUint(b, r.Seq, 10)
	b, err := r.Time.AppendText(append(b, `,"time":"`...))
	if err != nil { // a year that RFC 3339 has no digits for
		return nil, err
	}
	b = append(b, `","event":`...)
	b = appendString(b, r.Event)
	for _, f := range [...]struct{ key, value string }{
		{`,"session":`, r.Session}, {`,"agent":`, r.Agent}, {`,"call":`, r.Call}, {`,"tool":`, r.Tool}, {`,"source":`, r.Source},
		{`,"plugin":`, r.Plugin}, {`,"digest":`, r.Digest}, {`,"caller":`, r.Caller}, {`,"args":`, r.Args}, {`,"cap":`, r.Cap},
		{`,"verb":`, r.Verb}, {`,"target":`, r.Target},
	} {
		b = appendMember(b, f.key, f.value)
	}
	b = appendNumber(b, `,"n":`, r.N)
	for _, f := range [...]struct{ key, value string }{
		{`,"outcome":`, r.Outcome}, {`,"by":`, r.By}, {`,"rule":`, r.Rule}, {`,"where":`, r.Where}, {`,"reason":`, r.Reason},
	} {
		b = appendMember(b, f.key, f.value)
	}
	if r.Receipt != nil {
		if b, err = appendReceipt(append(b, `,"receipt":`...), r.Receipt); err != nil {
			return nil, err
		}
	}
	b = append(b, `,"prev":`...)
	return append(appendString(b, r.Prev), '}'), nil
}

func appendReceipt(b []byte, r *abi.Receipt) ([]byte, error) {
	b = appendString(append(b, `{"call":`...), r.Call)
	b = appendString(append(b, `,"tool":`...), r.Tool)
	b = appendString(append(b, `,"plugin":`...), r.Plugin)
	b = appendString(append(b, `,"digest":`...), r.Digest)
	b = strconv.AppendInt(append(b, `,"fuel":`...), r.Fuel, 10)
	b = strconv.AppendInt(append(b, `,"wall":`...), int64(r.Wall), 10)
	b = appendNumber(b, `,"waited":`, int64(r.Waited))
	b = appendNumber(b, `,"cpu":`, int64(r.CPU))
	b = strconv.AppendInt(append(b, `,"memory":`...), r.Memory, 10)
	b = appendNumber(b, `,"pages":`, r.Pages)
	if len(r.HostCalls) > 0 {
		calls, err := json.Marshal(r.HostCalls)
		if err != nil {
			return nil, err
		}
		b = append(append(b, `,"hostCalls":`...), calls...)
	}
	b = appendList(b, `,"files":`, r.Files)
	b = appendList(b, `,"hosts":`, r.Hosts)
	b = appendNumber(b, `,"bytesIn":`, r.BytesIn)
	b = appendNumber(b, `,"bytesOut":`, r.BytesOut)
	b = appendNumber(b, `,"tokens":`, r.Tokens)
	b = appendList(b, `,"limits":`, r.Limits)
	b = appendList(b, `,"denied":`, r.Denied)
	return append(appendMember(b, `,"error":`, r.Error), '}'), nil
}

func appendNumber(b []byte, key string, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, key...), n, 10)
}

func appendMember(b []byte, key, value string) []byte {
	if value == "" {
		return b
	}
	return appendString(append(b, key...), value)
}

func appendList(b []byte, key string, list []string) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(b, key...)
	for i, s := range list {
		sep := byte(',')
		if i == 0 {
			sep = '['
		}
		b = appendString(append(b, sep), s)
	}
	return append(b, ']')
}

// appendString quotes a text as json.Marshal does.
func appendString(b []byte, s string) []byte {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		c := s[i]
		plain = c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	if plain {
		b = append(b, '"')
		b = append(b, s...)
		return append(b, '"')
	}
	quoted, _ := json.Marshal(s) // a string is always encoded
	return append(b, quoted...)
}
