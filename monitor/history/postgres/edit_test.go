package postgres_test

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testpostgres"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/postgres"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

const secret = "hunterzwei"

// withoutSecret replaces the secret in all that is stored.
func withoutSecret() history.Edit {
	text := func(s string) string { return strings.ReplaceAll(s, secret, "********") }
	return history.Edit{
		ID: "test", Text: text, Query: text,
		Event: func(e *state.Event, _ string) {
			for _, s := range []*string{&e.Args, &e.Kwargs, &e.Result, &e.Exception, &e.Traceback} {
				*s = text(*s)
			}
		},
		Command: func(_ string, payload []byte) []byte { return []byte(text(string(payload))) },
		Message: func(kind string) bool { return kind == "notification" },
		Record:  func(record []byte) ([]byte, error) { return []byte(text(string(record))), nil },
		Audit:   func(target, detail string) (string, string) { return text(target), text(detail) },
	}
}

// holding returns the tables that have the secret.
func holding(t *testing.T, address string) (found []string) {
	t.Helper()
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var names []string
	rows, err := db.QueryContext(t.Context(), `SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		var has bool
		err := db.QueryRowContext(t.Context(), `SELECT EXISTS (SELECT FROM `+name+` AS x WHERE x::text LIKE $1 OR x::text LIKE $2)`,
			"%"+secret+"%", "%"+hex.EncodeToString([]byte(secret))+"%").Scan(&has)
		if err != nil {
			t.Fatal(err)
		}
		if has {
			found = append(found, name)
		}
	}
	return found
}

// writeSecrets writes the secret wherever a history can have it: into the arguments, or the error, of 600 tasks of 700.
func writeSecrets(t *testing.T, d *postgres.DB, now time.Time) {
	t.Helper()
	c := state.New(state.Options{Track: true})
	var journal []byte
	for i := range 700 {
		e := state.Event{
			Kind: state.TaskReceived, Hostname: "celery@a", PID: 1, Clock: int64(2*i + 1), ID: fmt.Sprintf("task-%03d", i), Name: "shop.pay",
			Args: fmt.Sprintf("('%s', %d)", secret, i), Kwargs: "{}", Micros: now.UnixMicro(), ReceivedMicros: now.UnixMicro(),
			Present: state.FieldClock | state.FieldPID | state.FieldTimestamp | state.FieldName | state.FieldArgs | state.FieldKwargs,
		}
		if i%7 == 0 {
			e.Args = "(1,)"
		}
		change := c.Apply(&e)
		journal = state.AppendEvent(journal, &e, change.Clock)
		e.Kind, e.Clock, e.Present = state.TaskFailed, e.Clock+1, state.FieldClock|state.FieldPID|state.FieldTimestamp|state.FieldException
		if e.Exception = "KeyError('a')"; i%7 > 0 {
			e.Exception = "ValueError('" + secret + " is wrong')"
		}
		c.Apply(&e)
	}
	b := history.Batch{At: now.UnixMicro(), Journal: journal}
	for _, u := range c.TakeUnsaved(c.Unsaved()) {
		s := history.Task(u)
		s.Events = slices.Clone(s.Events)
		b.Tasks = append(b.Tasks, s)
	}
	_, err := d.Write(t.Context(), b)
	errs := []error{err}
	add := func(_ any, err error) { errs = append(errs, err) }
	add(d.SaveView(t.Context(), history.View{Name: secret, Query: "args:" + secret}))
	add(d.AddMark(t.Context(), history.Mark{At: now, Text: secret}))
	rule, err := d.SaveAlertRule(t.Context(), history.AlertRule{Name: secret, Definition: []byte(`{"query":"args:` + secret + `"}`), SavedAt: now})
	add(rule, err)
	add(nil, d.UpdateAlerts(t.Context(), history.AlertUpdate{
		At: now, Record: []byte("record " + secret),
		Began:    []history.AlertFiring{{RuleID: rule.ID, RuleName: secret, Start: now, Evidence: []byte(`{"text":"` + secret + `"}`)}},
		Commands: []history.Command{{Kind: "notification", Group: "b", Summary: "Tell " + secret, Payload: []byte(secret)}},
	}))
	_, _, err = d.Enqueue(t.Context(), history.CommandRequest{
		Commands: []history.Command{{Kind: "task", Group: "a", Summary: "Run " + secret, Payload: []byte(`{"args":["` + secret + `"]}`)}},
		Audit:    history.AuditRecord{At: now, Action: "publish", Detail: `{"a":"` + secret + `"}`},
	})
	add(nil, err)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// After an edit, no row has what was edited, even if the edit was interrupted, but for the arguments of what is still to be sent.
func TestEditLeavesNothing(t *testing.T) {
	t.Parallel()
	address, now := testpostgres.Schema(t), time.Now()
	d := open(t, address)
	writeSecrets(t, d, now)
	plan, err := d.PlanEdit(t.Context(), withoutSecret(), func(history.Edited) {})
	if err != nil || plan.Tasks != 600 || plan.Waiting != 1 || plan.Views+plan.Marks != 2 || plan.Alerts != 3 || plan.Audit != 1 {
		t.Errorf("PlanEdit = %+v, %v", plan, err)
	}
	by := history.AuditRecord{At: now, Action: "redact"}
	ctx, cancel := context.WithCancel(t.Context())
	first, err := d.Edit(ctx, withoutSecret(), by, func(history.Edited) { cancel() })
	if !errors.Is(err, context.Canceled) || first.Tasks == 0 || first.Tasks >= plan.Tasks {
		t.Fatalf("Edit = %+v, %v, want a part and that it was canceled", first, err)
	}
	closed(t, d)
	d = open(t, address)
	defer closed(t, d)
	second, err := d.Edit(t.Context(), withoutSecret(), by, func(history.Edited) {})
	if err != nil || first.Tasks+second.Tasks != plan.Tasks {
		t.Fatalf("Edit = %+v, %v after %+v, want the rest", second, err, first)
	}
	if left := holding(t, address); !slices.Equal(left, []string{"outbox"}) {
		t.Errorf("the secret is in %v, want it in the command that is to be sent", left)
	}
	if bad, err := d.VerifyAudit(t.Context()); bad != 0 || err != nil {
		t.Errorf("VerifyAudit = %d, %v", bad, err)
	}
	records, _, err := d.AuditLog(t.Context(), history.AuditFilter{Action: "redact"})
	if err != nil || len(records) != 1 || !strings.Contains(records[0].Detail, "former_hash") {
		t.Errorf("the audit log has %v, %v, want the former hash", records, err)
	}
	groups, err := d.FailureGroups(t.Context(), history.FailureRequest{Limit: 10, Now: now})
	if err != nil || len(groups.Groups) != 2 {
		t.Errorf("%d groups of failures, %v, want 2", len(groups.Groups), err)
	}
	redacted := query.New(query.Term{Field: query.Args, Values: []query.Value{{Match: query.Contains, Text: "********"}}})
	if found, err := d.Count(t.Context(), redacted, now, 1000); err != nil || found.N != 600 {
		t.Errorf("%d tasks have redacted arguments, %v, want 600", found.N, err)
	}
	if again, err := d.PlanEdit(t.Context(), withoutSecret(), func(history.Edited) {}); err != nil || again.Changed() != 0 {
		t.Errorf("PlanEdit = %+v, %v, want nothing", again, err)
	}
}
