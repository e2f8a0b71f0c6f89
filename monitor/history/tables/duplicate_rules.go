package tables

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/idempotency"
)

// CallRules say which fields of arguments do not count, by name of the task.
type CallRules struct {
	byName atomic.Pointer[map[string]*idempotency.Fingerprinter] // changed by one transaction at a time
}

// Of returns what leaves out the fields that do not count of a task's arguments, nil if all count.
func (c *CallRules) Of(name string) *idempotency.Fingerprinter {
	if rules := c.byName.Load(); rules != nil {
		return (*rules)[name]
	}
	return nil
}

// set has tasks that are saved from now on grouped by a rule.
func (c *CallRules) set(name string, paths []string, f *idempotency.Fingerprinter) {
	rules := make(map[string]*idempotency.Fingerprinter)
	if before := c.byName.Load(); before != nil {
		maps.Copy(rules, *before)
	}
	if len(paths) > 0 {
		rules[name] = f
	} else {
		delete(rules, name)
	}
	c.byName.Store(&rules)
}

// ReloadRules reads the rules by which tasks are grouped.
func (d Store) ReloadRules(ctx context.Context) error {
	stored, err := d.DuplicateRules(ctx)
	if err != nil {
		return err
	}
	rules := make(map[string]*idempotency.Fingerprinter, len(stored))
	for _, r := range stored {
		f, err := idempotency.New(idempotency.Options{Without: r.Exclude})
		if err != nil { // written by a version that knows other paths
			d.engine.Log().Warn("rule for duplicates is unreadable", "task", r.Name, "error", err)
			continue
		}
		rules[r.Name] = f
	}
	d.engine.Calls().byName.Store(&rules)
	return nil
}

// DuplicateRules returns the rules by name.
func (d Store) DuplicateRules(ctx context.Context) (rules []history.DuplicateRule, err error) {
	defer d.engine.Annotate(&err, "read rules for duplicates")
	err = EachRow(ctx, d.engine.Reader(), `SELECT r.name, exclude, at, actor, coalesce(last - done, 0) FROM duplicate_rules r
		LEFT JOIN duplicate_steps s USING (name) ORDER BY r.name`, nil, func(rows *sql.Rows) error {
		var r history.DuplicateRule
		var exclude []byte
		var at int64
		if err := rows.Scan(&r.Name, &exclude, &at, &r.Actor, &r.Pending); err != nil {
			return err
		}
		r.At = time.UnixMicro(at).UTC()
		rules = append(rules, r)
		return json.Unmarshal(exclude, &rules[len(rules)-1].Exclude)
	})
	return rules, err
}

// SaveDuplicateRule writes a rule with its audit record, or deletes it.
func (d Store) SaveDuplicateRule(ctx context.Context, r history.DuplicateRule, a history.AuditRecord) (changed bool, err error) {
	defer d.engine.Annotate(&err, "save rule for duplicates")
	paths := slices.Compact(slices.Sorted(slices.Values(r.Exclude)))
	if r.Name == "" || len(paths) > history.MaxExcludedFields {
		return false, fmt.Errorf("a rule needs a name and at most %d fields", history.MaxExcludedFields)
	}
	if paths == nil {
		paths = []string{}
	}
	f, err := idempotency.New(idempotency.Options{Without: paths})
	if err != nil {
		return false, err
	}
	exclude, err := json.Marshal(paths)
	if err != nil {
		return false, err
	}
	err = d.update(ctx, func(t tx) error {
		for _, hold := range t.Dialect().holdWriter {
			if err := t.Exec(hold); err != nil {
				return err
			}
		}
		before := []byte("[]")
		err := t.Get(`SELECT exclude FROM duplicate_rules WHERE name = ?`, []any{r.Name}, &before)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if changed = !bytes.Equal(before, exclude); !changed {
			return nil
		}
		if len(paths) == 0 {
			err = t.Exec(`DELETE FROM duplicate_rules WHERE name = ?`, r.Name)
		} else {
			err = t.saveRule(r, string(exclude), err != nil)
		}
		if err == nil {
			err = t.Exec(`INSERT INTO duplicate_steps (name, done, last) SELECT ?, 0, max(task) FROM tasks HAVING max(task) IS NOT NULL
				ON CONFLICT (name) DO UPDATE SET done = 0, last = excluded.last`, r.Name)
		}
		if err == nil {
			err = WriteAudit(t, a)
		}
		if len(t.Dialect().holdWriter) == 0 {
			t.Committed(func() { d.engine.Calls().set(r.Name, paths, f) })
		}
		return err
	})
	return changed && err == nil, err
}

func (t tx) saveRule(r history.DuplicateRule, exclude string, isNew bool) error {
	if isNew {
		var n int
		if err := t.Get(`SELECT count(*) FROM duplicate_rules`, nil, &n); err != nil {
			return err
		}
		if n >= history.MaxDuplicateRules {
			return history.ErrTooManyDuplicateRules
		}
	}
	return t.Exec(`INSERT INTO duplicate_rules (name, exclude, at, actor) VALUES (?, ?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET exclude = excluded.exclude, at = excluded.at, actor = excluded.actor`,
		r.Name, exclude, r.At.UnixMicro(), r.Actor)
}
