package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
)

const (
	maxBlocks     = 256      // content blocks of one result
	maxBinary     = 20 << 20 // bytes of images, audio and blobs of one result
	maxStructured = 8 << 20
)

// fit makes a tool's answer presentable: valid text, within the tool's limit,
// the whole of a longer one kept in a file, and structured content that is
// what the tool promised.
func (r *Registry) fit(ctx context.Context, e *entry, c Call, res abi.Result) abi.Result {
	res.Content = append([]abi.Content(nil), res.Content...)
	for i := range res.Content {
		b := &res.Content[i]
		b.Text = strings.ToValidUTF8(b.Text, "\uFFFD")
		if b.Resource != nil {
			whole := *b.Resource
			whole.Text = strings.ToValidUTF8(whole.Text, "\uFFFD")
			b.Resource = &whole
		}
	}
	res = e.structured(res)
	res = withoutBulk(res)
	limit := e.spec.MaxOutput
	if limit == 0 {
		limit = DefaultMaxOutput
	}
	if c.Most > 0 && (limit < 0 || c.Most < limit) {
		limit = c.Most
	}
	if limit < 0 || textSize(res) <= limit && len(res.Content) <= maxBlocks {
		return res
	}
	return r.clip(ctx, c, res, limit)
}

func textOf(b abi.Content) string {
	if b.Resource != nil {
		return b.Resource.Text
	}
	return b.Text
}

func textSize(res abi.Result) int {
	n := 0
	for _, b := range res.Content {
		n += len(textOf(b))
	}
	return n
}

// clip keeps the begin of the text, up to limit bytes, as one block where the
// first text stood.
func (r *Registry) clip(ctx context.Context, c Call, res abi.Result, limit int) abi.Result {
	var (
		texts []string
		kept  []abi.Content
		first = -1
	)
	for _, b := range res.Content {
		if b.Type != abi.TypeText && textOf(b) == "" {
			if len(kept) < maxBlocks {
				kept = append(kept, b)
			}
			continue
		}
		if first < 0 {
			first = len(kept)
			kept = append(kept, abi.Content{})
		}
		texts = append(texts, textOf(b))
	}
	whole := strings.Join(texts, "\n")
	if first < 0 {
		res.Content = kept
		return res
	}
	if len(whole) > limit {
		whole = cut(whole, limit) + "\n" + r.spill(ctx, c, whole, limit)
	}
	kept[first] = abi.TextBlock(whole)
	res.Content = kept
	return res
}

// cut shortens s to at most n bytes at a rune boundary.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// spill keeps the whole text and says where. The context of a cancelled call
// must not lose what the tool had to say.
func (r *Registry) spill(ctx context.Context, c Call, whole string, limit int) string {
	note := fmt.Sprintf("(truncated) The output has %d bytes, of which the first %d are shown.", len(whole), limit)
	if r.opt.Spill == nil {
		return note
	}
	path, err := r.opt.Spill(context.WithoutCancel(ctx), c.Caller.Session, c.ID, whole)
	if err != nil {
		if r.opt.Log != nil {
			r.opt.Log.Warn("keeping a long output", "tool", c.Tool, "err", err)
		}
		return note + " The rest could not be kept."
	}
	return note + fmt.Sprintf(" The whole is in %s: read it in parts, with offset and limit.", path)
}

// withoutBulk drops binary blocks and structured content past all use.
func withoutBulk(res abi.Result) abi.Result {
	size := 0
	for i, b := range res.Content {
		n := len(b.Data)
		if b.Resource != nil {
			n += len(b.Resource.Blob)
		}
		if size += n; n > 0 && size > maxBinary {
			res.Content[i] = abi.TextBlock(fmt.Sprintf("(a block of %d bytes of %s was left out: over the limit of %d)", n, b.MIMEType, maxBinary))
			size -= n
		}
	}
	if len(res.Structured) > maxStructured {
		res.Content = append(res.Content, abi.TextBlock(fmt.Sprintf("(structured content of %d bytes was left out: over the limit of %d)", len(res.Structured), maxStructured)))
		res.Structured = nil
	}
	return res
}

// structured shows structured content as text where a tool gave no other, and
// checks it against the output schema of a tool that is not our own.
func (e *entry) structured(res abi.Result) abi.Result {
	if len(res.Structured) == 0 {
		// MCP, since 2025-06-18: a tool with an output schema must answer with what
		// fits it, unless it failed. The official clients refuse such an answer; here
		// the model sees why, and what the tool said all the same.
		if e.output != nil && !res.IsError && e.spec.Origin.Source == MCP {
			return withError(res, fmt.Sprintf("The tool %s declares an output schema, and answered without structured content, which MCP requires then. "+
				"What it said is above, unchecked; it may have done what it was asked to. Its server has to be mended: the same call would end in the same way.", e.spec.Name))
		}
		return res
	}
	if !json.Valid(res.Structured) {
		res.Structured = nil
		return withError(res, fmt.Sprintf("The tool %s answered with structured content that is not JSON.", e.spec.Name))
	}
	if len(res.Content) == 0 {
		res.Content = []abi.Content{abi.TextBlock(string(res.Structured))}
	}
	if res.IsError || e.output == nil || e.spec.Origin.Source == Builtin {
		return res
	}
	sch, err := e.output()
	if err == nil {
		err = sch.Validate(res.Structured)
	}
	if err == nil {
		return res
	}
	res.Structured = nil
	return withError(res, fmt.Sprintf("The answer of %s does not fit the output schema that the tool itself declares.\n%s", e.spec.Name, err))
}

// failed makes a failure, told in lines after what the tool said.
func failed(res abi.Result, notes ...string) abi.Result {
	res.IsError = true
	return finish(res, bracketed(notes))
}

// finish adds what Invoke has to say in a block of its own, so that a tool's
// answer stays what the tool wrote; after an error the hint is the last line.
func finish(res abi.Result, lines []string) abi.Result {
	if res.IsError {
		lines = append(lines, RetryHint)
	}
	if len(lines) > 0 {
		res.Content = append(res.Content, abi.TextBlock(strings.Join(lines, "\n")))
	}
	if res.Content == nil {
		res.Content = []abi.Content{}
	}
	return res
}

func bracketed(notes []string) []string {
	if len(notes) == 0 {
		return nil
	}
	return []string{"[Note: " + strings.Join(notes, "; ") + ".]"}
}
