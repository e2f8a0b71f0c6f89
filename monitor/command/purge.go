package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state/query"
)

// PreviewPurge returns what purging a queue would remove.
func (s *Service) PreviewPurge(ctx context.Context, queue string) (Preview, error) {
	if err := checkQueue(queue); err != nil {
		return Preview{}, err
	}
	v := Preview{Summary: "Purge queue " + queue, Targets: []string{"queue " + queue}, Confirm: queue}
	stats, ok := s.queueStats(ctx, queue)
	if !ok {
		v.Warnings = []Warning{{Message: "The broker cannot be reached now: how many messages this removes is not known.", Severe: true}}
		return v, nil
	}
	q, ok := found(stats, queue)
	switch {
	case ok && q.Missing:
		return Preview{}, &Error{
			Kind: NotFound, Field: "queue", Message: "there is no queue " + queue, Nearest: s.nearestQueue(queue),
		}
	case !ok || q.Ready == nil:
		v.Warnings = []Warning{{Message: "How many messages this removes is not known.", Severe: true}}
	case *q.Ready == 0:
		v.Warnings = []Warning{{Message: "The queue is empty now."}}
	default:
		n := count(int(*q.Ready), "message that waits now is", "messages that wait now are")
		v.Warnings = []Warning{{Message: n + " lost for good.", Severe: true}}
	}
	if q.Unacked != nil && *q.Unacked > 0 {
		v.Warnings = append(v.Warnings, Warning{
			Message: count(int(*q.Unacked), "message that a worker holds stays.", "messages that workers hold stay."),
		})
	}
	return v, nil
}

// nearestQueue returns the known queue that was probably meant.
func (s *Service) nearestQueue(name string) string {
	return query.Nearest(name, keys(s.Inspector.CachedTopology().Queues))
}

// Purge enqueues emptying a queue. confirm must be the queue's name.
func (s *Service) Purge(ctx context.Context, caller Caller, queue, confirm string) (Receipt, error) {
	r := draft{action: kindPurge, target: "queue " + queue, identity: queue}
	if receipt, ok, err := s.replayed(ctx, caller, r); ok || err != nil {
		return receipt, err
	}
	v, err := s.PreviewPurge(ctx, queue)
	if err != nil {
		return Receipt{}, err
	}
	if confirm != queue {
		return Receipt{}, &Error{Field: "confirm", Message: "confirm must be the name of the queue, " + queue}
	}
	expires, err := s.expiry(0)
	if err != nil {
		return Receipt{}, err
	}
	c, err := newCommand(kindPurge, "queue "+queue, purgePayload{Queue: queue})
	if err != nil {
		return Receipt{}, err
	}
	c.Target, c.Summary, c.ExpiresAt = "queue "+queue, v.Summary, expires
	r.commands, r.warnings, r.detail = []history.Command{c}, v.Warnings, v.Warnings
	return s.enqueue(ctx, caller, r)
}

// requeueTime is how long requeued commands may wait.
const requeueTime = 10 * time.Minute

// maxIDs bounds what one request may requeue or discard.
const maxIDs = 1_000

// Requeue makes dead commands pending again and returns how many.
func (s *Service) Requeue(ctx context.Context, caller Caller, ids []int64) (int, error) {
	audit, ids, err := s.about(caller, "requeue", ids)
	if err != nil {
		return 0, err
	}
	now := audit.At
	n, err := s.outbox.Requeue(ctx, ids, now, now.Add(requeueTime), audit)
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
	audit, ids, err := s.about(caller, "discard", ids)
	if err != nil {
		return 0, err
	}
	n, err := s.outbox.Discard(ctx, ids, audit.At, audit)
	if err != nil {
		return 0, fmt.Errorf("discard commands: %w", err)
	}
	return n, nil
}

// about checks the ids of commands and returns them with the audit record of an action.
func (s *Service) about(caller Caller, action string, ids []int64) (history.AuditRecord, []int64, error) {
	if len(ids) == 0 {
		return history.AuditRecord{}, nil, &Error{Field: "ids", Message: "ids must name a command at least"}
	}
	if len(ids) > maxIDs {
		return history.AuditRecord{}, nil, &Error{Field: "ids", Message: fmt.Sprintf("ids must be at most %d", maxIDs)}
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	target := count(len(ids), "command", "commands")
	if len(ids) == 1 {
		target = fmt.Sprintf("command %d", ids[0])
	}
	audit, err := s.audit(caller, s.now(), action, target, map[string]any{"ids": ids})
	return audit, ids, err
}
