package beat_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/beat"
)

func TestNextOfCrontab(t *testing.T) {
	t.Parallel()
	cron := func(zone, minute, hour, day, month, weekday string) beat.Schedule {
		return beat.Schedule{Kind: beat.Crontab, Minute: minute, Hour: hour, DayOfMonth: day, MonthOfYear: month, DayOfWeek: weekday, Timezone: zone}
	}
	for name, tc := range map[string]struct {
		s           beat.Schedule
		after, want string // empty if it cannot be told
	}{
		"daily":                {cron("UTC", "0", "4", "*", "*", "*"), "2026-03-02T12:00:00Z", "2026-03-03T04:00:00Z"},
		"in winter":            {cron("Europe/Vienna", "0", "4", "*", "*", "*"), "2026-03-02T12:00:00Z", "2026-03-03T03:00:00Z"},
		"in summer":            {cron("Europe/Vienna", "0", "4", "*", "*", "*"), "2026-07-02T12:00:00Z", "2026-07-03T02:00:00Z"},
		"hour that is skipped": {cron("Europe/Vienna", "30", "2", "*", "*", "*"), "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"},
		"steps":                {cron("UTC", "*/15", "*", "*", "*", "*"), "2026-03-02T12:00:00Z", "2026-03-02T12:15:00Z"},
		"range with step":      {cron("UTC", "10-40/20", "*", "*", "*", "*"), "2026-03-02T12:10:00Z", "2026-03-02T12:30:00Z"},
		"range past midnight":  {cron("UTC", "0", "22-2", "*", "*", "*"), "2026-03-02T23:30:00Z", "2026-03-03T00:00:00Z"},
		"names":                {cron("UTC", "0", "0", "*", "jul", "mon-wednesday"), "2026-03-02T12:00:00Z", "2026-07-01T00:00:00Z"},
		"both days":            {cron("UTC", "0", "0", "13", "*", "fri"), "2026-03-14T00:00:00Z", "2026-11-13T00:00:00Z"},
		"leap day":             {cron("UTC", "0", "0", "29", "2", "*"), "2026-03-02T12:00:00Z", "2028-02-29T00:00:00Z"},
		"no such day":          {cron("UTC", "0", "0", "31", "2", "*"), "2026-03-02T12:00:00Z", ""},
		"no such zone":         {cron("Europe/Vindobona", "0", "0", "*", "*", "*"), "2026-03-02T12:00:00Z", ""},
		"zone unknown":         {cron("", "0", "0", "*", "*", "*"), "2026-03-02T12:00:00Z", ""},
		"out of range":         {cron("UTC", "60", "0", "*", "*", "*"), "2026-03-02T12:00:00Z", ""},
		"empty":                {cron("UTC", "", "0", "*", "*", "*"), "2026-03-02T12:00:00Z", ""},
		"no step":              {cron("UTC", "*/0", "0", "*", "*", "*"), "2026-03-02T12:00:00Z", ""},
		"step alone":           {cron("UTC", "5/10", "0", "*", "*", "*"), "2026-03-02T12:00:00Z", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after, err := time.Parse(time.RFC3339, tc.after)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if at, ok := tc.s.Next(after); ok {
				got = at.UTC().Format(time.RFC3339)
			}
			if got != tc.want {
				t.Errorf("next after %s = %q, want %q", tc.after, got, tc.want)
			}
		})
	}
}

// FuzzNextOfCrontab looks for crontabs that never end or go backwards.
func FuzzNextOfCrontab(f *testing.F) {
	f.Add("*/5", "22-2", "1,15", "feb", "sun-tue", int64(1_772_000_000))
	f.Add("0", "0", "31", "2", "*", int64(0))
	f.Fuzz(func(t *testing.T, minute, hour, day, month, weekday string, after int64) {
		from := time.Unix(after%(1<<33), 0)
		s := beat.Schedule{Kind: beat.Crontab, Minute: minute, Hour: hour, DayOfMonth: day, MonthOfYear: month, DayOfWeek: weekday, Timezone: "Europe/Vienna"}
		if at, ok := s.Next(from); ok && !at.After(from) {
			t.Errorf("next after %s = %s", from, at)
		}
	})
}
