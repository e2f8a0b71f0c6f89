package database_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testdjango"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/monitor/outboxwatch/database"
)

// changeable opens the outbox of a new project on either database.
func changeable(t *testing.T, run func(t *testing.T, p *testdjango.Project, o *database.Outbox)) {
	t.Helper()
	for name, open := range map[string]func(testing.TB, string) *testdjango.Project{"sqlite": testdjango.SQLite, "postgresql": testdjango.PostgreSQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t, "")
			run(t, p, openOutbox(t, p.URL))
		})
	}
}

func openOutbox(t *testing.T, url string) *database.Outbox {
	t.Helper()
	o, err := database.New(database.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return o
}

// bury makes n dead letters of calls that use every column.
func bury(t *testing.T, p *testdjango.Project, n int) []outboxwatch.Letter {
	t.Helper()
	var letters []outboxwatch.Letter
	for range n {
		var id string
		p.Do(t, &id, `
import structlog
from shop import charge
with structlog.contextvars.bound_contextvars(request="r1"), transaction.atomic():
    result = charge.apply_async((7, "ünï"), {"card": "4711", "nested": {"b": [1.5, None, 10**20], "a": True}}, countdown=3600, expires=9000, priority=3,
        headers={"tenant": "a"}, link=charge.si(8)).id
CeleryOutbox.objects.filter(task_id=result).update(sentry_trace_id="trace", sentry_baggage="baggage")`)
		letters = append(letters, outboxwatch.Letter{ID: p.Bury(t, id), TaskID: id})
	}
	return letters
}

// row reads the row of a task as the database holds it, without what tells two rows of the same call apart.
func row(t *testing.T, p *testdjango.Project, task string) (columns map[string]any, created time.Time) {
	t.Helper()
	p.Do(t, &columns, `
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SELECT * FROM celery_outbox WHERE task_id = %s", args)
    [values] = cursor.fetchall()
    result = dict(zip([column.name if hasattr(column, "name") else column[0] for column in cursor.description], values))
    result["created"] = CeleryOutbox.objects.get(task_id=args[0]).created_at.isoformat()`, task)
	created, err := time.Parse(time.RFC3339Nano, columns["created"].(string))
	if err != nil {
		t.Fatalf("created_at of %s: %v", task, err)
	}
	for _, name := range []string{"id", "task_id", "created_at", "created"} {
		delete(columns, name)
	}
	eta, _, _ := strings.Cut(columns["options"].(string), ", ") // each call has its own
	columns["options"] = strings.Replace(columns["options"].(string), eta, "", 1)
	return columns, created
}

func TestRequeueIsTheAdminsAction(t *testing.T) {
	t.Parallel()
	changeable(t, func(t *testing.T, p *testdjango.Project, o *database.Outbox) {
		letters := bury(t, p, 2)
		before := time.Now()
		p.Retry(t, letters[0].ID)
		change, err := o.Requeue(t.Context(), letters[1:])
		if err != nil || !slices.Equal(change.Done, letters[1:]) || change.Waiting != nil {
			t.Fatalf("requeue: %+v, %v, want %v done", change, err, letters[1:])
		}
		want, _ := row(t, p, letters[0].TaskID)
		got, created := row(t, p, letters[1].TaskID)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("row (-of the admin +of Umbel):\n%s", diff)
		}
		if created.Before(before.Add(-time.Second)) || created.After(time.Now().Add(time.Second)) {
			t.Errorf("created_at = %v, want about %v", created, before)
		}
		for name, value := range got {
			if value == nil && name != "updated_at" && name != "retry_after" && name != "redacted_args" {
				t.Errorf("column %s is not compared: NULL in both", name)
			}
		}
		var left int
		if p.Do(t, &left, `result = CeleryOutboxDeadLetter.objects.count()`); left != 0 {
			t.Errorf("%d dead letters are left, want none", left)
		}
	})
}

func TestRequeueMovesOnce(t *testing.T) {
	t.Parallel()
	changeable(t, func(t *testing.T, p *testdjango.Project, o *database.Outbox) {
		letters := bury(t, p, 3)
		var mu sync.Mutex
		var done []outboxwatch.Letter
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				change, err := o.Requeue(t.Context(), letters)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Errorf("requeue: %v", err)
				}
				done = append(done, change.Done...)
			})
		}
		all.Go(func() { p.Retry(t, letters[0].ID) })
		all.Wait()
		var rows, distinct int
		p.Do(t, &rows, `result = CeleryOutbox.objects.count()`)
		p.Do(t, &distinct, `result = CeleryOutbox.objects.values("task_id").distinct().count()`)
		if rows != 3 || distinct != 3 || len(done) != 2 && len(done) != 3 {
			t.Errorf("%d rows of %d tasks, %d moved by Umbel; want 3 rows of 3 tasks", rows, distinct, len(done))
		}
		change, err := o.Requeue(t.Context(), letters)
		if err != nil || len(change.Done) != 0 || !slices.Equal(change.Waiting, letters) {
			t.Errorf("requeue again: %+v, %v, want all to wait already", change, err)
		}
	})
}

func TestChangesNeedIDAndTask(t *testing.T) {
	t.Parallel()
	changeable(t, func(t *testing.T, p *testdjango.Project, o *database.Outbox) {
		letters := bury(t, p, 2)
		wrong := []outboxwatch.Letter{{ID: letters[0].ID, TaskID: letters[1].TaskID}}
		for name, change := range map[string]func() (outboxwatch.Change, error){
			"requeue": func() (outboxwatch.Change, error) { return o.Requeue(t.Context(), wrong) },
			"purge":   func() (outboxwatch.Change, error) { return o.Purge(t.Context(), wrong) },
		} {
			if got, err := change(); err != nil || len(got.Done) != 0 {
				t.Errorf("%s of another's id: %+v, %v, want nothing done", name, got, err)
			}
		}
		change, err := o.Purge(t.Context(), letters[:1])
		if err != nil || !slices.Equal(change.Done, letters[:1]) {
			t.Errorf("purge: %+v, %v, want %v", change, err, letters[:1])
		}
		var left []int64
		if p.Do(t, &left, `result = list(CeleryOutboxDeadLetter.objects.values_list("id", flat=True))`); !slices.Equal(left, []int64{letters[1].ID}) {
			t.Errorf("dead letters %v are left, want %d", left, letters[1].ID)
		}
	})
}

func TestRequeueLosesNoColumn(t *testing.T) {
	t.Parallel()
	changeable(t, func(t *testing.T, p *testdjango.Project, o *database.Outbox) {
		letters := bury(t, p, 1)
		p.Do(t, nil, `
from django.db import connection
connection.cursor().execute("ALTER TABLE celery_outbox_dead_letter ADD COLUMN tenant text")`)
		_, err := o.Requeue(t.Context(), letters)
		if e, ok := errors.AsType[*outboxwatch.Error](err); !ok || e.Fault != outboxwatch.FaultColumns || !strings.Contains(e.Text, "tenant") {
			t.Errorf("requeue with a column more: %v, want a fault of columns that names tenant", err)
		}
	})
}

func TestChangesOfAUserWithSelectOnly(t *testing.T) {
	t.Parallel()
	p := testdjango.PostgreSQL(t, "")
	letters := bury(t, p, 1)
	reader := p.Role(t, "SELECT ON celery_outbox, celery_outbox_dead_letter")
	o := openOutbox(t, reader)
	_, err := o.Requeue(t.Context(), letters)
	if e, ok := errors.AsType[*outboxwatch.Error](err); !ok || e.Fault != outboxwatch.FaultPermission || !strings.Contains(e.Text, "INSERT") {
		t.Errorf("requeue: %v, want a fault of permission that names the grants", err)
	}
	stats, err := o.Stats(t.Context())
	if err != nil || len(stats.MissingGrants) != 2 {
		t.Fatalf("stats: %v, missing grants %q, want 2", err, stats.MissingGrants)
	}
	for _, grant := range stats.MissingGrants {
		p.Do(t, nil, `
from django.db import connection
connection.cursor().execute(args[0])`, grant)
	}
	if change, err := o.Requeue(t.Context(), letters); err != nil || !slices.Equal(change.Done, letters) {
		t.Errorf("requeue with the grants: %+v, %v", change, err)
	}
}
