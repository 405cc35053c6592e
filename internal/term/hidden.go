package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Hidden reads one line from a terminal without showing it, at most most
// bytes. Ctrl-C is ErrInterrupt, Ctrl-D io.EOF; a longer line is an error, not
// cut: half of a secret is of no use.
func Hidden(ctx context.Context, in *os.File, out io.Writer, label string, most int) (string, error) {
	k := &keyboard{f: in}
	if err := k.take(); err != nil {
		return "", fmt.Errorf("reading keys from the terminal: %w", err)
	}
	defer func() {
		k.giveBack()
		_, _ = io.WriteString(out, "\n")
	}()
	_, _ = io.WriteString(out, label)
	var buf []byte
	for {
		b, err := k.key(ctx, time.Hour)
		switch {
		case errors.Is(err, errIdle):
		case err != nil:
			return "", err
		case b == '\r' || b == '\n':
			return string(buf), nil
		case b == 4 && len(buf) == 0:
			return "", io.EOF
		case b == 8 || b == 127:
			if len(buf) > 0 {
				buf = buf[:len(buf)-1]
			}
		case b == 21: // Ctrl-U
			buf = buf[:0]
		case b < 0x20:
		case len(buf) >= most:
			return "", fmt.Errorf("the line is over %d bytes", most)
		default:
			buf = append(buf, b)
		}
	}
}
