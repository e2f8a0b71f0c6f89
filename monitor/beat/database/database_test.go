package database_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/internal/testdjango"
	"github.com/umbelhq/umbel/monitor/beat"
	"github.com/umbelhq/umbel/monitor/beat/database"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, url string) *database.Database {
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

// fill makes a periodic task of each kind.
const fill = `
from datetime import datetime, timezone
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule
def at(day): return datetime(2026, 3, day, 12, 30, 15, 250000, tzinfo=timezone.utc)
def make(name, **columns): PeriodicTask.objects.create(name=name, task="shop.charge", args='["s3cret"]', kwargs='{"card": "s3cret"}', **columns)
make("interval", interval=IntervalSchedule.objects.create(every=30, period="seconds"), queue="slow", last_run_at=at(1), total_run_count=7)
make("crontab", crontab=CrontabSchedule.objects.create(minute="0", hour="4", timezone="Europe/Vienna"), enabled=False, start_time=at(2), expires=at(3))
make("solar", solar=SolarSchedule.objects.create(event="sunset", latitude="48.208200", longitude="16.373800"))
make("clocked", clocked=ClockedSchedule.objects.create(clocked_time=at(4)), one_off=True)
`

func TestRead(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *testdjango.Project) {
		t.Helper()
		p.Do(t, nil, fill)
		got, err := open(t, p.URL).Read(t.Context())
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		at := func(day int) time.Time { return time.Date(2026, 3, day, 12, 30, 15, 250_000_000, time.UTC) }
		want := beat.Table{Entries: []beat.Entry{
			{
				ID: 1, Name: "interval", Task: "shop.charge", Queue: "slow", Enabled: true, LastRunAt: at(1), Runs: 7,
				Schedule: beat.Schedule{Kind: beat.Interval, Every: 30, Period: "seconds"},
			},
			{
				ID: 2, Name: "crontab", Task: "shop.charge", StartTime: at(2), Expires: at(3),
				Schedule: beat.Schedule{Kind: beat.Crontab, Minute: "0", Hour: "4", DayOfMonth: "*", MonthOfYear: "*", DayOfWeek: "*", Timezone: "Europe/Vienna"},
			},
			{ID: 3, Name: "solar", Task: "shop.charge", Enabled: true, Schedule: beat.Schedule{Kind: beat.Solar, Event: "sunset", Latitude: "48.2082", Longitude: "16.3738"}},
			{ID: 4, Name: "clocked", Task: "shop.charge", Enabled: true, OneOff: true, Schedule: beat.Schedule{Kind: beat.Clocked, At: at(4)}},
		}}
		for i := range got.Entries {
			if age := time.Since(got.Entries[i].ChangedAt); age < 0 || age > time.Hour {
				t.Errorf("%s was changed %s ago", got.Entries[i].Name, age)
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(beat.Entry{}, "ChangedAt")); diff != "" {
			t.Errorf("table (-want +got):\n%s", diff)
		}
	})
}

// TestNextAsCelery compares when crontabs run next with what Celery says.
func TestNextAsCelery(t *testing.T) {
	t.Parallel()
	p := testdjango.SQLite(t, "")
	var cases []struct {
		Fields []string `json:"fields"`
		After  string   `json:"after"`
		Next   string   `json:"next"`
	}
	p.Do(t, &cases, `
from datetime import datetime, timezone
from zoneinfo import ZoneInfo
from celery.schedules import crontab
result = []
for fields in (
    "* * * * *", "0 4 * * *", "*/7 */5 * * *", "5,35 22-2 * * *", "30 12 * * mon-fri", "0 0 1 * *", "0 0 13 * fri", "15 6 */10 * *",
    "0 8-18/3 * * 1-5", "0 0 29 2 *", "45 23 31 * *", "0 12 1-7 1,4,7,10 mon", "10-50/20 3 * 6-9 sun", "0 9 * dec-feb sat",
):
    minute, hour, day, month, weekday = fields.split()
    for after in ("2026-03-02T12:00:00", "2026-12-31T23:59:59", "2027-02-28T04:00:01", "2026-06-15T22:35:30"):
        for name in ("UTC", "Asia/Kolkata"):
            zone = ZoneInfo(name)
            at = datetime.fromisoformat(after).replace(tzinfo=timezone.utc)
            spec = crontab(minute=minute, hour=hour, day_of_month=day, month_of_year=month, day_of_week=weekday, nowfun=lambda: at, app=app)
            spec.tz = zone
            last, delta, now = spec.remaining_delta(at.astimezone(zone), tz=zone)
            result.append({"fields": fields.split() + [name], "after": at.isoformat(), "next": (last + delta).astimezone(timezone.utc).isoformat()})
`)
	if len(cases) < 100 {
		t.Fatalf("%d cases, want more", len(cases))
	}
	for _, c := range cases {
		s := beat.Schedule{Kind: beat.Crontab, Minute: c.Fields[0], Hour: c.Fields[1], DayOfMonth: c.Fields[2], MonthOfYear: c.Fields[3], DayOfWeek: c.Fields[4], Timezone: c.Fields[5]}
		after, err := time.Parse(time.RFC3339, c.After)
		if err != nil {
			t.Fatal(err)
		}
		want, err := time.Parse(time.RFC3339, c.Next)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := s.Next(after); !ok || !got.Equal(want) {
			t.Errorf("next of %v after %s = %s, %t; Celery says %s", c.Fields, after, got.UTC(), ok, want)
		}
	}
}

func TestOlderTables(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *testdjango.Project) {
		t.Helper()
		p.Do(t, nil, fill+`
from django.db import connection
with connection.cursor() as c:
    c.execute("CREATE TABLE kept AS SELECT id, name, task, interval_id, crontab_id, clocked_id, enabled, last_run_at FROM django_celery_beat_periodictask")
    c.execute("DROP TABLE django_celery_beat_periodictask")
    c.execute("ALTER TABLE kept RENAME TO django_celery_beat_periodictask")
    c.execute("DROP TABLE django_celery_beat_clockedschedule")
    c.execute("ALTER TABLE django_celery_beat_crontabschedule DROP COLUMN timezone")`)
		got, err := open(t, p.URL).Read(t.Context())
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		if diff := cmp.Diff([]string{"django_celery_beat_clockedschedule"}, got.Lacks); diff != "" {
			t.Errorf("lacks (-want +got):\n%s", diff)
		}
		kinds := map[string]beat.Kind{}
		for _, e := range got.Entries {
			kinds[e.Name] = e.Schedule.Kind
		}
		if diff := cmp.Diff(map[string]beat.Kind{"interval": beat.Interval, "crontab": beat.Crontab, "solar": "", "clocked": ""}, kinds); diff != "" {
			t.Errorf("kinds (-want +got):\n%s", diff)
		}
	})
}

// fails reads and expects a sentence.
func fails(t *testing.T, url, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := open(t, url).Read(ctx)
	e, ok := errors.AsType[*beat.Error](err)
	if !ok || !strings.Contains(e.Text, want) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("read %s: %v, want a sentence with %q", url, err, want)
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	fails(t, "sqlite:///"+filepath.Join(t.TempDir(), "none.db"), "none.db cannot be read.")
	fails(t, "postgres://shop:s3cret@127.0.0.1:1/shop?sslmode=disable", "cannot be reached.")
	p := testdjango.PostgreSQL(t, "")
	fails(t, p.Role(t, "SELECT ON celery_outbox"), "reading needs SELECT on the tables django_celery_beat_periodictask,")
	fails(t, p.URL+"&schema=other", "has no table other.django_celery_beat_periodictask: run the migrations")
	if _, err := open(t, p.Role(t, "SELECT ON ALL TABLES IN SCHEMA public")).Read(t.Context()); err != nil {
		t.Errorf("read with SELECT: %v", err)
	}
	p.Do(t, nil, `
from django.db import connection
with connection.cursor() as c:
    c.execute("ALTER TABLE django_celery_beat_periodictask DROP COLUMN task")`)
	fails(t, p.URL, "has no column task")
}

func TestManyEntries(t *testing.T) {
	t.Parallel()
	p := testdjango.SQLite(t, "")
	p.Do(t, nil, `
from django_celery_beat.models import IntervalSchedule, PeriodicTask
every = IntervalSchedule.objects.create(every=1, period="days")
PeriodicTask.objects.bulk_create(PeriodicTask(name="task %d" % i, task="shop.charge", interval=every) for i in range(args[0]))`, beat.MaxEntries+5)
	got, err := open(t, p.URL).Read(t.Context())
	if err != nil || len(got.Entries) != beat.MaxEntries || !got.Cut {
		t.Errorf("read %d entries, cut %t: %v", len(got.Entries), got.Cut, err)
	}
}
