package sqlite

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
func (d *DB) AlertRules(ctx context.Context) (rules []history.AlertRule, err error) {
	defer annotate(&err, "read alert rules")
	const all = `SELECT rule, name, enabled, definition, receivers, muted, muted_by, saved, saved_by FROM alert_rules ORDER BY name, rule`
	err = eachRow(ctx, d.read, all, nil, func(rows *sql.Rows) error {
		var r history.AlertRule
		var receivers string
		var muted sql.NullInt64
		var saved int64
		if err := rows.Scan(&r.ID, &r.Name, &r.Enabled, &r.Definition, &receivers, &muted, &r.MutedBy, &saved, &r.SavedBy); err != nil {
			return err
		}
		r.MutedUntil, r.SavedAt = moment(muted), time.UnixMicro(saved)
		rules = append(rules, r)
		return json.Unmarshal([]byte(receivers), &rules[len(rules)-1].Receivers)
	})
	return rules, err
}

// SaveAlertRule creates a rule, if it has no ID, or replaces all of it but how it is muted.
func (d *DB) SaveAlertRule(ctx context.Context, r history.AlertRule) (saved history.AlertRule, err error) {
	defer annotate(&err, "save alert rule")
	receivers, err := json.Marshal(r.Receivers)
	if err != nil {
		return r, err
	}
	err = d.update(ctx, func(t *tx) error {
		if r.ID != 0 {
			return t.get(`UPDATE alert_rules SET name = ?, enabled = ?, definition = ?, receivers = ?, saved = ?, saved_by = ? WHERE rule = ? RETURNING rule`,
				[]any{r.Name, r.Enabled, notNil(r.Definition), string(receivers), r.SavedAt.UnixMicro(), r.SavedBy, r.ID}, &r.ID)
		}
		err := t.get(`INSERT INTO alert_rules (name, enabled, definition, receivers, muted_by, saved, saved_by) SELECT ?, ?, ?, ?, '', ?, ?
			WHERE (SELECT count(*) FROM alert_rules) < ? RETURNING rule`,
			[]any{r.Name, r.Enabled, notNil(r.Definition), string(receivers), r.SavedAt.UnixMicro(), r.SavedBy, history.MaxAlertRules}, &r.ID)
		if errors.Is(err, sql.ErrNoRows) {
			return history.ErrTooManyAlertRules
		}
		return err
	})
	return r, notFound(err)
}

// DeleteAlertRule removes a rule and ends its firings, ErrNotFound if there is none.
func (d *DB) DeleteAlertRule(ctx context.Context, id int64, at time.Time) (err error) {
	defer annotate(&err, "delete alert rule")
	return notFound(d.update(ctx, func(t *tx) error {
		var n int64
		if err := t.get(`DELETE FROM alert_rules WHERE rule = ? RETURNING rule`, []any{id}, &n); err != nil {
			return err
		}
		return t.exec(`UPDATE alert_firings SET ended = max(?, began) WHERE rule = ? AND ended IS NULL`, at.UnixMicro(), id)
	}))
}

// MuteAlertRule notifies nobody of a rule until a time, zero for now; ErrNotFound if there is none.
func (d *DB) MuteAlertRule(ctx context.Context, id int64, until time.Time, actor string) (err error) {
	defer annotate(&err, "mute alert rule")
	return notFound(d.update(ctx, func(t *tx) error {
		var n int64
		return t.get(`UPDATE alert_rules SET muted = ?, muted_by = ? WHERE rule = ? RETURNING rule`, []any{micros(until), actor, id}, &n)
	}))
}

// AlertFirings returns a page of firings, and the Before of the next one, 0 at the end.
func (d *DB) AlertFirings(ctx context.Context, f history.AlertFilter) (firings []history.AlertFiring, next int64, err error) {
	defer annotate(&err, "read firings of alerts")
	query := `SELECT firing, rule, name, subject, began, ended, value, evidence, notified, acked, acked_by FROM alert_firings WHERE 1`
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
	err = eachRow(ctx, d.read, query, args, func(rows *sql.Rows) error {
		var v history.AlertFiring
		var began int64
		var ended, acked sql.NullInt64
		err := rows.Scan(&v.ID, &v.RuleID, &v.RuleName, &v.Subject, &began, &ended, &v.Value, &v.Evidence, &v.Notified, &acked, &v.AcknowledgedBy)
		v.Start, v.End, v.AcknowledgedAt = time.UnixMicro(began), moment(ended), moment(acked)
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
func (d *DB) AcknowledgeAlert(ctx context.Context, id int64, at time.Time, actor string) (err error) {
	defer annotate(&err, "acknowledge alert")
	return notFound(d.update(ctx, func(t *tx) error {
		var n int64
		return t.get(`UPDATE alert_firings SET acked_by = iif(acked IS NULL, ?, acked_by), acked = coalesce(acked, ?) WHERE firing = ? RETURNING firing`,
			[]any{actor, at.UnixMicro(), id}, &n)
	}))
}

// AlertRecords calls f with every record of the log from a time on, oldest first. It holds no connection meanwhile.
func (d *DB) AlertRecords(ctx context.Context, from time.Time, f func(record []byte) error) (err error) {
	defer annotate(&err, "read log of alerts")
	const page = 500
	for at := from.UnixMicro() - 1; ; {
		var records [][]byte
		err := eachRow(ctx, d.read, `SELECT at, record FROM alert_records WHERE at > ? ORDER BY at LIMIT ?`, []any{at, page}, func(rows *sql.Rows) error {
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
func (d *DB) UpdateAlerts(ctx context.Context, u history.AlertUpdate) (err error) {
	defer annotate(&err, "write alerts")
	at := u.At.UnixMicro()
	return d.update(ctx, func(t *tx) error {
		if len(u.Record) > 0 {
			if err := t.exec(`DELETE FROM alert_records WHERE at > ?`, at); err != nil {
				return err
			}
			if err := t.exec(`INSERT INTO alert_records (at, record) VALUES (?, ?) ON CONFLICT DO NOTHING`, at, u.Record); err != nil {
				return err
			}
		}
		for _, id := range u.Ended {
			if err := t.exec(`UPDATE alert_firings SET ended = max(?, began) WHERE firing = ? AND ended IS NULL`, at, id); err != nil {
				return err
			}
		}
		for _, id := range u.Notified {
			if err := t.exec(`UPDATE alert_firings SET notified = 1 WHERE firing = ?`, id); err != nil {
				return err
			}
		}
		for i := range u.Began {
			if err := t.addFiring(&u.Began[i]); err != nil {
				return err
			}
		}
		for i := range u.Commands {
			c := u.Commands[i]
			complete(&c, history.AuditRecord{At: u.At})
			if err := t.addCommand(&c); err != nil {
				return err
			}
			if err := t.exec(`UPDATE outbox SET first = command WHERE command = ?`, c.ID); err != nil {
				return err
			}
		}
		return t.trimAlerts(u.At)
	})
}

func (t *tx) addFiring(f *history.AlertFiring) error {
	err := t.exec(`INSERT INTO alert_firings (rule, name, subject, began, ended, value, evidence, notified, acked_by)
		SELECT ?, ?, ?, ?, NULL, ?, ?, ?, '' WHERE EXISTS (SELECT 1 FROM alert_rules WHERE rule = ?)`,
		f.RuleID, f.RuleName, f.Subject, f.Start.UnixMicro(), f.Value, notNil(f.Evidence), f.Notified, f.RuleID)
	if err != nil {
		return fmt.Errorf("firing of %q: %w", f.RuleName, err)
	}
	return nil
}

// trimAlerts removes firings and records that are too old.
func (t *tx) trimAlerts(now time.Time) error {
	err := t.exec(`DELETE FROM alert_records WHERE at < ?`, now.Add(-history.AlertRecordRetention).UnixMicro())
	if err == nil {
		err = t.exec(`DELETE FROM alert_firings WHERE ended < ?`, now.Add(-history.AlertFiringRetention).UnixMicro())
	}
	if err == nil {
		err = t.exec(`DELETE FROM alert_firings WHERE ended IS NOT NULL AND firing <= (SELECT max(firing) FROM alert_firings) - ?`, history.MaxAlertFirings)
	}
	return err
}
