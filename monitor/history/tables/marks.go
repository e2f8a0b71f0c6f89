package tables

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

const markColumns = `mark, at, text, link, service, version, actor`

// Marks returns the marks of a span of time, oldest first.
func (d Store) Marks(ctx context.Context, from, to time.Time, limit int) (marks []history.Mark, err error) {
	defer d.engine.Annotate(&err, "read marks")
	const newest = `SELECT ` + markColumns + ` FROM marks WHERE at >= ? AND at < ? ORDER BY at DESC, mark DESC LIMIT ?`
	err = EachRow(ctx, d.engine.Reader(), newest, []any{from.UnixMicro(), to.UnixMicro(), limit}, func(rows *sql.Rows) error {
		m, err := scanMark(rows.Scan)
		marks = append(marks, m)
		return err
	})
	slices.Reverse(marks)
	return marks, err
}

func scanMark(scan func(into ...any) error) (m history.Mark, err error) {
	var n, at int64
	err = scan(&n, &at, &m.Text, &m.Link, &m.Service, &m.Version, &m.By)
	m.ID, m.At = strconv.FormatInt(n, 10), time.UnixMicro(at).UTC()
	return m, err
}

// AddMark stores a mark. The oldest goes if there are history.MaxMarks.
func (d Store) AddMark(ctx context.Context, m history.Mark) (added history.Mark, err error) {
	defer d.engine.Annotate(&err, "add mark")
	m.At = time.UnixMicro(m.At.UnixMicro()).UTC()
	err = d.update(ctx, func(t tx) error {
		n, err := t.Insert("mark", `INSERT INTO marks (at, text, link, service, version, actor) VALUES (?, ?, ?, ?, ?, ?)`,
			m.At.UnixMicro(), m.Text, m.Link, m.Service, m.Version, m.By)
		if err != nil {
			return err
		}
		m.ID = strconv.FormatInt(n, 10)
		return t.Exec(`DELETE FROM marks WHERE mark IN (SELECT mark FROM marks ORDER BY at DESC, mark DESC LIMIT ?1 OFFSET ?1)`, history.MaxMarks)
	})
	return m, err
}

// DeleteMark removes a mark, ErrNotFound if there is none.
func (d Store) DeleteMark(ctx context.Context, id string) (m history.Mark, err error) {
	defer d.engine.Annotate(&err, "delete mark")
	err = d.update(ctx, func(t tx) (err error) {
		m, err = scanMark(func(into ...any) error {
			return t.Get(`DELETE FROM marks WHERE mark = ? RETURNING `+markColumns, []any{viewKey(id)}, into...)
		})
		return err
	})
	return m, NotFound(err)
}

// RemoveMarks removes marks that are older than they are kept.
func RemoveMarks(t Tx, now time.Time) error {
	return t.Exec(`DELETE FROM marks WHERE at < ?`, now.Add(-history.MarkRetention).UnixMicro())
}
