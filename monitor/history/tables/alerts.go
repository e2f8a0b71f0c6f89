package tables

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// AlertRules returns all rules, by name.
func (d Store) AlertRules(ctx context.Context) (rules []history.AlertRule, err error) {
	defer d.engine.Annotate(&err, "read alert rules")
	const all = `SELECT rule, name, enabled, definition, receivers, muted, muted_by, saved, saved_by FROM alert_rules ORDER BY name, rule`
	err = EachRow(ctx, d.engine.Reader(), all, nil, func(rows *sql.Rows) error {
		var r history.AlertRule
		var receivers string
		var muted sql.NullInt64
		var saved int64
		if err := rows.Scan(&r.ID, &r.Name, &r.Enabled, &r.Definition, &receivers, &muted, &r.MutedBy, &saved, &r.SavedBy); err != nil {
			return err
		}
		r.MutedUntil, r.SavedAt = Moment(muted), time.UnixMicro(saved)
		rules = append(rules, r)
		return json.Unmarshal([]byte(receivers), &rules[len(rules)-1].Receivers)
	})
	return rules, err
}

// SaveAlertRule creates a rule, if it has no ID, or replaces all of it but how it is muted.
func (d Store) SaveAlertRule(ctx context.Context, r history.AlertRule) (saved history.AlertRule, err error) {
	defer d.engine.Annotate(&err, "save alert rule")
	receivers, err := json.Marshal(r.Receivers)
	if err != nil {
		return r, err
	}
	var id int64
	err = d.update(ctx, func(t tx) error {
		if r.ID != 0 {
			return t.Get(`UPDATE alert_rules SET name = ?, enabled = ?, definition = ?, receivers = ?, saved = ?, saved_by = ? WHERE rule = ? RETURNING rule`,
				[]any{r.Name, r.Enabled, notNil(r.Definition), string(receivers), r.SavedAt.UnixMicro(), r.SavedBy, r.ID}, &id)
		}
		err := t.Get(`INSERT INTO alert_rules (name, enabled, definition, receivers, muted_by, saved, saved_by) SELECT ?, ?, ?, ?, '', ?, ?
			WHERE (SELECT count(*) FROM alert_rules) < ? RETURNING rule`,
			[]any{r.Name, r.Enabled, notNil(r.Definition), string(receivers), r.SavedAt.UnixMicro(), r.SavedBy, history.MaxAlertRules}, &id)
		if errors.Is(err, sql.ErrNoRows) {
			return history.ErrTooManyAlertRules
		}
		return err
	})
	if err == nil {
		r.ID = id
	}
	return r, NotFound(err)
}

// endAt is the end of a firing that ends at ?1: not before it began, if the clock was set back.
const endAt = `CASE WHEN began > ?1 THEN began ELSE ?1 END`

// DeleteAlertRule removes a rule and ends its firings, ErrNotFound if there is none.
func (d Store) DeleteAlertRule(ctx context.Context, id int64, at time.Time) (err error) {
	defer d.engine.Annotate(&err, "delete alert rule")
	return NotFound(d.update(ctx, func(t tx) error {
		var n int64
		if err := t.Get(`DELETE FROM alert_rules WHERE rule = ? RETURNING rule`, []any{id}, &n); err != nil {
			return err
		}
		return t.Exec(`UPDATE alert_firings SET ended = `+endAt+` WHERE rule = ?2 AND ended IS NULL`, at.UnixMicro(), id)
	}))
}

// MuteAlertRule notifies nobody of a rule until a time, zero for now; ErrNotFound if there is none.
func (d Store) MuteAlertRule(ctx context.Context, id int64, until time.Time, actor string) (err error) {
	defer d.engine.Annotate(&err, "mute alert rule")
	return NotFound(d.update(ctx, func(t tx) error {
		var n int64
		return t.Get(`UPDATE alert_rules SET muted = ?, muted_by = ? WHERE rule = ? RETURNING rule`, []any{Micros(until), actor, id}, &n)
	}))
}

// AlertFirings returns a page of firings, and the Before of the next one, 0 at the end.
func (d Store) AlertFirings(ctx context.Context, f history.AlertFilter) (firings []history.AlertFiring, next int64, err error) {
	defer d.engine.Annotate(&err, "read firings of alerts")
	query := `SELECT firing, rule, name, subject, began, ended, value, evidence, notified, acked, acked_by FROM alert_firings WHERE TRUE`
	var args []any
	at := int64(math.MaxInt64)
	if !f.At.IsZero() {
		at = f.At.UnixMicro()
		query, args = query+` AND began <= ?`, append(args, at)
	}
	if f.Open {
		query, args = query+` AND (ended IS NULL OR ended > ?)`, append(args, at)
	}
	if f.Ended {
		query, args = query+` AND ended <= ?`, append(args, at)
	}
	if f.RuleID != 0 {
		query, args = query+` AND rule = ?`, append(args, f.RuleID)
	}
	if f.Before != 0 {
		query, args = query+` AND firing < ?`, append(args, f.Before)
	}
	query, args = query+` ORDER BY firing DESC LIMIT ?`, append(args, f.Limit+1)
	err = EachRow(ctx, d.engine.Reader(), query, args, func(rows *sql.Rows) error {
		var v history.AlertFiring
		var began int64
		var ended, acked sql.NullInt64
		err := rows.Scan(&v.ID, &v.RuleID, &v.RuleName, &v.Subject, &began, &ended, &v.Value, &v.Evidence, &v.Notified, &acked, &v.AcknowledgedBy)
		v.Start, v.End, v.AcknowledgedAt = time.UnixMicro(began), Moment(ended), Moment(acked)
		firings = append(firings, v)
		return err
	})
	if len(firings) > f.Limit {
		firings = firings[:f.Limit]
		next = firings[f.Limit-1].ID
	}
	return firings, next, err
}

// AcknowledgeAlert records who looks after a firing; ErrNotFound if there is none. The first one stays.
func (d Store) AcknowledgeAlert(ctx context.Context, id int64, at time.Time, actor string) (err error) {
	defer d.engine.Annotate(&err, "acknowledge alert")
	return NotFound(d.update(ctx, func(t tx) error {
		var n int64
		return t.Get(`UPDATE alert_firings SET acked_by = CASE WHEN acked IS NULL THEN ? ELSE acked_by END, acked = coalesce(acked, ?) WHERE firing = ? RETURNING firing`,
			[]any{actor, at.UnixMicro(), id}, &n)
	}))
}

// AlertRecords calls f with every record of the log from a time on, oldest first. It holds no connection meanwhile.
func (d Store) AlertRecords(ctx context.Context, from time.Time, f func(record []byte) error) (err error) {
	defer d.engine.Annotate(&err, "read log of alerts")
	const page = 500
	for at := from.UnixMicro() - 1; ; {
		var records [][]byte
		err := EachRow(ctx, d.engine.Reader(), `SELECT at, record FROM alert_records WHERE at > ? ORDER BY at LIMIT ?`, []any{at, page}, func(rows *sql.Rows) error {
			var record []byte
			err := rows.Scan(&at, &record)
			records = append(records, record)
			return err
		})
		if err != nil {
			return err
		}
		for _, record := range records {
			if err := f(record); err != nil {
				return err
			}
		}
		if len(records) < page {
			return nil
		}
	}
}

// UpdateAlerts writes an update, and removes what is too old.
func (d Store) UpdateAlerts(ctx context.Context, u history.AlertUpdate) (err error) {
	defer d.engine.Annotate(&err, "write alerts")
	at := u.At.UnixMicro()
	return d.engine.UpdateTasks(ctx, func(in Tx) error {
		t := tx{in}
		if len(u.Record) > 0 {
			if err := t.Exec(`DELETE FROM alert_records WHERE at > ?`, at); err != nil {
				return err
			}
			if err := t.Exec(`INSERT INTO alert_records (at, record) VALUES (?, ?) ON CONFLICT DO NOTHING`, at, u.Record); err != nil {
				return err
			}
		}
		for _, id := range u.Ended {
			if err := t.Exec(`UPDATE alert_firings SET ended = `+endAt+` WHERE firing = ?2 AND ended IS NULL`, at, id); err != nil {
				return err
			}
		}
		for _, id := range u.Notified {
			if err := t.Exec(`UPDATE alert_firings SET notified = TRUE WHERE firing = ?`, id); err != nil {
				return err
			}
		}
		for i := range u.Began {
			if err := t.addFiring(&u.Began[i]); err != nil {
				return err
			}
		}
		if len(u.Commands) > 0 {
			if err := t.lockOutbox(); err != nil {
				return err
			}
		}
		for i := range u.Commands { // each is a request
			c := []history.Command{u.Commands[i]}
			complete(&c[0], history.AuditRecord{At: u.At})
			if err := t.Dialect().addCommands(t, c); err != nil {
				return err
			}
		}
		return t.trimAlerts(u.At)
	})
}

func (t tx) addFiring(f *history.AlertFiring) error {
	err := t.Exec(`INSERT INTO alert_firings (rule, name, subject, began, ended, value, evidence, notified, acked_by)
		SELECT ?, ?, ?, ?, NULL, ?, ?, ?, '' WHERE EXISTS (SELECT 1 FROM alert_rules WHERE rule = ?)`,
		f.RuleID, f.RuleName, f.Subject, f.Start.UnixMicro(), f.Value, notNil(f.Evidence), f.Notified, f.RuleID)
	if err != nil {
		return fmt.Errorf("firing of %q: %w", f.RuleName, err)
	}
	return nil
}

// trimAlerts removes firings and records that are too old.
func (t tx) trimAlerts(now time.Time) error {
	err := t.Exec(`DELETE FROM alert_records WHERE at < ?`, now.Add(-history.AlertRecordRetention).UnixMicro())
	if err == nil {
		err = t.Exec(`DELETE FROM alert_firings WHERE ended < ?`, now.Add(-history.AlertFiringRetention).UnixMicro())
	}
	if err == nil {
		err = t.Exec(`DELETE FROM alert_firings WHERE ended IS NOT NULL AND firing <= (SELECT max(firing) FROM alert_firings) - ?`, history.MaxAlertFirings)
	}
	return err
}
