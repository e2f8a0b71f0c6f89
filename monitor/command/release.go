package command

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/locks"
)

// ReleaseRequest deletes a lock that somebody saw.
type ReleaseRequest struct {
	Key     string
	Version string // locks.Lock.Version as it was seen
	Confirm string // what Preview.Confirm asks for
}

// PreviewRelease returns what releasing a lock would do, and the lock as it is now.
func (s *Service) PreviewRelease(ctx context.Context, key string) (Preview, locks.Lock, error) {
	l, err := s.findLock(ctx, key)
	if err != nil {
		return Preview{}, l, err
	}
	var list warnings
	h := l.Holder
	switch {
	case l.State == locks.Completed:
		list.warn(true, "The call has completed: without the lock it can run again.")
	case h == nil:
		list.warn(true, "Which task holds the lock is unknown: if it still runs, a second run can start beside it.")
	case h.Status == locks.Running:
		list.warn(true, "Task %s still runs: without the lock a second run can start beside it.", h.TaskID)
	case h.Status == locks.Waiting:
		list.warn(true, "Task %s was sent and has not started: without the lock the same call can be sent again.", h.TaskID)
	case h.Status == locks.UnknownHolder:
		list.warn(true, "Nothing is known of task %s, which holds the lock: if it still runs, a second run can start beside it.", h.TaskID)
	default:
		list.warn(false, "Task %s %s: the next call can run.", h.TaskID, h.Why)
	}
	confirm := l.Name
	if confirm == "" {
		confirm = l.Key
	}
	return Preview{Summary: "Release lock", Targets: []string{l.Key}, Warnings: list, Confirm: confirm}, l, nil
}

// findLock reads a lock that can be released.
func (s *Service) findLock(ctx context.Context, key string) (locks.Lock, error) {
	if s.Locks == nil {
		return locks.Lock{}, &Error{Kind: NotFound, Message: "no Redis with locks is configured"}
	}
	l, ok, err := s.Locks.Find(ctx, key)
	switch {
	case err != nil:
		return l, &Error{Kind: Conflict, Message: "the lock cannot be read: " + err.Error()}
	case !ok:
		return l, &Error{Kind: NotFound, Field: "key", Message: "there is no such lock: it was released or has expired"}
	case l.Problem != "" && (len(l.Seen().Value) >= locks.MaxValue || l.Value == ""):
		return l, &Error{Kind: Conflict, Field: "key", Message: "the key cannot be released here, since its value cannot be compared"}
	}
	return l, nil
}

// Release enqueues the deletion of a lock, which happens only if its value, its expiry and its task are still those that were
// seen.
func (s *Service) Release(ctx context.Context, caller Caller, r ReleaseRequest) (Receipt, error) {
	d := draft{action: KindRelease, target: "key " + r.Key, identity: r}
	return s.submit(ctx, caller, d, func(d *draft) error {
		v, l, err := s.PreviewRelease(ctx, r.Key)
		switch {
		case err != nil:
			return err
		case r.Version != l.Version:
			return &Error{Kind: Conflict, Field: "version", Message: "the lock has changed since you looked at it: look again"}
		case r.Confirm != v.Confirm:
			return &Error{Field: "confirm", Message: "confirm must be " + v.Confirm}
		}
		d.target = "key " + l.Key
		seen := l.Seen()
		c, err := newCommand(KindRelease, d.target, releasePayload{Shown: l.Key, Key: seen.Key, Value: seen.Value, ExpiresAt: seen.ExpiresAt, Holder: seen.Holder})
		c.Target, c.Summary, c.TaskID, c.ExpiresAt = d.target, v.Summary, seen.Holder, s.now().Add(defaultExpires)
		d.commands, d.warnings = []history.Command{c}, v.Warnings
		d.detail = map[string]any{"name": l.Name, "state": l.State, "holder": seen.Holder, "warnings": v.Warnings}
		return err
	})
}

// release deletes a lock. Its reply is what became of it. A Redis that is away is no broker that is away: it holds back no
// other command.
func (s *Service) release(ctx context.Context, p releasePayload) (relay.Sent, error) {
	if s.Locks == nil {
		return relay.Sent{}, fmt.Errorf("%w: no Redis with locks is configured", relay.ErrPermanent)
	}
	outcome, err := s.Locks.Release(ctx, locks.Seen{Key: p.Key, Value: p.Value, ExpiresAt: p.ExpiresAt, Holder: p.Holder})
	if err != nil {
		return relay.Sent{}, relay.Elsewhere(err)
	}
	answer := history.Reply{Node: "redis", At: s.now(), OK: outcome == locks.Released, Text: outcomeWords(outcome)}
	p.Key, p.Value = p.Shown, ""
	kept, err := json.Marshal(p)
	if err != nil {
		return relay.Sent{}, fmt.Errorf("%w: write payload: %w", relay.ErrPermanent, err)
	}
	return relay.Sent{Payload: kept, Replies: func(_ context.Context, report func([]history.Reply)) bool {
		report([]history.Reply{answer})
		return true
	}}, nil
}

// outcomeWords says what became of a release.
func outcomeWords(o locks.Outcome) string {
	switch o {
	case locks.Released:
		return "lock released"
	case locks.Gone:
		return "nothing released: the lock was gone already"
	case locks.Changed:
		return "nothing released: the value of the lock has changed"
	case locks.TakenAgain:
		return "nothing released: the lock was taken again"
	case locks.OtherHolder:
		return "nothing released: another task holds the lock now"
	}
	return string(o)
}

// releasePayload is the payload of a release.
type releasePayload struct {
	Shown     string    `json:"shown,omitempty"` // Key as locks.Lock has it
	Key       string    `json:"key"`
	Value     string    `json:"value"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Holder    string    `json:"holder,omitempty"`
}
