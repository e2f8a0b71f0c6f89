package tables

import (
	"context"
	"database/sql"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// Keys of the table meta.
const (
	MetaBatchAt    = "written" // history.Batch.At of the newest batch
	MetaClock      = "clock"
	MetaCheckpoint = "checkpoint" // the newest entry of the journal that it counts
)

// RestoreCheckpoint calls f with the newest checkpoint. It returns the newest entry of the journal that the checkpoint counts.
func RestoreCheckpoint(ctx context.Context, r Reader, f func(history.Checkpoint) error) (counted uint64, err error) {
	c := history.Checkpoint{Workers: make(map[string][]byte)}
	var entry int64
	for key, into := range map[string]*int64{MetaBatchAt: &c.At, MetaClock: &c.Clock, MetaCheckpoint: &entry} {
		if *into, err = metaValue(ctx, r, key); err != nil {
			return 0, err
		}
	}
	err = EachRow(ctx, r, `SELECT name, body FROM workers ORDER BY name`, nil, func(rows *sql.Rows) error {
		var name, body string
		err := rows.Scan(&name, &body)
		c.Workers[name] = []byte(body)
		return err
	})
	if err != nil {
		return 0, err
	}
	return uint64(entry), f(c)
}

// metaValue returns a value of the table meta, 0 if it is not there.
func metaValue(ctx context.Context, r Reader, key string) (int64, error) {
	return Number[int64](ctx, r, `SELECT coalesce((SELECT value FROM meta WHERE key = ?), 0)`, key)
}

// Finished calls f with finished and lost tasks, about n of them, newest change first, until f omits one: from the clock and time of
// from on, nil for all. It returns the position of the newest one that was omitted.
type Finished func(
	ctx context.Context, from *state.Position, n int, f func(p state.Position, body []byte) (omit bool, err error),
) (left *state.Position, err error)

// RestoreFinished reads the newest finished and lost tasks, and finds the newest of those that it omits.
func RestoreFinished(ctx context.Context, r Reader, o history.RestoreOptions, finished Finished) error {
	n, err := tasksToRestore(ctx, r, o)
	if err != nil {
		return err
	}
	left, err := finished(ctx, nil, n, func(p state.Position, body []byte) (omit bool, err error) {
		if n == 0 {
			return true, nil
		}
		n--
		return false, o.Task(p.ID, body)
	})
	if err != nil || left == nil {
		return err
	}
	return o.Omitted(*left)
}

// journaledTask is about what the events of a task take in the journal.
const journaledTask = 300

// tasksToRestore returns how many finished and lost tasks are to be read.
func tasksToRestore(ctx context.Context, r Reader, o history.RestoreOptions) (int, error) {
	if o.MaxWithJournal <= o.MaxTasks {
		return o.MaxTasks, nil
	}
	size, err := Number[int](ctx, r, `SELECT coalesce(sum(length(body)), 0) FROM journal`)
	return min(max(o.MaxTasks, size/journaledTask), o.MaxWithJournal), err
}

// RestoreMore reads finished and lost tasks that RestoreFinished has omitted.
func RestoreMore(
	ctx context.Context, from state.Position, limit int, finished Finished,
) (tasks []history.SavedTask, left *state.Position, err error) {
	var last state.Position
	left, err = finished(ctx, &from, limit, func(p state.Position, body []byte) (omit bool, err error) {
		if len(tasks) >= limit && !SameMoment(p, last) {
			return true, nil
		}
		tasks, last = append(tasks, history.SavedTask{ID: p.ID, Events: body}), p
		return false, nil
	})
	return tasks, left, err
}

// SameMoment reports whether two positions have one clock and time.
func SameMoment(a, b state.Position) bool {
	return a.Stamp.Clock == b.Stamp.Clock && a.Stamp.Micros == b.Stamp.Micros
}
