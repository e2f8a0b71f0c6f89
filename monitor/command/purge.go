package command

import (
	"context"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state/query"
)

// PreviewPurge returns what purging a queue would remove.
func (s *Service) PreviewPurge(ctx context.Context, queue string) (Preview, error) {
	if err := checkQueue(queue); err != nil {
		return Preview{}, err
	}
	var list warnings
	stats, ok := s.queueStats(ctx, queue)
	q, known := found(stats, queue)
	switch {
	case !ok:
		list.warn(true, "The broker is unreachable: the number of messages to remove is unknown.")
	case known && q.Missing:
		return Preview{}, &Error{
			Kind: NotFound, Field: "queue", Message: "there is no queue " + queue, Nearest: s.nearestQueue(queue),
		}
	case q.Ready == nil:
		list.warn(true, "The number of messages to remove is unknown.")
	case *q.Ready == 0:
		list.warn(false, "The queue is empty now.")
	default:
		list.warn(true, "%s lost for good.", count(int(*q.Ready), "waiting message is", "waiting messages are"))
	}
	if q.Unacked != nil && *q.Unacked > 0 {
		list.warn(false, "%s.", count(int(*q.Unacked), "message that a worker holds stays", "messages that workers hold stay"))
	}
	target := "queue " + queue
	return Preview{Summary: "Purge " + target, Targets: []string{target}, Warnings: list, Confirm: queue}, nil
}

// nearestQueue returns the known queue that was probably meant.
func (s *Service) nearestQueue(name string) string {
	return query.Nearest(name, keys(s.Inspector.CachedTopology().Queues))
}

// Purge enqueues emptying a queue. confirm must be the queue's name.
func (s *Service) Purge(ctx context.Context, caller Caller, queue, confirm string) (Receipt, error) {
	d := draft{action: kindPurge, target: "queue " + queue, identity: queue}
	return s.submit(ctx, caller, d, func(d *draft) error {
		v, err := s.PreviewPurge(ctx, queue)
		if err != nil {
			return err
		}
		if confirm != queue {
			return &Error{Field: "confirm", Message: "confirm must be the name of the queue, " + queue}
		}
		c, err := newCommand(kindPurge, d.target, purgePayload{Queue: queue})
		c.Target, c.Summary, c.ExpiresAt = d.target, v.Summary, s.now().Add(defaultExpires)
		d.commands, d.warnings, d.detail = []history.Command{c}, v.Warnings, v.Warnings
		return err
	})
}
