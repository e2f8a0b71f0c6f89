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
	defaultExpires = time.Minute // of control commands
	// groupControl keeps control commands in order.
	groupControl = "control"
)

// draft is a request about to be enqueued.
type draft struct {
	action   string
	target   string
	identity any // what makes two requests the same, as JSON
	detail   any // of the audit record, as JSON
	commands []history.Command
	warnings []Warning
}

// submit enqueues the commands that plan adds to a draft, with its audit record, and wakes the relay. A request whose
// idempotency key was used before returns the commands of then. It is not planned again, since it may have made itself
// impossible: a revoked task cannot be revoked again.
func (s *Service) submit(ctx context.Context, caller Caller, d draft, plan func(d *draft) error) (Receipt, error) {
	print, err := fingerprint(d)
	if err != nil {
		return Receipt{}, err
	}
	now := s.now()
	if caller.IdempotencyKey != "" {
		commands, ok, err := s.outbox.CommandsByKey(ctx, caller.IdempotencyKey, print, now)
		if err != nil {
			return Receipt{}, fmt.Errorf("look up idempotency key: %w", err)
		}
		if ok {
			return Receipt{Commands: commands, Replayed: true}, nil
		}
	}
	if err := plan(&d); err != nil {
		return Receipt{}, err
	}
	now = s.now()
	audit, err := s.audit(caller, now, d.action, d.target, d.detail)
	if err != nil {
		return Receipt{}, err
	}
	for i := range d.commands {
		d.commands[i].CreatedAt, d.commands[i].DueAt, d.commands[i].Actor = now, now, caller.Actor
	}
	commands, replayed, err := s.outbox.Enqueue(ctx, history.CommandRequest{Commands: d.commands, Audit: audit, IdempotencyKey: caller.IdempotencyKey, Fingerprint: print})
	if err != nil {
		return Receipt{}, fmt.Errorf("enqueue commands: %w", err)
	}
	s.Relay.Wake()
	receipt := Receipt{Commands: commands, Replayed: replayed}
	for _, w := range d.warnings {
		receipt.Warnings = append(receipt.Warnings, w.Message)
	}
	return receipt, nil
}

// fingerprint identifies a request.
func fingerprint(r draft) (string, error) {
	b, err := json.Marshal(struct {
		Action string
		Same   any
	}{r.action, r.identity})
	if err != nil {
		return "", fmt.Errorf("encode request: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// audit returns the audit record of a request. It is an error in a read-only service.
func (s *Service) audit(caller Caller, now time.Time, action, target string, detail any) (history.AuditRecord, error) {
	if s.Relay == nil {
		return history.AuditRecord{}, &Error{Kind: Conflict, Message: "this dashboard is read-only"}
	}
	b, err := json.Marshal(struct {
		Detail any `json:"detail,omitempty"`
	}{detail})
	if err != nil {
		return history.AuditRecord{}, fmt.Errorf("write audit record: %w", err)
	}
	return history.AuditRecord{
		At: now, Kind: history.AuditAction, Outcome: history.AuditAccepted, Actor: caller.Actor, Method: caller.Method, Role: caller.Role,
		RemoteAddr: caller.RemoteAddr, Endpoint: caller.Endpoint, Action: action, Target: target, Detail: string(b),
	}, nil
}
