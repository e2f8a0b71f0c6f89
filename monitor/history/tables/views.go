package tables

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"github.com/umbelhq/umbel/monitor/history"
)

// Views returns all views by name.
func (d Store) Views(ctx context.Context) (views []history.View, err error) {
	defer d.engine.Annotate(&err, "read views")
	const all = `SELECT view, name, query, sort, cols FROM views ORDER BY name, view`
	err = EachRow(ctx, d.engine.Reader(), all, nil, func(rows *sql.Rows) error {
		var n int64
		var v history.View
		err := rows.Scan(&n, &v.Name, &v.Query, &v.Sort, &v.Columns)
		v.ID = strconv.FormatInt(n, 10)
		views = append(views, v)
		return err
	})
	return views, err
}

// SaveView creates a view, if it has no ID, or replaces it.
func (d Store) SaveView(ctx context.Context, v history.View) (saved history.View, err error) {
	defer d.engine.Annotate(&err, "save view")
	var n int64
	err = d.update(ctx, func(t tx) (err error) {
		if v.ID == "" {
			err = t.Get(`INSERT INTO views (name, query, sort, cols) SELECT ?, ?, ?, ?
				WHERE (SELECT count(*) FROM views) < ? RETURNING view`,
				[]any{v.Name, v.Query, v.Sort, v.Columns, history.MaxViews}, &n)
			if errors.Is(err, sql.ErrNoRows) {
				err = history.ErrTooManyViews
			}
		} else {
			err = t.Get(`UPDATE views SET name = ?, query = ?, sort = ?, cols = ? WHERE view = ? RETURNING view`,
				[]any{v.Name, v.Query, v.Sort, v.Columns, viewKey(v.ID)}, &n)
		}
		return err
	})
	v.ID = strconv.FormatInt(n, 10)
	return v, NotFound(err)
}

// DeleteView removes a view, ErrNotFound if there is none.
func (d Store) DeleteView(ctx context.Context, id string) (err error) {
	defer d.engine.Annotate(&err, "delete view")
	return NotFound(d.update(ctx, func(t tx) error {
		var n int64
		return t.Get(`DELETE FROM views WHERE view = ? RETURNING view`, []any{viewKey(id)}, &n)
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
