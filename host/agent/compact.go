package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

// ErrNoRoom is returned when a conversation cannot be made to fit the model's
// window. The session is unchanged, and a larger model can go on with it.
var ErrNoRoom = errors.New("the conversation does not fit the model's context window")

// Compaction is how a conversation is shortened before the window is full:
// the older part becomes minutes, the newest steps stay as they are. The
// journal keeps everything.
type Compaction struct {
	Model model.Model  // writes the minutes, and titles; nil: the loop's own
	Price *model.Price // of Model
	// Answer is how many tokens Model writes in one answer; 0: not known.
	Answer int64
	// Window is what is taken for the model's where Loop.Info does not say;
	// default 128,000.
	Window int64
	// Ask gives the model's window where Loop.Info does not say; 0: it is not to
	// be learned. It is asked again and again, once the window matters, and has
	// to remember the answer. Nil: nobody is asked.
	Ask func(ctx context.Context) int64
	// At is the part of the window that may fill up, 0 < At < 1; default 0.8.
	At float64
	// Plan and Changed give what must not be lost: the open plan, and the files
	// that this session has changed. They may be nil.
	Plan    func(session string) string
	Changed func(session string) []string
	Off     bool // only Loop.Shorten compacts
}

// maxPacked is how often a run compacts before the model has answered again.
const maxPacked = 2

// Bounds of what the writer of the minutes is shown, in bytes.
const (
	resultShown = 2 << 10
	askedShown  = 4 << 10
)

// answer makes room if needed, asks, and makes room again when the provider
// says that there was none.
func (r *run) answer(ctx context.Context) (*model.Turn, error) {
	c := r.loop.Compact
	window, known := r.loop.window()
	if now := r.loop.filled(r.session); !known && now > window/matters {
		window, known = r.loop.askedWindow(ctx)
	}
	limit := int64(float64(window) * or(c.At, 0.8))
	if !c.Off && r.loop.filled(r.session) > limit {
		// A window that is only assumed stops nobody.
		if err := r.pack(ctx, limit); err != nil && (known || !errors.Is(err, ErrNoRoom)) {
			return &model.Turn{}, err
		}
	}
	for {
		turn, err := r.ask(ctx)
		if !errors.Is(err, model.ErrWindow) || c.Off {
			return turn, err
		}
		// The provider counts otherwise than we do, and it is right.
		window, _ := r.loop.askedWindow(ctx)
		limit = min(limit, int64(float64(window)*or(c.At, 0.8)))
		now := r.loop.filled(r.session)
		if perr := r.pack(ctx, min(now/2, limit)); perr != nil {
			return &model.Turn{}, errors.Join(perr, err)
		}
	}
}

// assumedWindow is less than what most models have, and more than a start takes.
const assumedWindow = 128_000

// window is how many tokens the model takes, and whether that is known.
func (l *Loop) window() (n int64, known bool) {
	if l.Info.Window > 0 {
		return l.Info.Window, true
	}
	return or(l.Compact.Window, assumedWindow), false
}

// matters is which part of an assumed window a conversation has to fill before
// somebody is asked for the true one.
const matters = 4

// askedWindow is window with the provider's word, if need be.
func (l *Loop) askedWindow(ctx context.Context) (n int64, known bool) {
	n, known = l.window()
	if !known && l.Compact.Ask != nil {
		if told := l.Compact.Ask(ctx); told > 0 {
			return told, true
		}
	}
	return n, known
}

// pack compacts until the conversation is under the limit.
func (r *run) pack(ctx context.Context, limit int64) error {
	if r.packed >= maxPacked {
		return fmt.Errorf("%w: it was shortened %d times in a row and is still too long", ErrNoRoom, r.packed)
	}
	r.packed++
	before := r.loop.filled(r.session)
	if err := r.loop.shorten(ctx, r.session, limit); err != nil {
		return err
	}
	after := r.loop.filled(r.session)
	r.emit(Event{Kind: KindCompact, Text: fmt.Sprintf("The conversation was shortened from about %d to %d tokens.", before, after)})
	if after > limit {
		return r.pack(ctx, limit)
	}
	return nil
}

// Shorten compacts a session that is not running, as a person may ask for.
func (l *Loop) Shorten(ctx context.Context, s *Session) error {
	if err := s.acquire(); err != nil {
		return err
	}
	defer s.release()
	messages := s.Messages()
	if size := estimate(messages); split(messages, size/4) != 0 {
		return l.shorten(ctx, s, l.overhead()+size/2)
	}
	return errors.New("there is nothing to shorten: the newest step stays as it is")
}

// Shortened does again what a record of the kind RecordCompact tells: m and the
// last keep messages take the place of all before. It is for replaying.
func (s *Session) Shortened(ctx context.Context, m model.Message, keep int) error {
	messages := s.Messages()
	first := len(messages) - keep
	if keep < 0 || first < 1 || keep > 0 && messages[first].Role == model.RoleTool {
		return fmt.Errorf("%d of %d messages cannot be kept", keep, len(messages))
	}
	return s.commit(ctx, Record{Kind: RecordCompact, Message: &m, Keep: keep})
}

// shorten replaces the older part of a session by its minutes.
func (l *Loop) shorten(ctx context.Context, s *Session, limit int64) error {
	messages := s.Messages()
	fixed := l.overhead()
	room := limit - fixed
	if room <= 0 {
		return fmt.Errorf("%w: the system prompt and the tools alone take about %d tokens of the %d that may be used; offer fewer tools, or use a model with a larger window",
			ErrNoRoom, fixed, limit)
	}
	cut := split(messages, room/2)
	if cut == 0 {
		return fmt.Errorf("%w: its newest step alone takes about %d tokens, and there is room for %d", ErrNoRoom, estimate(messages), room)
	}
	summary, used, err := l.minutes(ctx, messages[:cut], room)
	if err != nil {
		return err
	}
	content, err := l.frame(s.ID, messages[:cut], summary)
	if err != nil {
		return err
	}
	m := model.User(content...)
	rest := append([]model.Message{m}, messages[cut:]...)
	after := fixed + estimate(rest)
	if before := fixed + estimate(messages); after >= before {
		return fmt.Errorf("%w: its minutes would be no shorter than itself (%d tokens against %d)", ErrNoRoom, after, before)
	}
	price := l.Price
	if l.Compact.Model != nil {
		price = l.Compact.Price
	}
	return s.bill(ctx, Record{Kind: RecordCompact, Message: &m, Keep: len(messages) - cut}, func(u *Usage) {
		u.Usage = u.Usage.Plus(used)
		u.Context = 0 // to be counted anew
		if price != nil {
			u.Cost += price.Cost(used)
		}
	})
}

// split finds where the kept part begins: as far back as fits into keep, but
// never between a call, its result and what was added to that, and never with
// nothing before it. The
// newest step is kept even if it is larger. 0 means there is nothing to cut.
func split(messages []model.Message, keep int64) int {
	cut := 0
	for i := len(messages) - 1; i > 0; i-- {
		if messages[i].Role == model.RoleTool || aside(messages[i]) {
			continue
		}
		if cut != 0 && estimate(messages[i:]) > keep {
			break
		}
		cut = i
	}
	return cut
}

// longestMinutes bounds minutes in tokens, with what a model thinks before it
// writes them.
const longestMinutes = 16_000

// minutes asks the model for a summary. An empty one is a failure, and so is
// one that was cut off.
func (l *Loop) minutes(ctx context.Context, messages []model.Message, room int64) (string, model.Usage, error) {
	system, err := prompts.ReadFile("prompts/compact.md")
	if err != nil {
		return "", model.Usage{}, err
	}
	record := narrate(messages, int(room)*bytesPerToken)
	var used model.Usage
	type writer struct {
		model.Model
		most int64
	}
	writers := []writer{{l.Model, l.Info.MaxOutput}}
	if l.Compact.Model != nil { // it may fail where the large one does not
		writers = []writer{{l.Compact.Model, l.Compact.Answer}, writers[0]}
	}
	for _, m := range writers {
		// More than a model can write is refused; where that is not known it is left to the provider.
		if m.most > 0 {
			m.most = min(m.most, max(1024, room/4), longestMinutes)
		}
		var turn model.Turn
		cerr := turn.Read(l.Retry.Wrap(m.Model).Stream(ctx, model.Request{
			System: string(system), NoCache: true, MaxTokens: m.most,
			Messages: []model.Message{model.User(abi.TextBlock(record + "\n\nWrite the minutes of the conversation above."))},
		}))
		used = used.Plus(turn.Usage)
		text := strings.TrimSpace(turn.Message.Text())
		switch {
		case ctx.Err() != nil:
			return "", used, model.Cancelled("", ctx)
		case cerr != nil:
			err = cerr
		case text == "":
			err = fmt.Errorf("%w: the model gave no minutes of it", ErrNoRoom)
		case turn.Stop != model.StopEnd && turn.Stop != model.StopOther:
			err = fmt.Errorf("%w: its minutes were not finished (%s)", ErrNoRoom, turn.Stop)
		default:
			return text, used, nil
		}
	}
	return "", used, fmt.Errorf("shortening the conversation: %w", err)
}

// quoted names the blocks of minutes that hold the person's own words, so
// that the next compaction finds them again.
const quoted = "person"

// frame puts the minutes together with what must survive word for word.
func (l *Loop) frame(session string, old []model.Message, summary string) ([]abi.Content, error) {
	t, err := template.ParseFS(prompts, "prompts/minutes.md")
	if err != nil {
		return nil, fmt.Errorf("reading the form of minutes: %w", err)
	}
	data := struct {
		Summary, Plan string
		Changed       []string
		Asked         bool
	}{Summary: summary}
	if l.Compact.Plan != nil {
		data.Plan = l.Compact.Plan(session)
	}
	if l.Compact.Changed != nil {
		data.Changed = l.Compact.Changed(session)
	}
	words := asked(old)
	data.Asked = len(words) > 0
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		return nil, fmt.Errorf("writing minutes: %w", err)
	}
	content := []abi.Content{abi.TextBlock(strings.TrimSpace(b.String()) + "\n")}
	for _, w := range words {
		content = append(content, abi.Content{Type: abi.TypeText, Name: quoted, Text: w})
	}
	return content, nil
}

// asked is what the person said, in a few kilobytes: the first request and
// the newest ones, each as a quotation. What the host had to say is not the
// person's.
func asked(messages []model.Message) []string {
	var all []string
	for _, m := range messages {
		if m.Role != model.RoleUser {
			continue
		}
		if words := quotes(m); len(words) > 0 {
			all = append(all, words...)
		} else if s := said(m); s != "" && !slices.ContainsFunc(remarks, func(r string) bool { return strings.HasPrefix(s, r) }) {
			all = append(all, "\n> "+strings.ReplaceAll(clip(s, askedShown/2), "\n", "\n> ")+"\n")
		}
	}
	if len(all) == 0 {
		return nil
	}
	left := askedShown - len(all[0])
	first := len(all)
	for first > 1 && left >= len(all[first-1]) {
		first--
		left -= len(all[first])
	}
	return append(all[:1:1], all[first:]...)
}

// Attached names the blocks of a prompt that a person's words brought along:
// files and pictures, which are not those words.
const Attached = "attached"

// own names the blocks that the loop itself has to say to the model.
const own = "host"

// remarks are how the loop's own words began before they were named.
var remarks = []string{"[The background agent ", "[This is step ", "[A hook of the person adds: "}

// said is what the person said themselves in a message.
func said(m model.Message) string {
	var b strings.Builder
	for _, k := range m.Blocks {
		if c := k.Content; c != nil && c.Type == abi.TypeText && c.Name != Attached && c.Name != own && c.Name != Noted {
			b.WriteString(c.Text)
		}
	}
	return strings.TrimSpace(b.String())
}

// spoken is the text of a message of the person without what it brought along,
// or of the host.
func spoken(content []abi.Content) string {
	return or(said(model.User(content...)), abi.Result{Content: content}.Text())
}

// quotes are the person's words in earlier minutes.
func quotes(m model.Message) []string {
	var out []string
	for _, b := range m.Blocks {
		if b.Content != nil && b.Content.Name == quoted {
			out = append(out, b.Content.Text)
		}
	}
	return out
}

// narrate writes a conversation down as text, for a model that shall not take
// part in it. Long results are cut, and then the middle, to fit into most bytes.
func narrate(messages []model.Message, most int) string {
	var parts []string
	for _, m := range messages {
		for _, b := range m.Blocks {
			switch {
			case b.Content != nil && b.Content.Name == Noted: // given anew where it matters again
			case b.Content != nil && b.Content.Type == abi.TypeText:
				parts = append(parts, fmt.Sprintf("<%s>\n%s\n</%s>", m.Role, b.Content.Text, m.Role))
			case b.Content != nil:
				parts = append(parts, fmt.Sprintf("<%s>(%s)</%s>", m.Role, b.Content.Type, m.Role))
			case b.Call != nil:
				parts = append(parts, fmt.Sprintf("<call tool=%q>%s</call>", b.Call.Name, clip(b.Call.Args, resultShown)))
			case b.Result != nil:
				parts = append(parts, fmt.Sprintf("<result tool=%q error=%v>\n%s\n</result>", b.Result.Name, b.Result.IsError, clip(b.Result.Text(), resultShown)))
			}
		}
	}
	all := strings.Join(parts, "\n")
	if most = max(most, 8<<10); len(all) <= most {
		return all
	}
	return clip(all, most)
}

// clip cuts the middle out of a text that is over most bytes.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	head := strings.ToValidUTF8(s[:most*2/3], "")
	end := strings.ToValidUTF8(s[len(s)-most/3:], "")
	return fmt.Sprintf("%s\n(… %d bytes left out …)\n%s", head, len(s)-len(head)-len(end), end)
}

// Title asks the small model what a conversation is about, in a few words. What
// that costs is the session's.
func (l *Loop) Title(ctx context.Context, s *Session) (string, error) {
	system, err := prompts.ReadFile("prompts/title.md")
	if err != nil {
		return "", err
	}
	m, price := l.Model, l.Price
	if l.Compact.Model != nil {
		m, price = l.Compact.Model, l.Compact.Price
	}
	var turn model.Turn
	err = turn.Read(l.Retry.Wrap(m).Stream(ctx, model.Request{
		System: string(system), NoCache: true, MaxTokens: 1024, Messages: []model.Message{model.User(abi.TextBlock(narrate(s.Messages(), 8<<10)))},
	}))
	used := Usage{Usage: turn.Usage}
	if price != nil {
		used.Cost = price.Cost(turn.Usage)
	}
	s.charge(Usage{}, used)
	if err != nil {
		return "", err
	}
	line := strings.Join(strings.Fields(strings.Trim(strings.TrimSpace(turn.Message.Text()), `"'“”«».#*`)), " ")
	if r := []rune(line); len(r) > 80 {
		line = string(r[:79]) + "…"
	}
	return line, nil
}
