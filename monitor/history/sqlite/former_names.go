package sqlite

import (
	"context"

	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/history/where"
	"github.com/umbelhq/umbel/state/query"
)

// A task that was replaced by another (Task.replace) is found by both names: former ones are in the table former_names.

// rename saves the former names of a task.
func (t *tx) rename(row int64, names []string) error {
	for _, name := range names {
		n, err := t.symbol(name)
		if err != nil {
			return err
		}
		if err := t.exec(`INSERT INTO former_names (name, task) VALUES (?, ?) ON CONFLICT DO NOTHING`, n, row); err != nil {
			return err
		}
	}
	return nil
}

// hadName selects tasks that had one of the names before they were replaced.
const hadName = "task IN (SELECT task FROM former_names WHERE name IN (SELECT value FROM json_each(?)))"

// hasFormerNames reports whether some task had one of the names before it was replaced.
func (c *compiler) hasFormerNames(ctx context.Context, names []int64) (bool, error) {
	found, err := tables.List[int64](ctx, c.q, "SELECT task FROM former_names WHERE name IN (SELECT value FROM json_each(?)) LIMIT 1", jsonArray(names))
	return len(found) > 0, tables.Wrap("look for former names", err)
}

// symbolsCondition selects tasks with one of the symbols in a field; if that is the name, also as a former name.
func (c *compiler) symbolsCondition(ctx context.Context, f query.Field, symbols []int64) (where.Condition, error) {
	is := oneOf(where.Column(f), symbols)
	if where.Column(f) != "name" {
		return is, nil
	}
	renamed, err := c.hasFormerNames(ctx, symbols)
	if renamed {
		is = where.Or(is, where.Exactly(hadName, jsonArray(symbols)))
	}
	return is, err
}

// formerSources returns the sources of tasks in one of the states with one of the former names.
func (c *compiler) formerSources(ctx context.Context, names []int64, states []symbol) ([]source, error) {
	renamed, err := c.hasFormerNames(ctx, names)
	if err != nil || !renamed {
		return nil, err
	}
	in := make([]int64, len(states))
	for i, s := range states {
		in[i] = s.number
	}
	var sources []source
	for flags := range where.AllFlags + 1 {
		if flags&where.FlagRenamed != 0 {
			sources = append(sources, source{
				index: "tasks_by_flags", where: "flags <> 0 AND flags = ? AND state IN (SELECT value FROM json_each(?)) AND " + hadName,
				args: []any{flags, jsonArray(in), jsonArray(names)}, sorted: true,
			})
		}
	}
	return sources, nil
}

// formerSymbols returns the names that tasks had before they were replaced.
func (c *compiler) formerSymbols(ctx context.Context) ([]symbol, error) {
	names, err := symbolsOf(ctx, c.q, `SELECT symbol, text FROM symbols WHERE symbol IN (SELECT DISTINCT name FROM former_names) LIMIT ?`, maxSymbols)
	return names, tables.Wrap("list former names", err)
}
