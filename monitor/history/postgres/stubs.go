package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/state/query"
)

var errMissing = errors.New("not stored in PostgreSQL")

func (d *DB) Write(context.Context, history.Batch) (w history.WriteResult, err error) {
	return w, errMissing
}
func (d *DB) Restore(context.Context, history.RestoreOptions) error { return errMissing }
func (d *DB) RestoreMore(context.Context, state.Position, int) ([]history.SavedTask, *state.Position, error) {
	return nil, nil, errMissing
}
func (d *DB) Task(context.Context, string) ([]byte, error)            { return nil, errMissing }
func (d *DB) Children(context.Context, string, int) ([]string, error) { return nil, errMissing }
func (d *DB) Tasks(context.Context, history.TaskRequest) (p history.TaskPage, err error) {
	return p, errMissing
}

func (d *DB) Count(context.Context, query.Query, time.Time, int) (n history.Count, err error) {
	return n, errMissing
}

func (d *DB) Values(context.Context, query.Field, string, int) ([]string, error) {
	return nil, errMissing
}

func (d *DB) TasksAround(context.Context, int64, int, func(string, []byte) error) (bool, error) {
	return false, errMissing
}

func (d *DB) ActiveSince(context.Context, int64, int, func(string, []byte) error) (bool, error) {
	return false, errMissing
}

func (d *DB) ChangedBetween(context.Context, int64, int64, int, func(string, []byte) error) (bool, error) {
	return false, errMissing
}

func (d *DB) Snapshot(context.Context, int64) (s history.Snapshot, err error) { return s, errMissing }

func (d *DB) Steps(context.Context, int64) (int64, int64, error) { return 0, 0, errMissing }

func (d *DB) Rollups(context.Context, history.RollupRange, func(history.Rollup) error) error {
	return errMissing
}

func (d *DB) FailureGroups(context.Context, history.FailureRequest) (p history.FailurePage, err error) {
	return p, errMissing
}

func (d *DB) FailureGroup(context.Context, fingerprint.ID, time.Time) (f history.FailureGroup, err error) {
	return f, errMissing
}

func (d *DB) ResolveFailureGroup(context.Context, fingerprint.ID, time.Time) error { return errMissing }

func (d *DB) NoteFailureGroup(context.Context, fingerprint.ID, history.FailureNote) error {
	return errMissing
}

func (d *DB) ResolvedFailures(context.Context) (map[fingerprint.ID]time.Time, error) {
	return nil, errMissing
}

func (d *DB) DuplicateGroups(context.Context, history.DuplicateRequest) (p history.DuplicatePage, err error) {
	return p, errMissing
}

func (d *DB) DuplicateGroup(context.Context, history.DuplicateKey, int) (g history.DuplicateGroup, err error) {
	return g, errMissing
}
func (d *DB) MarkDuplicates(context.Context, []state.Task) error { return errMissing }
func (d *DB) DuplicateStats(context.Context) (s history.DuplicateStats, err error) {
	return s, errMissing
}
func (d *DB) DuplicateRules(context.Context) ([]history.DuplicateRule, error) { return nil, nil }
func (d *DB) SaveDuplicateRule(context.Context, history.DuplicateRule, history.AuditRecord) (bool, error) {
	return false, errMissing
}
func (d *DB) LearnArguments(context.Context, string, []byte, []byte) error { return errMissing }
func (d *DB) Workflows(context.Context, history.WorkflowRequest) (p history.WorkflowPage, err error) {
	return p, errMissing
}

func (d *DB) WorkflowTasks(context.Context, string, int, func(string, []byte) error) (int, error) {
	return 0, errMissing
}
func (d *DB) RetentionRules() history.RetentionRules           { return d.rules }
func (d *DB) ReferenceTime(context.Context) (time.Time, error) { return time.Time{}, errMissing }
func (d *DB) PlanPrune(context.Context, time.Time) (p history.PrunePlan, err error) {
	return p, errMissing
}
func (d *DB) Prune(context.Context, time.Time, func(history.Pruned)) error { return errMissing }
func (d *DB) Run(ctx context.Context, _ func([]string)) error              { return errMissing }
func (d *DB) loadDuplicateRules(context.Context) error                     { return nil }
