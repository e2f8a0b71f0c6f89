package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/state/query"
)

// Actions of a DeadLetterRequest, which are the kinds of their commands too.
const (
	RequeueDeadLetters = "requeue_dead_letters"
	PurgeDeadLetters   = "purge_dead_letters"
)

const (
	letterTime   = 10 * time.Minute // that changes of dead letters may wait
	letterPages  = 100              // pages read for one request
	lettersAsked = 100              // tasks of dead letters that are looked up
)

// DeadLetterRequest requeues or purges dead letters of an application's outbox.
type DeadLetterRequest struct {
	Action string  // RequeueDeadLetters or PurgeDeadLetters
	Outbox string  // its name
	IDs    []int64 // of dead letters, at most MaxCap, or else
	All    bool    // all of them
	Name   string  // with All, only those of a task name; a * at its end stands for any text
	Cap    int     // with All, most dead letters to change, the newest: 1 to MaxCap; DefaultCap if zero
}

// DeadLetterPreview is what a DeadLetterRequest would do.
type DeadLetterPreview struct {
	Preview
	Selected int  // dead letters that it would change
	Gone     int  // ids of no dead letter
	Capped   bool // there are more than the cap
}

// lettersPayload is that of both kinds of commands.
type lettersPayload struct {
	Outbox  string               `json:"outbox"`
	Letters []outboxwatch.Letter `json:"letters"`
}

// lettersPlan is a checked DeadLetterRequest with what it selects.
type lettersPlan struct {
	DeadLetterRequest
	outbox  outboxwatch.Outbox
	letters []outboxwatch.DeadLetter // oldest first
	capped  bool
}

// HasOutboxes reports whether outboxes of applications are watched.
func (s *Service) HasOutboxes() bool { return s.outboxes != nil }

// PreviewDeadLetters checks a request and returns what it would do.
func (s *Service) PreviewDeadLetters(ctx context.Context, o DeadLetterRequest) (DeadLetterPreview, error) {
	p, err := s.planLetters(ctx, o)
	if err != nil {
		return DeadLetterPreview{}, err
	}
	return s.previewLetters(ctx, p), nil
}

// ChangeDeadLetters enqueues the commands of a request. confirm must be what its preview asks for.
func (s *Service) ChangeDeadLetters(ctx context.Context, caller Caller, o DeadLetterRequest, confirm string) (Receipt, error) {
	d := draft{action: o.Action, target: "outbox " + o.Outbox, identity: o}
	return s.submit(ctx, caller, d, func(d *draft) error {
		p, err := s.planLetters(ctx, o)
		if err != nil {
			return err
		}
		v := s.previewLetters(ctx, p)
		switch {
		case v.Selected == 0:
			return &Error{Kind: Conflict, Message: "none of these is a dead letter"}
		case confirm != v.Confirm && v.Confirm != "":
			return &Error{Field: "confirm", Message: "confirm must be the name of the outbox, " + v.Confirm}
		}
		d.warnings = v.Warnings
		d.detail = map[string]any{
			"ids": o.IDs[:min(len(o.IDs), chunk)], "all": o.All, "name": o.Name, "cap": o.Cap,
			"chosen": v.Selected, "gone": v.Gone, "capped": v.Capped, "names": p.names(),
		}
		d.commands, err = p.commands(s.now())
		return err
	})
}

// planLetters checks a request and reads the dead letters that it selects.
func (s *Service) planLetters(ctx context.Context, o DeadLetterRequest) (*lettersPlan, error) {
	p := &lettersPlan{DeadLetterRequest: o}
	switch {
	case o.Action != RequeueDeadLetters && o.Action != PurgeDeadLetters:
		return nil, &Error{Field: "action", Message: "action must be " + RequeueDeadLetters + " or " + PurgeDeadLetters}
	case o.All == (len(o.IDs) > 0):
		return nil, &Error{Field: "ids", Message: "name dead letters by ids, or all of them"}
	case len(o.IDs) > MaxCap:
		return nil, &Error{Field: "ids", Message: fmt.Sprintf("ids must be at most %d", MaxCap)}
	case o.Cap < 0 || o.Cap > MaxCap:
		return nil, &Error{Field: "cap", Message: fmt.Sprintf("cap must be 1 to %d", MaxCap)}
	}
	p.Cap = cmp.Or(o.Cap, DefaultCap)
	if err := s.findOutbox(p); err != nil {
		return nil, err
	}
	var err error
	if o.All {
		err = s.allLetters(ctx, p)
	} else {
		err = s.lettersByID(ctx, p)
	}
	if e, ok := errors.AsType[*outboxwatch.Error](err); ok {
		return nil, &Error{Kind: Conflict, Message: lowerFirst(e.Text)}
	}
	slices.SortFunc(p.letters, func(a, b outboxwatch.DeadLetter) int { return cmp.Compare(a.ID, b.ID) })
	return p, err
}

// findOutbox returns why the outbox of a plan cannot be changed, as an *Error.
func (s *Service) findOutbox(p *lettersPlan) error {
	if s.outboxes == nil {
		return &Error{Kind: NotFound, Field: "outbox", Message: "no application's outbox is watched"}
	}
	var known []string
	for _, o := range s.outboxes.Snapshot() {
		known = append(known, o.Name)
		if o.Name == p.Outbox {
			p.outbox = o
		}
	}
	if p.outbox.Name == "" {
		return &Error{Kind: NotFound, Field: "outbox", Message: "no outbox is named " + p.Outbox, Nearest: query.Nearest(p.Outbox, known)}
	}
	stats := p.outbox.Stats
	grants := slices.DeleteFunc(slices.Clone(stats.MissingGrants), func(grant string) bool {
		return p.Action == PurgeDeadLetters && !strings.HasPrefix(grant, "GRANT DELETE ")
	})
	switch {
	case p.outbox.Err != nil:
		return &Error{Kind: Conflict, Message: lowerFirst(p.outbox.Err.Text)}
	case stats.ReadOnly != "":
		return &Error{Kind: Conflict, Message: lowerFirst(stats.ReadOnly)}
	case len(grants) > 0:
		return &Error{Kind: Conflict, Message: "the database does not permit this to Umbel's user. It needs: " + strings.Join(grants, "; ")}
	}
	return nil
}

// lowerFirst returns a sentence without its full stop, to be part of another one.
func lowerFirst(sentence string) string {
	sentence = strings.TrimSuffix(sentence, ".")
	if sentence == "" {
		return "the outbox cannot be read"
	}
	return strings.ToLower(sentence[:1]) + sentence[1:]
}

// lettersByID reads dead letters by their ids.
func (s *Service) lettersByID(ctx context.Context, p *lettersPlan) error {
	ids := slices.Compact(slices.Sorted(slices.Values(p.IDs)))
	for part := range slices.Chunk(ids, outboxwatch.MaxPage) {
		page, err := s.outboxes.DeadLetters(ctx, p.Outbox, outboxwatch.DeadLetterRequest{IDs: part, Limit: len(part)})
		if err != nil {
			return err
		}
		p.letters = append(p.letters, page.DeadLetters...)
	}
	p.IDs = ids
	return nil
}

// allLetters reads the newest dead letters of a name.
func (s *Service) allLetters(ctx context.Context, p *lettersPlan) error {
	r := outboxwatch.DeadLetterRequest{Name: p.Name, Limit: outboxwatch.MaxPage}
	for range letterPages {
		page, err := s.outboxes.DeadLetters(ctx, p.Outbox, r)
		if err != nil {
			return err
		}
		p.letters = append(p.letters, page.DeadLetters...)
		if r.After = page.Next; r.After == "" || len(p.letters) > p.Cap {
			break
		}
	}
	p.capped = r.After != "" || len(p.letters) > p.Cap
	p.letters = p.letters[:min(len(p.letters), p.Cap)]
	return nil
}

// names returns how many letters there are of each task name.
func (p *lettersPlan) names() map[string]int {
	names := map[string]int{}
	for i := range p.letters {
		names[p.letters[i].TaskName]++
	}
	return names
}

// summary says what is done to n letters.
func (p *lettersPlan) summary(n int) string {
	what := count(n, "dead letter", "dead letters")
	if p.Action == PurgeDeadLetters {
		return "Remove " + what + " of " + p.Outbox
	}
	return "Move " + what + " back into the outbox of " + p.Outbox
}

// previewLetters returns what a plan does.
func (s *Service) previewLetters(ctx context.Context, p *lettersPlan) DeadLetterPreview {
	v := DeadLetterPreview{Selected: len(p.letters), Capped: p.capped}
	if !p.All {
		v.Gone = len(p.IDs) - len(p.letters)
	}
	v.Summary = p.summary(len(p.letters))
	names := p.names()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		v.Targets = append(v.Targets, fmt.Sprintf("%s (%d)", name, names[name]))
	}
	if p.Action == PurgeDeadLetters || len(p.letters) > unconfirmed {
		v.Confirm = p.Outbox
	}
	var list warnings
	if v.Gone > 0 {
		list.warn(false, "%s there any longer: requeued or removed meanwhile.", count(v.Gone, "of them is not", "of them are not"))
	}
	if v.Capped {
		list.warn(true, "There are more dead letters than these: the cap is %d.", p.Cap)
	}
	if p.Action == PurgeDeadLetters {
		list.warn(true, "%s lost for good: the application has no other copy of the calls.", count(len(p.letters), "message is", "messages are"))
	} else {
		s.warnRequeue(ctx, p, &list)
	}
	v.Warnings = list
	return v
}

// warnRequeue warns of what requeued letters do, or do not.
func (s *Service) warnRequeue(ctx context.Context, p *lettersPlan, list *warnings) {
	foreign, ran := 0, 0
	for i := range p.letters {
		l := &p.letters[i]
		if l.SchemaVersion < outboxwatch.MinSchemaVersion || l.SchemaVersion > outboxwatch.MaxSchemaVersion {
			foreign++
		}
		if i >= lettersAsked {
			continue
		}
		if t, err := s.tasks.Task(ctx, l.TaskID); err == nil && len(t.Executions) > 0 {
			ran++
		}
	}
	if ran > 0 {
		list.warn(true, "%s been received by a worker before, and would run again.", count(ran, "of these tasks has", "of these tasks have"))
	}
	if foreign > 0 {
		list.warn(true, "%s a schema_version that the relay leaves in the outbox.", count(foreign, "of them has", "of them have"))
	}
	if p.outbox.Relay.Stopped {
		list.warn(true, "The relay of %s appears to have stopped: nothing in the outbox is sent until it runs.", p.Outbox)
	}
}

// commands returns the commands of a plan, of MaxLetters each.
func (p *lettersPlan) commands(now time.Time) ([]history.Command, error) {
	var list []history.Command
	for part := range slices.Chunk(p.letters, outboxwatch.MaxLetters) {
		payload := lettersPayload{Outbox: p.Outbox}
		for i := range part {
			payload.Letters = append(payload.Letters, outboxwatch.Letter{ID: part[i].ID, TaskID: part[i].TaskID})
		}
		c, err := newCommand(p.Action, "outbox "+p.Outbox, payload)
		if err != nil {
			return nil, err
		}
		c.Target, c.Summary, c.ExpiresAt = "outbox "+p.Outbox, p.summary(len(part)), now.Add(letterTime)
		if len(part) == 1 {
			c.TaskID = part[0].TaskID
		}
		list = append(list, c)
	}
	return list, nil
}

// changeLetters executes a command. Its reply says what became of the letters, since some may have been requeued meanwhile,
// by this command too if the record of its success was lost.
func (s *Service) changeLetters(ctx context.Context, c history.Command) (relay.Sent, error) {
	var p lettersPayload
	if err := decode(c, &p); err != nil {
		return relay.Sent{}, err
	}
	if s.outboxes == nil {
		return relay.Sent{}, fmt.Errorf("%w: no application's outbox is watched", relay.ErrPermanent)
	}
	change, did := s.outboxes.Requeue, "moved into the outbox"
	if c.Kind == PurgeDeadLetters {
		change, did = s.outboxes.Purge, "removed"
	}
	done, err := change(ctx, p.Outbox, p.Letters)
	if err != nil {
		return relay.Sent{}, letterFailure(err)
	}
	text := count(len(done.Done), "dead letter", "dead letters") + " " + did
	if n := len(done.Waiting); n > 0 {
		text += fmt.Sprintf("; %s in the outbox already", count(n, "is", "are"))
	}
	if n := len(p.Letters) - len(done.Done) - len(done.Waiting); n > 0 {
		text += fmt.Sprintf("; %s no dead letter any longer: requeued or removed before", count(n, "is", "are"))
	}
	answer := history.Reply{Node: "outbox", At: s.now(), OK: true, Text: text}
	return relay.Sent{Replies: func(_ context.Context, report func([]history.Reply)) bool {
		report([]history.Reply{answer})
		return true
	}}, nil
}

// letterFailure classifies an error of an application's database for the relay. It is none of the broker, so no other
// command waits for it.
func letterFailure(err error) error {
	e, ok := errors.AsType[*outboxwatch.Error](err)
	if errors.Is(err, outboxwatch.ErrUnknownSource) {
		return fmt.Errorf("%w: %w", relay.ErrPermanent, err)
	}
	if !ok {
		return relay.Elsewhere(err)
	}
	switch e.Fault {
	case outboxwatch.FaultPermission, outboxwatch.FaultNoTable, outboxwatch.FaultColumns, outboxwatch.FaultIndexes:
		return fmt.Errorf("%w: %w", relay.ErrPermanent, err)
	default:
		return relay.Elsewhere(err)
	}
}
