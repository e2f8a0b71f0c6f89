package postgres

import (
	"github.com/umbelhq/umbel/monitor/history/tasktext"
	"github.com/umbelhq/umbel/monitor/history/where"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// taskColumns are those of tasks, in the order of record.values.
func taskColumns() []string {
	return []string{
		"week", "task", "id", "clock", "micros", "origin", "state", "final", "name", "worker", "queue", "client", "exchange",
		"routing_key", "root", "parent", "sent", "received", "started", "finished", "updated", "eta", "expires", "wait", "run",
		"retries", "flags", "lost", "failure", "last_receipt", "first_receipt", "call", "dup", "former", "text", "body", "changed",
	}
}

// values returns the values of taskColumns.
func (r *record) values() []any {
	v := &r.View
	list := make([]any, 0, 37)
	list = append(list, int32(r.call.week), r.call.task, encodeText(v.ID), v.Stamp.Clock, v.Stamp.Micros, encodeText(v.Stamp.Origin),
		encodeText(string(v.State)), int16(where.Class(v.State)))
	for _, text := range []*string{v.Name, v.Worker, v.Queue, v.Client, v.Exchange, v.RoutingKey, other(v.RootID, v.ID), v.ParentID} {
		if text == nil {
			list = append(list, nil)
		} else {
			list = append(list, encodeText(*text))
		}
	}
	for _, f := range []query.Field{
		query.Sent, query.Received, query.Started, query.Finished, query.Updated,
		query.ETA, query.Expires, query.Wait, query.Run, query.Retries,
	} {
		n, ok := f.Int(v)
		switch {
		case ok:
			list = append(list, n)
		case f == query.Updated:
			list = append(list, int64(0))
		default:
			list = append(list, nil)
		}
	}
	var former any
	if names := where.FormerNames(v); len(names) > 0 {
		former = encodeTexts(names)
	}
	return append(list, int32(where.Flags(v)), where.LostAt(v), r.failure, r.last, r.first, []byte(r.call.call), int32(r.call.dup), former,
		encodeText(tasktext.Searchable(v)), r.Events, r.changed)
}

// other returns the id of another task, nil if there is none or it is self.
func other(id *string, self string) *string {
	if id == nil || *id == self {
		return nil
	}
	return id
}

// estimatedReceipt stands for the receipt of a task of which none is known.
func estimatedReceipt(v *state.Task) int64 {
	for _, f := range []query.Field{query.Finished, query.Updated} {
		if at, ok := f.Int(v); ok {
			return at
		}
	}
	return 0
}
