package app

import (
	"context"
	"time"

	"github.com/elfhost/elfhost/host/agent"
)

// nameSession lets the background model name a new session after its first turn;
// until then, and without such a model, it is called by its first words. It
// is done beside the conversation, and ends with the app.
func (a *App) nameSession(l *agent.Loop, s *agent.Session, done agent.Event) {
	if l.Compact.Model == nil || a.from != "" || a.opt.Kept.Not || done.Stop != agent.StopEnd || a.titled.Swap(true) {
		return
	}
	a.beside.Go(func() {
		ctx, cancel := context.WithTimeout(a.besides, time.Minute)
		defer cancel()
		title, err := l.Title(ctx, s)
		if err == nil && title != "" {
			err = a.Sessions.Describe(ctx, s.ID, title, "")
		}
		if err != nil && ctx.Err() == nil {
			a.note("the session has no title of its own: %v", err)
		}
	})
}
