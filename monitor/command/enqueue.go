package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

const (
	defaultExpires = time.Minute // of what is asked of workers
	minExpires     = 5 * time.Second
	maxExpires     = time.Hour
	// groupControl orders all that is asked of workers, so that what is asked first arrives first.
	groupControl = "control"
)

// request is an order about to be written.
type draft struct {
	action   string
	target   string
	identity any // what makes two orders the same one, as JSON
	detail   any // what the audit log keeps, as JSON
	commands []history.Command
	warnings []Warning
}

// enqueue writes an order, with its audit record, and has it sent.
func (s *Service) enqueue(ctx context.Context, caller Caller, r draft) (Receipt, error) {
	now := s.now()
	print, err := fingerprint(r)
	if err != nil {
		return Receipt{}, err
	}
	audit, err := s.audit(caller, now, r.action, r.target, r.detail)
	if err != nil {
		return Receipt{}, err
	}
	for i := range r.commands {
		r.commands[i].CreatedAt, r.commands[i].DueAt, r.commands[i].Actor = now, now, caller.Actor
	}
	commands, replayed, err := s.outbox.Enqueue(ctx, history.CommandRequest{Commands: r.commands, Audit: audit, IdempotencyKey: caller.IdempotencyKey, Fingerprint: print})
	if err != nil {
		return Receipt{}, fmt.Errorf("write order: %w", err)
	}
	s.Relay.Wake()
	receipt := Receipt{Commands: commands, Replayed: replayed}
	for _, w := range r.warnings {
		receipt.Warnings = append(receipt.Warnings, w.Message)
	}
	return receipt, nil
}

// fingerprint tells orders apart.
func fingerprint(r draft) (string, error) {
	b, err := json.Marshal(struct {
		Action string
		Same   any
	}{r.action, r.identity})
	if err != nil {
		return "", fmt.Errorf("write order as JSON: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// audit is the record of something that somebody does.
func (s *Service) audit(caller Caller, now time.Time, action, target string, detail any) (history.AuditRecord, error) {
	if s.Relay == nil {
		return history.AuditRecord{}, &Error{Kind: Conflict, Message: "this dashboard is read-only"}
	}
	b, err := json.Marshal(struct {
		From   string `json:"from,omitempty"`
		Detail any    `json:"detail,omitempty"`
	}{caller.Endpoint, detail})
	if err != nil {
		return history.AuditRecord{}, fmt.Errorf("write audit record: %w", err)
	}
	return history.AuditRecord{At: now, Actor: caller.Actor, RemoteAddr: caller.RemoteAddr, Action: action, Target: target, Detail: string(b)}, nil
}

// expiry is when a command that may wait for a time is stale.
func (s *Service) expiry(after time.Duration) (time.Time, error) {
	if after == 0 {
		after = defaultExpires
	}
	if after < minExpires || after > maxExpires {
		return time.Time{}, &Error{Field: "expires_seconds", Message: "expires_seconds must be from 5 to 3,600"}
	}
	return s.now().Add(after), nil
}

// replayed returns the order that the key was used for before. An order is looked up before it is checked, since what it
// did may have made it impossible: a task that was revoked cannot be revoked again.
func (s *Service) replayed(ctx context.Context, caller Caller, r draft) (Receipt, bool, error) {
	if caller.IdempotencyKey == "" {
		return Receipt{}, false, nil
	}
	print, err := fingerprint(r)
	if err != nil {
		return Receipt{}, false, err
	}
	commands, ok, err := s.outbox.CommandsByKey(ctx, caller.IdempotencyKey, print, s.now())
	if err != nil {
		return Receipt{}, false, fmt.Errorf("look for the order of the key: %w", err)
	}
	return Receipt{Commands: commands, Replayed: true}, ok, nil
}
