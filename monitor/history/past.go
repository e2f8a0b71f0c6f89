package history

import (
	"context"

	"github.com/umbelhq/umbel/state"
)

// PastReader reads what was there at an instant: a time of receipt by the local clock, µs since 1970 UTC. Receipts are
// unique, so an instant divides the events of the cluster in two.
type PastReader interface {
	// TasksAround calls f with the saved events of the tasks that an instant divides: something was received of them by
	// then, and something was received or concluded after. It stops after limit tasks and reports whether there are more.
	TasksAround(ctx context.Context, at int64, limit int, f func(id string, events []byte) error) (more bool, err error)
	// ActiveSince calls f with the saved events of the unfinished tasks of which nothing was received after the instant, in
	// the same way.
	ActiveSince(ctx context.Context, at int64, limit int, f func(id string, events []byte) error) (more bool, err error)
	// ChangedBetween calls f with the saved events of the tasks whose newest event was received after from and by to. If
	// there are more than limit it calls f with none.
	ChangedBetween(ctx context.Context, from, to int64, limit int, f func(id string, events []byte) error) (more bool, err error)
	// Snapshot returns what was known at an instant beside tasks.
	Snapshot(ctx context.Context, at int64) (Snapshot, error)
	// Steps returns the newest receipt of an event of a task before an instant, and the next after it, 0 if there is none.
	Steps(ctx context.Context, at int64) (before, after int64, err error)
}

// Snapshot is what a store knows of an instant beside tasks. Checkpoints leave snapshots, the older the fewer.
type Snapshot struct {
	SnapshotBody
	At int64 // of the newest snapshot with counts and workers by the instant, µs, 0 if none was kept
	// Clock bounds the repaired clocks of all events received by the instant, 0 if it is not known.
	Clock int64
	// Since is from when on the past is known, µs; 0 if all of it is.
	Since int64
}

// SnapshotBody is a cluster but for its tasks.
type SnapshotBody struct {
	Counts  state.Counts
	Workers []string // state.Cluster.SaveWorkers
}
