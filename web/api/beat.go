package api

import (
	"time"

	"github.com/umbelhq/umbel/monitor/beat"
	"github.com/umbelhq/umbel/monitor/schedules"
)

// BeatDatabase is what a database of django-celery-beat configures. Null means unknown or none.
type BeatDatabase struct {
	Name   string         `json:"name"`
	URL    string         `json:"url" doc:"Without its password."`
	ReadAt Time           `json:"read_at" doc:"When it was last read; null if it never was."`
	Error  *string        `json:"error" doc:"Why it cannot be read now, in a sentence; null if it can. The items are then the last ones."`
	Naive  bool           `json:"naive_times" doc:"Times are stored without a time zone: none is compared with a clock."`
	Lacks  []string       `json:"missing_tables" nullable:"false" doc:"Tables of schedules that are not there."`
	Cut    bool           `json:"cut" doc:"There are more than 1,000 periodic tasks, and only the first of them are read."`
	Items  []PeriodicTask `json:"items" nullable:"false" doc:"Those that need attention first, then by name."`
}

// PeriodicTask is a row of django_celery_beat_periodictask. Its arguments are not read.
type PeriodicTask struct {
	ID        int64   `json:"id"`
	Name      string  `json:"name"`
	Task      string  `json:"task"`
	Queue     *string `json:"queue"`
	Enabled   bool    `json:"enabled"`
	OneOff    bool    `json:"one_off"`
	Kind      *string `json:"kind" enum:"interval,crontab,solar,clocked"`
	Schedule  string  `json:"schedule" example:"every 30 s"`
	Status    string  `json:"status" enum:"overdue,disabled_but_runs,unreadable,not_seen,active,waiting,finished,disabled" doc:"not_seen: no event told of a task of its name."`
	StartTime Time    `json:"start_time"`
	Expires   Time    `json:"expires"`
	LastRunAt Time    `json:"last_run_at" doc:"As Django says, which beat writes every few minutes."`
	NextAt    Time    `json:"next_at" doc:"When it runs next, or should have; null if it does not or that cannot be told."`
	Runs      int64   `json:"total_run_count"`
	SeenAt    Time    `json:"seen_at" doc:"When events told of a task of its name last."`
}

// beatDatabases returns what is configured now.
func (a *api) beatDatabases(found schedules.Result, now time.Time) []BeatDatabase {
	list := []BeatDatabase{}
	if a.beatTables == nil || !a.at.IsZero() {
		return list
	}
	for _, r := range a.beatTables.Snapshot() {
		d := BeatDatabase{
			Name: r.Name, URL: r.URL, ReadAt: timeOf(r.ReadAt), Naive: r.Table.Naive, Lacks: mapSlice(r.Table.Lacks, func(s string) string { return s }),
			Cut: r.Table.Cut, Items: mapSlice(beat.Judge(r.Table, found, now), fromPeriodicTask),
		}
		if r.Err != nil {
			d.Error = &r.Err.Text
		}
		list = append(list, d)
	}
	return list
}

func fromPeriodicTask(j beat.Judged) PeriodicTask {
	return PeriodicTask{
		ID: j.ID, Name: j.Name, Task: j.Task, Queue: text(j.Queue), Enabled: j.Enabled, OneOff: j.OneOff,
		Kind: text(string(j.Schedule.Kind)), Schedule: j.Schedule.String(), Status: string(j.Status),
		StartTime: timeOf(j.StartTime), Expires: timeOf(j.Expires), LastRunAt: timeOf(j.LastRunAt), NextAt: timeOf(j.NextAt),
		Runs: j.Runs, SeenAt: timeOf(j.SeenAt),
	}
}
