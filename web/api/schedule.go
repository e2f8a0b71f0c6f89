package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/schedules"
	"github.com/umbelhq/umbel/web/auth"
)

// Schedule is a series of tasks with the same name and arguments, sent at regular intervals. Null means unknown.
type Schedule struct {
	Name          string        `json:"name"`
	Args          *string       `json:"args" doc:"Python repr as sent; null if you may not see it."`
	Kwargs        *string       `json:"kwargs" doc:"Python repr as sent; null if you may not see it."`
	Client        *string       `json:"client" doc:"Node name of the newest sender."`
	Status        string        `json:"status" enum:"on_time,late,ended" doc:"ended: late for 20 intervals."`
	PeriodSeconds float64       `json:"period_seconds" doc:"Median of the intervals."`
	SpreadSeconds float64       `json:"spread_seconds" doc:"Median deviation from it."`
	LastAt        Time          `json:"last_at" doc:"When the newest task was sent, by the clock of its sender."`
	NextAt        Time          `json:"next_at" doc:"When the next task is expected; null if ended."`
	Missed        int           `json:"missed" doc:"Intervals without a task, between those that have one."`
	Overlaps      int           `json:"overlaps" doc:"Runs that started before the one before had ended."`
	Runs          []ScheduleRun `json:"runs" nullable:"false" doc:"Oldest first."`
}

// ScheduleRun is one task of a schedule.
type ScheduleRun struct {
	ID             string   `json:"id"`
	State          string   `json:"state" example:"SUCCESS"`
	Lost           bool     `json:"lost" doc:"Not expected to end."`
	SentAt         Time     `json:"sent_at" doc:"Or when it was received, if its sending was not seen."`
	RuntimeSeconds *float64 `json:"runtime_seconds"`
}

// ScheduleList is what is known of schedules.
type ScheduleList struct {
	Items []Schedule `json:"items" nullable:"false" doc:"Those that are late first, then by name."`
	Cut   bool       `json:"cut" doc:"There are more than 500 names of tasks, and only the first of them were looked through."`

	Databases []BeatDatabase `json:"databases" nullable:"false" doc:"What is configured in databases of django-celery-beat; empty if none are read, and of times past."`
}

type listSchedules struct{ Query }

func (a *api) registerSchedules(h huma.API) {
	op := operation(h, auth.View, "list-schedules", "/schedules", "List schedules", unavailable)
	op.Description = "Tasks that are sent at regular intervals, as by Celery beat, learnt from the newest 100 tasks of each name, and periodic tasks that databases of " +
		"django-celery-beat configure."
	huma.Register(h, op, a.schedules)
}

func (a *api) schedules(ctx context.Context, _ *listSchedules) (*response[ScheduleList], error) {
	now := a.now()
	if !a.at.IsZero() {
		now = a.at
	}
	found, err := schedules.Read(ctx, a.backend, a.backend.History(), now)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	return &response[ScheduleList]{ScheduleList{
		Databases: a.beatDatabases(found, now),
		Items:     mapSlice(found.Schedules, func(s schedules.Schedule) Schedule { return fromSchedule(s, now.UnixMicro()) }), Cut: found.Cut,
	}}, nil
}

func fromSchedule(s schedules.Schedule, now int64) Schedule {
	v := Schedule{
		Name: s.Name, Args: s.Args, Kwargs: s.Kwargs, Client: text(s.Client), Status: string(s.Status(now)),
		PeriodSeconds: float64(s.Period) / 1e6, SpreadSeconds: float64(s.Spread) / 1e6, LastAt: Time(s.LastAt()),
		Missed: s.Missed, Overlaps: s.Overlaps,
		Runs: mapSlice(s.Runs, func(r schedules.Run) ScheduleRun {
			return ScheduleRun{ID: r.ID, State: string(r.State), Lost: r.Lost, SentAt: Time(r.At), RuntimeSeconds: r.RuntimeSeconds}
		}),
	}
	if s.Status(now) != schedules.Ended {
		v.NextAt = Time(s.NextAt())
	}
	return v
}
