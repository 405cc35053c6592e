package term

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"
)

// key codes that are no characters, above every rune.
const (
	keyLeft = utf8.MaxRune + 1 + iota
	keyRight
	keyUp
	keyDown
	keyHome
	keyEnd
	keyDelete
	keyWordLeft
	keyWordRight
	keyNewline // Alt-Enter
	keyPaste
	keyNone
)

// sequences by what follows "ESC [" or "ESC O".
var sequences = map[string]rune{
	"A": keyUp, "B": keyDown, "C": keyRight, "D": keyLeft, "H": keyHome, "F": keyEnd,
	"1~": keyHome, "7~": keyHome, "4~": keyEnd, "8~": keyEnd, "3~": keyDelete,
	"1;5C": keyWordRight, "1;5D": keyWordLeft, "1;3C": keyWordRight, "1;3D": keyWordLeft,
	"200~": keyPaste, "13;2u": keyNewline, "27;2;13~": keyNewline,
}

// maxPaste bounds one paste, in bytes; the rest of a larger one is dropped.
const maxPaste = 1 << 20

// read gives the next key: a character, a control code, or one of the codes
// above. With keyPaste comes what was pasted.
func (k *keyboard) read(ctx context.Context) (key rune, pasted string, err error) {
	b, err := k.wait(ctx)
	if err != nil {
		return 0, "", err
	}
	switch {
	case b == 0x1b:
		return k.escape(ctx)
	case b < utf8.RuneSelf:
		return rune(b), "", nil
	}
	buf := []byte{b}
	for !utf8.FullRune(buf) && len(buf) < utf8.UTFMax {
		b, err := k.key(ctx, 100*time.Millisecond)
		if errors.Is(err, errIdle) {
			break
		}
		if err != nil {
			return 0, "", err
		}
		buf = append(buf, b)
	}
	r, _ := utf8.DecodeRune(buf)
	return r, "", nil
}

func (k *keyboard) wait(ctx context.Context) (byte, error) {
	for {
		b, err := k.key(ctx, time.Hour)
		if !errors.Is(err, errIdle) {
			return b, err
		}
	}
}

// escape reads what follows ESC. A sequence that is not known is dropped whole.
func (k *keyboard) escape(ctx context.Context) (rune, string, error) {
	b, err := k.key(ctx, 40*time.Millisecond)
	switch {
	case errors.Is(err, errIdle):
		return keyNone, "", nil // the Escape key
	case err != nil:
		return 0, "", err
	case b == '\r' || b == '\n':
		return keyNewline, "", nil
	case b == 'b':
		return keyWordLeft, "", nil
	case b == 'f':
		return keyWordRight, "", nil
	case b != '[' && b != 'O':
		return keyNone, "", nil
	}
	var seq []byte
	for len(seq) < 32 {
		b, err := k.key(ctx, 100*time.Millisecond)
		if errors.Is(err, errIdle) {
			return keyNone, "", nil
		}
		if err != nil {
			return 0, "", err
		}
		seq = append(seq, b)
		if b >= 0x40 && b <= 0x7e {
			break
		}
	}
	key, ok := sequences[string(seq)]
	if !ok {
		return keyNone, "", nil
	}
	if key == keyPaste {
		text, err := k.paste(ctx)
		return keyPaste, text, err
	}
	return key, "", nil
}

const pasteEnd = "\x1b[201~"

// paste reads up to the end of a bracketed paste. Ctrl-C within it is text.
func (k *keyboard) paste(ctx context.Context) (string, error) {
	var b strings.Builder
	tail := ""
	for {
		c, err := k.key(ctx, 5*time.Second)
		if errors.Is(err, errIdle) { // its end was lost
			return clean(b.String()), nil
		}
		if errors.Is(err, ErrInterrupt) {
			c, err = 3, nil
		}
		if err != nil {
			return "", err
		}
		if b.Len() < maxPaste+len(pasteEnd) {
			b.WriteByte(c)
		}
		if tail += string(rune(c)); len(tail) > 2*len(pasteEnd) {
			tail = tail[len(tail)-len(pasteEnd)*2:]
		}
		if strings.HasSuffix(tail, pasteEnd) {
			return clean(strings.TrimSuffix(b.String(), pasteEnd)), nil
		}
	}
}

// clean makes pasted bytes text: line ends are \n, controls go.
func clean(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}
