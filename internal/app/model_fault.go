package app

import (
	"errors"
	"fmt"

	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/internal/fault"
)

// modelHints are what a person can do about what went wrong with a model.
var modelHints = map[model.Code]string{
	model.ErrAuth:        "check the key in the environment",
	model.ErrQuota:       "the provider's account page tells more; --model names another one",
	model.ErrRateLimit:   "wait a little; what was said is kept, and `elfhost run -c` goes on with it",
	model.ErrOverload:    "wait a little; what was said is kept, and `elfhost run -c` goes on with it",
	model.ErrServer:      "it is the provider's trouble: try again later, or --model names another one",
	model.ErrUnavailable: "is the network there, the server started, its base_url right? `elfhost models` asks all of them",
	model.ErrTruncated:   "does the server speak this protocol (`kind` in config.toml)? else try again, or --model names another one",
	model.ErrMalformed:   "does the server speak this protocol (`kind` in config.toml)? else try again, or --model names another one",
	model.ErrTooLarge:    "ask for less at once",
}

// modelFault gives the error of a run that a model ended its code, and a hint.
// Others keep what they have.
func modelFault(err error) error {
	err = SessionFault(err)
	var has *fault.Error
	if err == nil || errors.As(err, &has) {
		return err
	}
	var e *model.Error
	if !errors.As(err, &e) {
		if errors.Is(err, agent.ErrNoRoom) {
			return fault.Wrap("E1103", "a model with a larger window goes on with it; --tools offers fewer tools, a local server can be started with more context", err)
		}
		return fault.Wrap("E1103", "", err)
	}
	hint := modelHints[e.Code]
	if e.Code == model.ErrNotFound {
		hint = fmt.Sprintf("`elfhost models %s` lists what there is", e.Provider)
	}
	code := "E1103"
	if e.Code == model.ErrRateLimit || e.Code == model.ErrOverload {
		code = "E1102"
	}
	return fault.Wrap(code, hint, err)
}
