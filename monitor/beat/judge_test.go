package beat_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/beat"
	"github.com/umbelhq/umbel/monitor/schedules"
)

var now = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

func every(n int64, period string) beat.Schedule {
	return beat.Schedule{Kind: beat.Interval, Every: n, Period: period}
}

// sends is what events tell of a task that was sent each period, at last so long ago.
func sends(name string, period, last time.Duration) schedules.Schedule {
	s := schedules.Schedule{Name: name, Period: period.Microseconds()}
	for i := range 6 {
		s.Runs = append(s.Runs, schedules.Run{At: ago(last + time.Duration(5-i)*period).UnixMicro()})
	}
	return s
}

func TestJudge(t *testing.T) {
	t.Parallel()
	hourly := beat.Entry{Name: "hourly", Task: "shop.sync", Enabled: true, Schedule: every(1, "hours"), LastRunAt: ago(30 * time.Minute), ChangedAt: ago(30 * time.Minute)}
	with := func(change func(e *beat.Entry)) beat.Entry {
		e := hourly
		change(&e)
		return e
	}
	for name, tc := range map[string]struct {
		entry  beat.Entry
		seen   time.Duration // how long ago events told of its task, 0 for never
		status beat.Status
		next   time.Time
	}{
		"in time":              {hourly, 30 * time.Minute, beat.Active, now.Add(30 * time.Minute)},
		"never seen":           {hourly, 0, beat.NotSeen, now.Add(30 * time.Minute)},
		"within grace":         {with(func(e *beat.Entry) { e.LastRunAt = ago(65 * time.Minute) }), 65 * time.Minute, beat.Active, ago(5 * time.Minute)},
		"overdue":              {with(func(e *beat.Entry) { e.LastRunAt = ago(70 * time.Minute) }), 70 * time.Minute, beat.Overdue, ago(10 * time.Minute)},
		"ran, not yet written": {with(func(e *beat.Entry) { e.LastRunAt = ago(70 * time.Minute) }), 10 * time.Minute, beat.Active, now.Add(50 * time.Minute)},
		"never ran": {with(func(e *beat.Entry) {
			e.LastRunAt, e.ChangedAt = time.Time{}, ago(2*time.Hour)
		}), 0, beat.Overdue, ago(time.Hour)},
		"starts later":        {with(func(e *beat.Entry) { e.LastRunAt, e.StartTime = time.Time{}, now.Add(time.Hour) }), 0, beat.Waiting, now.Add(time.Hour)},
		"disabled":            {with(func(e *beat.Entry) { e.Enabled = false }), 3 * time.Hour, beat.Disabled, time.Time{}},
		"sent by hand before": {with(func(e *beat.Entry) { e.LastRunAt = ago(70 * time.Minute) }), 30 * time.Minute, beat.Overdue, ago(10 * time.Minute)},
		"expired":             {with(func(e *beat.Entry) { e.Expires = ago(time.Minute) }), time.Hour, beat.Finished, time.Time{}},
		"expires first":       {with(func(e *beat.Entry) { e.Expires = now.Add(time.Minute) }), time.Hour, beat.Active, time.Time{}},
		"ran once":            {with(func(e *beat.Entry) { e.OneOff, e.Runs = true, 1 }), time.Hour, beat.Finished, time.Time{}},
		"no schedule":         {with(func(e *beat.Entry) { e.Schedule = beat.Schedule{} }), time.Hour, beat.Unreadable, time.Time{}},
		"at sunset":           {with(func(e *beat.Entry) { e.Schedule = beat.Schedule{Kind: beat.Solar, Event: "sunset"} }), time.Hour, beat.Active, time.Time{}},
		"clock missed": {with(func(e *beat.Entry) {
			e.Schedule, e.LastRunAt = beat.Schedule{Kind: beat.Clocked, At: ago(time.Hour)}, time.Time{}
		}), 0, beat.Overdue, ago(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen schedules.Result
			if tc.seen > 0 {
				seen.Newest = map[string]int64{"shop.sync": ago(tc.seen).UnixMicro()}
			}
			got := beat.Judge(beat.Table{Entries: []beat.Entry{tc.entry}}, seen, now)[0]
			if got.Status != tc.status || !got.NextAt.Equal(tc.next) {
				t.Errorf("status %s, next at %s; want %s, %s", got.Status, got.NextAt, tc.status, tc.next)
			}
		})
	}
}

func TestDisabledThatRuns(t *testing.T) {
	t.Parallel()
	off := beat.Entry{Name: "off", Task: "shop.sync", Schedule: every(1, "hours"), ChangedAt: ago(3 * time.Hour)}
	other := beat.Entry{Name: "other", Task: "shop.sync", Enabled: true, Schedule: every(1, "hours"), LastRunAt: ago(time.Minute)}
	just := off
	just.ChangedAt = ago(2 * time.Minute)
	running := schedules.Result{Schedules: []schedules.Schedule{sends("shop.sync", 10*time.Minute, time.Minute)}}
	for name, tc := range map[string]struct {
		entries []beat.Entry
		seen    schedules.Result
		want    beat.Status
	}{
		"still sent":        {[]beat.Entry{off}, running, beat.DisabledRuns},
		"not sent":          {[]beat.Entry{off}, schedules.Result{}, beat.Disabled},
		"disabled just now": {[]beat.Entry{just}, running, beat.Disabled},
		"sent by another":   {[]beat.Entry{other, off}, running, beat.Disabled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, j := range beat.Judge(beat.Table{Entries: tc.entries}, tc.seen, now) {
				if j.Name == "off" && j.Status != tc.want {
					t.Errorf("status = %s, want %s", j.Status, tc.want)
				}
			}
		})
	}
}

func TestAttentionFirst(t *testing.T) {
	t.Parallel()
	table := beat.Table{Entries: []beat.Entry{
		{Name: "b off", Task: "b"},
		{Name: "a fine", Task: "a", Enabled: true, Schedule: every(1, "hours"), LastRunAt: now},
		{Name: "z late", Task: "a", Enabled: true, Schedule: every(1, "minutes"), LastRunAt: ago(time.Hour)},
	}}
	var got []string
	for _, j := range beat.Judge(table, schedules.Result{Newest: map[string]int64{"a": now.UnixMicro()}}, now) {
		got = append(got, j.Name)
	}
	if diff := cmp.Diff([]string{"z late", "a fine", "b off"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	table.Naive = true
	for _, j := range beat.Judge(table, schedules.Result{}, now) {
		if !j.NextAt.IsZero() || j.Status == beat.Overdue {
			t.Errorf("%s is judged by times without a zone: %s, %s", j.Name, j.Status, j.NextAt)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]beat.Schedule{
		"every 30 s":                       every(30, "seconds"),
		"every hour":                       every(1, "hours"),
		"every 2 days":                     every(2, "days"),
		"crontab 0 4 * * *  Europe/Vienna": {Kind: beat.Crontab, Minute: "0", Hour: "4", DayOfMonth: "*", MonthOfYear: "*", DayOfWeek: "*", Timezone: "Europe/Vienna"},
		"at sunset (48.21, 16.37)":         {Kind: beat.Solar, Event: "sunset", Latitude: "48.21", Longitude: "16.37"},
		"at civil dawn (0, 0)":             {Kind: beat.Solar, Event: "dawn_civil", Latitude: "0", Longitude: "0"},
		"at solar noon (0, 0)":             {Kind: beat.Solar, Event: "solar_noon", Latitude: "0", Longitude: "0"},
		"once at 2026-03-02 12:00:00 UTC":  {Kind: beat.Clocked, At: now},
		"no schedule":                      {},
	} {
		if got := s.String(); got != want {
			t.Errorf("words = %q, want %q", got, want)
		}
	}
}
