package database_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/internal/testdjango"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/monitor/outboxwatch/database"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, url string) *database.Outbox {
	t.Helper()
	b, err := database.New(database.Options{URL: url})
	if err != nil {
		t.Fatalf("open %s: %v", url, err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

// onBoth runs a test on a Django project in SQLite and one in PostgreSQL.
func onBoth(t *testing.T, test func(t *testing.T, p *testdjango.Project)) {
	t.Helper()
	for name, project := range map[string]func(testing.TB, string) *testdjango.Project{
		"SQLite": testdjango.SQLite, "PostgreSQL": testdjango.PostgreSQL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, project(t, ""))
		})
	}
}

// fill makes rows in every state: two pending, one each in flight, stale, deferred, due and of another schema, and two dead
// letters.
const fill = `
from datetime import timedelta
from django.utils import timezone
now = timezone.now()
ago = lambda seconds: now - timedelta(seconds=seconds)
def row(id, age, **columns):
    row = CeleryOutbox.objects.create(task_id=id, task_name=columns.pop("name", "shop." + id), args=[1], kwargs={}, **columns)
    CeleryOutbox.objects.filter(pk=row.pk).update(created_at=ago(age))
row("foreign", 900, schema_version=2)
row("stale", 500, updated_at=ago(400))
row("deferred", 600, updated_at=ago(30), retries=3, retry_after=ago(-120))
row("due", 450, updated_at=ago(130), retries=2, retry_after=ago(10))
row("flight", 40, updated_at=ago(20))
row("pending", 30)
row("pending2", 25, name="shop.pending")
for i in (1, 2):
    CeleryOutboxDeadLetter.objects.create(task_id="dead%d" % i, task_name="shop.dead", created_at=ago(3600), retries=5, failure_reason="max retries exceeded")
`

func TestStats(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *testdjango.Project) {
		t.Helper()
		p.Do(t, nil, fill)
		b := open(t, p.URL)
		s, err := b.Stats(t.Context())
		if err != nil {
			t.Fatalf("stats: %v", err)
		}
		want := map[outboxwatch.State]outboxwatch.Count{}
		for _, state := range outboxwatch.States() {
			want[state] = outboxwatch.Count{N: 1, Exact: true}
		}
		want[outboxwatch.Pending] = outboxwatch.Count{N: 2, Exact: true}
		if diff := cmp.Diff(want, s.States); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
		if got, want := s.Retries, (outboxwatch.Count{N: 5, Exact: true}); got != want {
			t.Errorf("retries = %v, want %v", got, want)
		}
		if diff := cmp.Diff([]outboxwatch.NameCount{{Name: "shop.deferred", N: 3}, {Name: "shop.due", N: 2}}, s.TopFailing); diff != "" {
			t.Errorf("top failing (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]outboxwatch.NameCount{{Name: "max retries exceeded", N: 2}}, s.Reasons); diff != "" {
			t.Errorf("reasons (-want +got):\n%s", diff)
		}
		if s.DeadLetters.N != 2 || len(s.MissingGrants) > 0 || s.ReadOnly != "" {
			t.Errorf("dead letters = %v, missing grants %q, read-only %q; want 2 and none", s.DeadLetters, s.MissingGrants, s.ReadOnly)
		}
		// The package's own numbers.
		var own struct {
			Depth  int               `json:"queue_depth"`
			Dead   int               `json:"dlq_count"`
			Oldest float64           `json:"oldest_pending_seconds"`
			Top    []json.RawMessage `json:"top_failing"`
		}
		p.Do(t, &own, `
from django_celery_outbox.stats import get_queue_stats
result = get_queue_stats().to_dict()`)
		if s.Ready().N != own.Depth || s.DeadLetters.N != own.Dead || len(s.TopFailing) != len(own.Top) {
			t.Errorf("ready = %v, dead letters %v, %d names failing; the package counts %+v", s.Ready(), s.DeadLetters, len(s.TopFailing), own)
		}
		if got := s.Now.Sub(s.OldestReady).Seconds(); got > own.Oldest+1 || got < own.Oldest-30 {
			t.Errorf("oldest ready for %.1f s, the package says %.1f s", got, own.Oldest)
		}
	})
}

func TestRowsByState(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *testdjango.Project) {
		t.Helper()
		p.Do(t, nil, fill)
		b := open(t, p.URL)
		for state, want := range map[outboxwatch.State][]string{
			"":                      {"foreign", "stale", "deferred", "due", "flight", "pending", "pending2"},
			outboxwatch.Pending:     {"pending", "pending2"},
			outboxwatch.InFlight:    {"flight"},
			outboxwatch.Stale:       {"stale"},
			outboxwatch.Deferred:    {"deferred"},
			outboxwatch.Due:         {"due"},
			outboxwatch.OtherSchema: {"foreign"},
		} {
			for limit := 1; limit <= 8; limit++ {
				var got []string
				r := outboxwatch.RowRequest{State: state, Limit: limit}
				for pages := 0; pages == 0 || r.After != ""; pages++ {
					page, err := b.Rows(t.Context(), r)
					if err != nil || pages > 8 {
						t.Fatalf("page %d of %q rows by %d: %v", pages, state, limit, err)
					}
					for _, row := range page.Rows {
						got = append(got, row.TaskID)
						if state != "" && row.State != state {
							t.Errorf("row %s is %s, want %s", row.TaskID, row.State, state)
						}
					}
					r.After = page.Next
				}
				if !slices.Equal(got, want) {
					t.Errorf("%q rows by %d = %v, want %v", state, limit, got, want)
				}
			}
		}
		for name, want := range map[string]int{"shop.pending": 2, "shop.p*": 2, "shop.d*": 2, "shop": 0, "*": 7} {
			page, err := b.Rows(t.Context(), outboxwatch.RowRequest{Name: name, Limit: 100})
			if err != nil || len(page.Rows) != want || page.Next != "" {
				t.Errorf("rows of %s = %d, next %q, %v; want %d", name, len(page.Rows), page.Next, err, want)
			}
		}
		rows, dead, err := b.ByTask(t.Context(), []string{"due", "dead2", "nothing", "stale"})
		if err != nil || len(rows) != 2 || rows[0].TaskID != "stale" || len(dead) != 1 || dead[0].Reason != "max retries exceeded" {
			t.Errorf("by task = %+v, %+v, %v", rows, dead, err)
		}
		page, err := b.DeadLetters(t.Context(), outboxwatch.DeadLetterRequest{Limit: 1})
		if err != nil || len(page.DeadLetters) != 1 || page.DeadLetters[0].TaskID != "dead2" || page.Next == "" {
			t.Fatalf("dead letters = %+v, %v", page, err)
		}
		page, err = b.DeadLetters(t.Context(), outboxwatch.DeadLetterRequest{Limit: 1, After: page.Next})
		if err != nil || len(page.DeadLetters) != 1 || page.DeadLetters[0].TaskID != "dead1" || page.Next != "" {
			t.Fatalf("second page of dead letters = %+v, %v", page, err)
		}
	})
}

func TestRedactedColumnsWin(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *testdjango.Project) {
		t.Helper()
		id := p.Enqueue(t, "shop.charge", []any{"é"}, map[string]any{"card": "4711-secret"})
		b := open(t, p.URL)
		page, err := b.Rows(t.Context(), outboxwatch.RowRequest{Limit: 10, Payload: true})
		if err != nil || len(page.Rows) != 1 {
			t.Fatalf("rows = %+v, %v", page, err)
		}
		r := page.Rows[0]
		if r.TaskID != id || !r.RedactedKwargs || r.RedactedArgs || strings.Contains(string(r.Kwargs), "4711") || !strings.Contains(string(r.Kwargs), "***") {
			t.Errorf("kwargs = %s, redacted %t; args = %s, redacted %t", r.Kwargs, r.RedactedKwargs, r.Args, r.RedactedArgs)
		}
		var args []string
		if err := json.Unmarshal(r.Args, &args); err != nil || args[0] != "é" {
			t.Errorf("args = %s, %v", r.Args, err)
		}
		p.Bury(t, id)
		dead, err := b.DeadLetters(t.Context(), outboxwatch.DeadLetterRequest{Limit: 10, Payload: true})
		if err != nil || len(dead.DeadLetters) != 1 || strings.Contains(string(dead.DeadLetters[0].Kwargs), "4711") {
			t.Errorf("dead letters = %+v, %v", dead, err)
		}
		p.Enqueue(t, "shop.long", []any{strings.Repeat("x", outboxwatch.MaxPayload)}, nil)
		page, err = b.Rows(t.Context(), outboxwatch.RowRequest{Limit: 10, Payload: true})
		if err != nil || len(page.Rows) != 1 || page.Rows[0].Args != nil || page.Rows[0].ArgsSize <= outboxwatch.MaxPayload {
			t.Errorf("a long argument is read: %d bytes of %d, %v", len(page.Rows[0].Args), page.Rows[0].ArgsSize, err)
		}
	})
}
