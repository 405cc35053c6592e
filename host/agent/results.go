package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

// skipped is the result of a call that never entered its tool. why is a
// clause: "the run was cancelled".
func skipped(why string) abi.Result {
	return abi.Errorf("This call was not run: %s. It had no effects.", why)
}

// interrupted is the result of a call that was stopped inside its tool. It
// must not claim that nothing happened. said is what the tool itself answered, if anything.
func interrupted(after time.Duration, said, why string) abi.Result {
	var b strings.Builder
	b.WriteString("This call was interrupted")
	if after > 0 {
		fmt.Fprintf(&b, " after %.1f s", after.Seconds())
	}
	fmt.Fprintf(&b, ": %s. It had started, so it may have had effects, in part or in whole. "+
		"Check the state of things before you repeat it.", why)
	if said = strings.TrimSpace(said); said != "" {
		fmt.Fprintf(&b, "\nBefore it ended it said:\n%s", said)
	}
	return abi.Errorf("%s", b.String())
}

// arguments checks what the model wrote. Nothing at all means no arguments;
// anything else must be one JSON value, else the tool is not to be run, and
// complaint tells the model what is wrong and where. cut says that the answer
// ended for its length, so that even nothing may be half of something.
func arguments(c model.Call, cut bool) (args json.RawMessage, complaint string) {
	const again = "The tool was not run. Make the call again with one complete JSON object."
	text := strings.TrimSpace(c.Args)
	if text == "" && cut {
		return nil, "Your answer reached its length limit before the arguments of this call were written. " +
			"The tool was not run. Make the call again, with shorter arguments, or in several parts."
	}
	if text == "" {
		return json.RawMessage("{}"), ""
	}
	dec := json.NewDecoder(strings.NewReader(text))
	err := dec.Decode(&args)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		rest := strings.TrimSpace(text[dec.InputOffset():])
		if rest == "" {
			return args, ""
		}
		return nil, fmt.Sprintf("The arguments of this call are not one JSON object: after it, at byte %d, comes %s. %s",
			dec.InputOffset(), quote(rest), again)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		why := ""
		if cut {
			why = " because your answer reached its length limit"
		}
		return nil, fmt.Sprintf("The arguments of this call are not complete JSON: they end at byte %d%s, after %s. %s",
			len(text), why, quote(tail(text)), again)
	case errors.As(err, &syntax):
		at := min(max(int(syntax.Offset)-1, 0), len(text))
		return nil, fmt.Sprintf("The arguments of this call are not valid JSON: %s at byte %d, before %s. %s",
			syntax, at, quote(text[at:]), again)
	}
	return nil, fmt.Sprintf("The arguments of this call are not valid JSON: %s. %s", err, again)
}

// quote shows the first characters of a text in quotes.
func quote(s string) string {
	const most = 40
	if len(s) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return fmt.Sprintf("%q", s)
}

// tail is the end of a text, at a rune.
func tail(s string) string {
	const most = 24
	if len(s) <= most {
		return s
	}
	cut := len(s) - most
	for cut < len(s) && !utf8.RuneStart(s[cut]) {
		cut++
	}
	return s[cut:]
}
