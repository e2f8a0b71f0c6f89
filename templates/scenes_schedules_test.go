package templates_test

import (
	"strconv"
	"time"

	"github.com/umbelhq/umbel/monitor/beat"
	"github.com/umbelhq/umbel/monitor/schedules"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

func scheduleScenes() map[string]scene {
	shown := layout(templates.SectionSchedules, "/schedules")
	every := func(name, args string, period int64, states ...state.State) schedules.Schedule {
		s := schedules.Schedule{Name: name, Args: &args, Kwargs: new("{}"), Client: "gen7@beat", Period: period, Spread: period / 50}
		for i, st := range states {
			r := schedules.Run{ID: name + strconv.Itoa(i), State: st, At: noon - int64(len(states)-i)*period, Lost: st == state.Received}
			if st == state.Success {
				r.RuntimeSeconds = new(1 + float64(i))
			}
			s.Runs = append(s.Runs, r)
		}
		return s
	}
	ok, bad, lost := state.Success, state.Failure, state.Received
	late := every("reports.nightly", "('berlin',)", 600*second, ok, ok, bad, lost, ok, ok)
	late.Missed, late.Overlaps = 2, 1
	odd := every(evil, evil, 60*second, bad, bad, bad, bad, bad, bad)
	odd.Client, odd.Args = "", nil
	return map[string]scene{
		"schedules": {shown, templates.Schedules{Now: time.UnixMicro(noon + 120*second), Result: schedules.Result{
			Cut: true, Schedules: []schedules.Schedule{odd, every("carts.expire", "()", 120*second, ok, ok, ok, ok, ok, bad), late},
		}, Senders: []templates.Sender{{Name: "celerybeat@c", Beat: true}, {Name: "gen12@a", Schedules: 2, Behind: 1, LastAt: noon, Beat: true}, {Name: evil, Schedules: 1}}}},
		"schedules-ended": {dark(shown), templates.Schedules{Now: time.UnixMicro(noon + 30*86400*second), Result: schedules.Result{Schedules: []schedules.Schedule{late}}}},
		"schedules-configured": {shown, templates.Schedules{
			Now: time.UnixMicro(noon), Result: schedules.Result{Schedules: []schedules.Schedule{late}}, Databases: beatDatabases(&late),
		}},
		"schedules-none": {shown, templates.Schedules{Now: time.UnixMicro(noon)}},
	}
}

// beatDatabases are a database with a periodic task in each status, one that cannot be read, and one that is empty.
func beatDatabases(observed *schedules.Schedule) []templates.BeatDatabase {
	at := func(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
	entry := func(status beat.Status, s beat.Schedule, change func(j *beat.Judged)) beat.Judged {
		j := beat.Judged{Status: status, Entry: beat.Entry{Name: string(status), Task: "reports.nightly", Enabled: true, Schedule: s}}
		change(&j)
		return j
	}
	cron := beat.Schedule{Kind: beat.Crontab, Minute: "0", Hour: "4", DayOfMonth: "*", MonthOfYear: "*", DayOfWeek: "*", Timezone: "Europe/Vienna"}
	often := beat.Schedule{Kind: beat.Interval, Every: 30, Period: "seconds"}
	all := []beat.Judged{
		entry(beat.Overdue, cron, func(j *beat.Judged) {
			j.NextAt, j.LastRunAt, j.Runs = at(noon-3600*second), at(noon-90000*second), 1234
		}),
		entry(beat.DisabledRuns, often, func(j *beat.Judged) { j.Enabled, j.SeenAt, j.Observed = false, at(noon-9*second), observed }),
		entry(beat.Unreadable, beat.Schedule{}, func(j *beat.Judged) { j.Name, j.Task, j.Queue = evil, evil, evil }),
		entry(beat.NotSeen, beat.Schedule{Kind: beat.Solar, Event: "sunset", Latitude: "48.2082", Longitude: "16.3738"}, func(j *beat.Judged) { j.LastRunAt = at(noon - 86400*second) }),
		entry(beat.Active, cron, func(j *beat.Judged) {
			j.NextAt, j.SeenAt, j.Queue = at(noon+3600*second), at(noon-80000*second), "slow"
		}),
		entry(beat.Active, often, func(j *beat.Judged) { j.NextAt, j.SeenAt = at(noon-second), at(noon-31*second) }),
		entry(beat.Waiting, often, func(j *beat.Judged) { j.NextAt, j.Expires = at(noon+86400*second), at(noon+2*86400*second) }),
		entry(beat.Finished, beat.Schedule{Kind: beat.Clocked, At: at(noon - 60*second)}, func(j *beat.Judged) { j.OneOff, j.Runs, j.LastRunAt = true, 1, at(noon-60*second) }),
		entry(beat.Disabled, cron, func(j *beat.Judged) { j.Enabled = false }),
	}
	for i := range all {
		all[i].ID = int64(i + 1)
	}
	read := beat.Reading{Name: "shop", URL: "postgresql://umbel@db/shop", ReadAt: at(noon - 5*second)}
	read.Table = beat.Table{Cut: true, Naive: true, Lacks: []string{"django_celery_beat_clockedschedule"}}
	away := beat.Reading{Name: "billing", URL: "postgresql://umbel@db/billing", Err: &beat.Error{Text: "The database postgresql://umbel@db/billing cannot be reached."}}
	return []templates.BeatDatabase{{Reading: read, Entries: all}, {Reading: away}, {Reading: beat.Reading{Name: "new", URL: "sqlite:////new.db", ReadAt: at(noon)}}, {Reading: beat.Reading{Name: "soon"}}}
}
