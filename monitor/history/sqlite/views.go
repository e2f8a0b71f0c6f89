package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/umbelhq/umbel/monitor/history"
)

// Views returns all views by name.
func (d *DB) Views(ctx context.Context) ([]history.View, error) {
	const all = `SELECT view, name, query, sort, cols FROM views ORDER BY name, view`
	var views []history.View
	err := eachRow(ctx, d.read, all, nil, func(rows *sql.Rows) error {
		var n int64
		var v history.View
		err := rows.Scan(&n, &v.Name, &v.Query, &v.Sort, &v.Columns)
		v.ID = strconv.FormatInt(n, 10)
		views = append(views, v)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read views: %w", explain(err))
	}
	return views, nil
}

// SaveView creates a view, if it has no ID, or replaces it.
func (d *DB) SaveView(ctx context.Context, v history.View) (history.View, error) {
	err := d.update(ctx, func(t *tx) error {
		var n int64
		var err error
		if v.ID == "" {
			err = t.get(`INSERT INTO views (name, query, sort, cols) SELECT ?, ?, ?, ?
				WHERE (SELECT count(*) FROM views) < ? RETURNING view`,
				[]any{v.Name, v.Query, v.Sort, v.Columns, history.MaxViews}, &n)
			if errors.Is(err, sql.ErrNoRows) {
				err = history.ErrTooManyViews
			}
		} else {
			err = t.get(`UPDATE views SET name = ?, query = ?, sort = ?, cols = ? WHERE view = ? RETURNING view`,
				[]any{v.Name, v.Query, v.Sort, v.Columns, viewKey(v.ID)}, &n)
		}
		v.ID = strconv.FormatInt(n, 10)
		return err
	})
	return v, viewError("save view", err)
}

// DeleteView removes a view, ErrNotFound if there is none.
func (d *DB) DeleteView(ctx context.Context, id string) error {
	return viewError("delete view", d.update(ctx, func(t *tx) error {
		var n int64
		return t.get(`DELETE FROM views WHERE view = ? RETURNING view`, []any{viewKey(id)}, &n)
	}))
}

// viewKey returns the key of an id, 0 if it is invalid.
func viewKey(id string) int64 {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func viewError(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return history.ErrNotFound
	case errors.Is(err, history.ErrTooManyViews):
		return history.ErrTooManyViews
	default:
		return fmt.Errorf("%s: %w", doing, explain(err))
	}
}
