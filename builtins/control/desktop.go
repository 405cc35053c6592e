package control

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/gen2brain/beeep"
)

// Desktop shows a notification of this machine's desktop, for Notifier. It
// gives up where nobody has a desktop session.
func Desktop(_ context.Context, title, body string) error {
	switch runtime.GOOS {
	case "darwin":
	case "windows":
		title, body = inert(title), inert(body)
	default:
		// Without a session bus the library would start one.
		if !sessionBus(os.Getenv) {
			return errors.New("there is no desktop session (no D-Bus)")
		}
		title, body = notOption(title), markup(notOption(body))
	}
	nameOnce()
	return beeep.Notify(title, body, "")
}

// nameOnce tells the library, once, whose notifications these are.
var nameOnce = sync.OnceFunc(func() { beeep.AppName = "elfhost" })

// notOption keeps a text from being an option of notify-send and kdialog,
// which the library starts where D-Bus has no notification service.
func notOption(s string) string {
	if strings.HasPrefix(s, "-") {
		return " " + s
	}
	return s
}

// inert keeps a text from being PowerShell, into whose double-quoted strings
// the library writes it where Windows has no other way, and from ending the
// CDATA section that it stands in.
func inert(s string) string {
	return strings.NewReplacer("$", "\uff04", "`", "'", "]]>", "]] >").Replace(s)
}

// markup writes a text for the body of a freedesktop notification, which may
// hold tags of its own: links and images among them.
func markup(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

func sessionBus(env func(string) string) bool {
	if env("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	dir := env("XDG_RUNTIME_DIR")
	if dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "bus"))
	return err == nil
}
