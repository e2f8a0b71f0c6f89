package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// requeueTime is how long requeued commands may wait.
const requeueTime = 10 * time.Minute

// Requeue makes dead commands pending again and returns how many.
func (s *Service) Requeue(ctx context.Context, caller Caller, ids []int64) (int, error) {
	audit, ids, err := s.auditIDs(caller, "requeue", ids)
	if err != nil {
		return 0, err
	}
	n, err := s.outbox.Requeue(ctx, ids, audit.At, audit.At.Add(requeueTime), audit)
	if err != nil {
		return 0, fmt.Errorf("requeue commands: %w", err)
	}
	if n > 0 {
		s.Relay.Wake()
	}
	return n, nil
}

// Discard removes dead letters, cancels pending commands, and returns how many.
func (s *Service) Discard(ctx context.Context, caller Caller, ids []int64) (int, error) {
	audit, ids, err := s.auditIDs(caller, "discard", ids)
	if err != nil {
		return 0, err
	}
	n, err := s.outbox.Discard(ctx, ids, audit.At, audit)
	if err != nil {
		return 0, fmt.Errorf("discard commands: %w", err)
	}
	return n, nil
}

// auditIDs returns the ids of commands, sorted and without duplicates, with the audit record of an action.
func (s *Service) auditIDs(caller Caller, action string, ids []int64) (history.AuditRecord, []int64, error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	target := count(len(ids), "command", "commands")
	if len(ids) == 1 {
		target = fmt.Sprintf("command %d", ids[0])
	}
	audit, err := s.audit(caller, s.now(), action, target, map[string]any{"ids": ids})
	return audit, ids, err
}
