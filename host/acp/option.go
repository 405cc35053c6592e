package acp

import (
	"context"
	"slices"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/elfhost/elfhost/host"
)

// modeTexts are the modes, in the order in which they are offered.
var modeTexts = [...]struct {
	mode       host.Mode
	name, does string
}{
	{host.ModePlan, "Plan", "Reads and plans; nothing is changed"},
	{host.ModeAsk, "Ask", "Asks before it changes or runs anything"},
	{host.ModeAcceptEdits, "Accept edits", "Edits files of the workspace without asking; asks for the rest"},
	{host.ModeAuto, "Auto", "Asks nothing"},
}

// modes are those that the policy allows.
func (ses *session) modes() *sdk.SessionModeState {
	st := &sdk.SessionModeState{CurrentModeId: sdk.SessionModeId(ses.Gate.Current())}
	for _, m := range modeTexts {
		if ses.Gate.Policy.ModeAllowed(string(m.mode)) == nil {
			st.AvailableModes = append(st.AvailableModes, sdk.SessionMode{Id: sdk.SessionModeId(m.mode), Name: m.name, Description: sdk.Ptr(m.does)})
		}
	}
	return st
}

func (s *server) setMode(p *sdk.SetSessionModeRequest) (any, error) {
	ses, err := s.find(p.SessionId)
	if err != nil {
		return nil, err
	}
	if err := ses.switchTo(string(p.ModeId)); err != nil {
		return nil, err
	}
	ses.client.update(sdk.SessionUpdate{ConfigOptionUpdate: &sdk.SessionConfigOptionUpdate{ConfigOptions: ses.options()}})
	return sdk.SetSessionModeResponse{}, nil
}

// switchTo changes the mode, during a turn as well: it counts from the next call on.
func (ses *session) switchTo(mode string) error {
	if err := ses.Gate.Switch(host.Mode(clip(mode, 40))); err != nil {
		return &Error{Invalid, err.Error()}
	}
	ses.client.update(sdk.SessionUpdate{CurrentModeUpdate: &sdk.SessionCurrentModeUpdate{CurrentModeId: sdk.SessionModeId(ses.Gate.Current())}})
	return nil
}

// models are those that are known, the one that answers among them.
func (ses *session) models() *sdk.SessionModelState {
	now := ses.Model().Name
	st := &sdk.SessionModelState{CurrentModelId: sdk.ModelId(now)}
	for _, name := range ses.names(now) {
		st.AvailableModels = append(st.AvailableModels, sdk.ModelInfo{ModelId: sdk.ModelId(name), Name: ses.client.srv.line(name, 200)})
	}
	return st
}

// maxModels is how many models are offered.
const maxModels = 200

func (ses *session) names(now string) []string {
	out := []string{now}
	for _, m := range ses.Models() {
		if !slices.Contains(out, m.Name) && len(out) < maxModels {
			out = append(out, m.Name)
		}
	}
	return out
}

func (s *server) setModel(ctx context.Context, _ request, p *sdk.UnstableSetSessionModelRequest) (any, error) {
	ses, err := s.find(p.SessionId)
	if err != nil {
		return nil, err
	}
	if err := ses.choose(ctx, string(p.ModelId)); err != nil {
		return nil, err
	}
	ses.client.update(sdk.SessionUpdate{ConfigOptionUpdate: &sdk.SessionConfigOptionUpdate{ConfigOptions: ses.options()}})
	return sdk.UnstableSetSessionModelResponse{}, nil
}

// choose lets another model answer from the next prompt on.
func (ses *session) choose(ctx context.Context, name string) error {
	if err := ses.idle(); err != nil {
		return err
	}
	if err := ses.SetModel(ctx, name); err != nil {
		return err
	}
	ses.usage() // its window may be another
	return nil
}

// The options of a session: mode and model once more, for clients that show
// all choices in one way, and how much the model thinks.
const (
	optionMode   = "mode"
	optionModel  = "model"
	optionEffort = "effort"
)

// ownEffort is the choice that leaves the effort to the model.
const ownEffort = "default"

// efforts are the choices, and the one that holds.
func (ses *session) efforts() (now sdk.SessionConfigValueId, all sdk.SessionConfigSelectOptionsUngrouped) {
	all = append(all, sdk.SessionConfigSelectOption{Value: ownEffort, Name: "The model's own"})
	for _, e := range ses.Efforts {
		all = append(all, sdk.SessionConfigSelectOption{Value: sdk.SessionConfigValueId(e), Name: e})
	}
	if now = sdk.SessionConfigValueId(ses.Model().Effort); now == "" {
		now = ownEffort
	}
	return now, all
}

func (ses *session) options() []sdk.SessionConfigOption {
	modes := sdk.SessionConfigSelectOptionsUngrouped{}
	state := ses.modes()
	for _, m := range state.AvailableModes {
		modes = append(modes, sdk.SessionConfigSelectOption{Value: sdk.SessionConfigValueId(m.Id), Name: m.Name, Description: m.Description})
	}
	models := sdk.SessionConfigSelectOptionsUngrouped{}
	now := ses.models()
	for _, m := range now.AvailableModels {
		models = append(models, sdk.SessionConfigSelectOption{Value: sdk.SessionConfigValueId(m.ModelId), Name: m.Name})
	}
	effort, efforts := ses.efforts()
	return []sdk.SessionConfigOption{
		option(optionMode, "Mode", sdk.SessionConfigOptionCategoryMode, sdk.SessionConfigValueId(state.CurrentModeId), modes),
		option(optionModel, "Model", sdk.SessionConfigOptionCategoryModel, sdk.SessionConfigValueId(now.CurrentModelId), models),
		option(optionEffort, "Effort", sdk.SessionConfigOptionCategoryThoughtLevel, effort, efforts),
	}
}

func option(id sdk.SessionConfigId, name string, category sdk.SessionConfigOptionCategory, now sdk.SessionConfigValueId, all sdk.SessionConfigSelectOptionsUngrouped) sdk.SessionConfigOption {
	o := sdk.NewSessionConfigOptionSelect(now, sdk.SessionConfigSelectOptions{Ungrouped: &all})
	o.Select.Id, o.Select.Name, o.Select.Category = id, name, &category
	return o
}

func (s *server) setOption(ctx context.Context, _ request, p *sdk.SetSessionConfigOptionRequest) (any, error) {
	if p.ValueId == nil {
		return nil, invalid("the options of this agent are chosen from a list")
	}
	ses, err := s.find(p.ValueId.SessionId)
	if err != nil {
		return nil, err
	}
	switch value := string(p.ValueId.Value); p.ValueId.ConfigId {
	case optionMode:
		err = ses.switchTo(value)
	case optionModel:
		err = ses.choose(ctx, value)
	case optionEffort:
		if err = ses.SetEffort(clip(value, 40)); err != nil {
			err = &Error{Invalid, err.Error()}
		}
	default:
		err = invalid("there is no option %q", clip(string(p.ValueId.ConfigId), 100))
	}
	if err != nil {
		return nil, err
	}
	return sdk.SetSessionConfigOptionResponse{ConfigOptions: ses.options()}, nil
}
