package control

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestNotify(t *testing.T) {
	ctx := context.Background()
	var shown [2]string
	desktop := func(_ context.Context, title, body string) error { shown = [2]string{title, body}; return nil }
	fails := func(context.Context, string, string) error { return errors.New("no service") }

	where, err := (&Notifier{Desktop: desktop}).Send(ctx, "done\x1b[2J\n\u202ex", "b")
	if err != nil || where != "on the desktop" || shown != [2]string{"elfhost: done[2J x", "b"} {
		t.Errorf("the desktop got %q: %s, %v", shown, where, err)
	}
	var out bytes.Buffer
	n := &Notifier{Desktop: fails, Terminal: &out}
	if where, err = n.Send(ctx, "a\a\x1b]52;c;x\a", ""); err != nil || where != "at the terminal" {
		t.Errorf("the terminal: %s, %v", where, err)
	}
	if got := out.String(); got != "\x1b]9;elfhost: a]52;c;x\a\a" {
		t.Errorf("the terminal got %q", got)
	}
	out.Reset()
	n.Plain = true
	if _, err = n.Send(ctx, "x", "y"); err != nil || out.String() != "\a" {
		t.Errorf("a plain terminal got %q, %v", out.String(), err)
	}
	if _, err = (&Notifier{Desktop: fails}).Send(ctx, "x", ""); err == nil || !strings.Contains(err.Error(), "no service") {
		t.Errorf("with nobody there: %v", err)
	}
}

func TestNotifyIsBounded(t *testing.T) {
	n := &Notifier{Terminal: &bytes.Buffer{}}
	for i := range maxNotified {
		if _, err := n.Send(context.Background(), "x", ""); err != nil {
			t.Fatalf("notification %d: %v", i, err)
		}
	}
	if _, err := n.Send(context.Background(), "x", ""); !errors.Is(err, errTooMany) {
		t.Errorf("a flood was shown: %v", err)
	}
	if !n.admit(time.Now().Add(2 * time.Minute)) {
		t.Error("the bound never ends")
	}
}

// TestNotifyNeverHangs: a desktop that does not answer, or that panics, holds
// nothing up, and the result of the tool is no error.
func TestNotifyNeverHangs(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	hangs := func(context.Context, string, string) error { select {} }
	if err := (&Notifier{Desktop: hangs}).desktop(ctx, "", ""); err == nil {
		t.Error("a desktop that hangs has answered")
	}
	panics := func(context.Context, string, string) error { panic("x") }
	n := &Notifier{Desktop: panics}
	if _, err := n.Send(context.Background(), "x", ""); err == nil {
		t.Error("a desktop that panics has answered")
	}
	r := &room{Options{Notifier: n}}
	if res, err := r.notify(context.Background(), callOf(`{"title":"x"}`)); err != nil || res.IsError {
		t.Errorf("Notify failed the turn: %v, %v", res, err)
	}
}

func TestNotificationsAreInert(t *testing.T) {
	if got := notOption("-i/etc/passwd"); strings.HasPrefix(got, "-") {
		t.Errorf("%q is an option", got)
	}
	if got := markup(`<a href="x">&`); strings.ContainsAny(got, "<>") || !strings.HasSuffix(got, "&amp;") {
		t.Errorf("%q is markup", got)
	}
	if got := inert("$(calc) `calc` ]]>"); strings.ContainsAny(got, "$`") || strings.Contains(got, "]]>") {
		t.Errorf("%q is PowerShell", got)
	}
}

func TestSessionBus(t *testing.T) {
	if sessionBus(func(string) string { return "" }) {
		t.Error("there is a session bus without any variable")
	}
	if !sessionBus(func(k string) string {
		if k == "DBUS_SESSION_BUS_ADDRESS" {
			return "unix:path=/x"
		}
		return ""
	}) {
		t.Error("the variable is not looked at")
	}
}
