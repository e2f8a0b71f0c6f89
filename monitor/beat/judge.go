package beat

import (
	"cmp"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/schedules"
)

// Grace is how long a run may be late: beat writes what has run every five minutes.
const Grace = 6 * time.Minute

// Status says what is known of a periodic task.
type Status string

// The statuses, those that need attention first.
const (
	Overdue      Status = "overdue"
	DisabledRuns Status = "disabled_but_runs"
	Unreadable   Status = "unreadable" // it has no schedule, or none that can be read
	NotSeen      Status = "not_seen"   // no event told of a task of its name
	Active       Status = "active"
	Waiting      Status = "waiting"  // for its start
	Finished     Status = "finished" // it has expired, or has run once and was to
	Disabled     Status = "disabled"
)

// Judged is a periodic task with what events say of it.
type Judged struct {
	Entry

	Status Status
	NextAt time.Time // zero if it does not run again or cannot be told
	SeenAt time.Time // when events told of a task of its name last, zero if none did
	// Observed is the schedule that events tell of its task, nil if none does, or several do.
	Observed *schedules.Schedule
}

// Judge compares what is configured with what events tell, by now. Those that need attention come first, then by name.
func Judge(t Table, seen schedules.Result, now time.Time) []Judged {
	observed, enabled := map[string][]*schedules.Schedule{}, map[string]int{}
	for i := range seen.Schedules {
		s := &seen.Schedules[i]
		observed[s.Name] = append(observed[s.Name], s)
	}
	for i := range t.Entries {
		if t.Entries[i].Enabled {
			enabled[t.Entries[i].Task]++
		}
	}
	list := make([]Judged, len(t.Entries))
	for i := range t.Entries {
		j := Judged{Entry: t.Entries[i]}
		if at := seen.Newest[j.Task]; at != 0 {
			j.SeenAt = time.UnixMicro(at)
		}
		if all := observed[j.Task]; len(all) == 1 && enabled[j.Task] <= 1 {
			j.Observed = all[0]
		}
		if !t.Naive {
			j.NextAt = j.next(enabled[j.Task] == 1, now)
		}
		j.Status = j.status(enabled[j.Task], seen.Cut, now)
		list[i] = j
	}
	slices.SortStableFunc(list, func(a, b Judged) int {
		return cmp.Or(cmp.Compare(a.Status.rank(), b.Status.rank()), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func (s Status) rank() int {
	return slices.Index([]Status{Overdue, DisabledRuns, Unreadable, NotSeen, Active, Waiting, Finished, Disabled}, s)
}

func (j *Judged) status(enabled int, cut bool, now time.Time) Status {
	switch {
	case !j.Enabled && enabled == 0 && j.runs(now):
		return DisabledRuns
	case !j.Enabled:
		return Disabled
	case j.Schedule.Kind == "":
		return Unreadable
	case j.finished(now):
		return Finished
	case j.StartTime.After(now):
		return Waiting
	case !j.NextAt.IsZero() && now.Sub(j.NextAt) > Grace:
		return Overdue
	case j.SeenAt.IsZero() && !cut:
		return NotSeen
	}
	return Active
}

// runs reports whether its task is still sent at regular intervals, since it was changed last, which disabled it or came later.
func (j *Judged) runs(now time.Time) bool {
	return j.Observed != nil && j.Observed.Status(now.UnixMicro()) == schedules.OnTime &&
		time.UnixMicro(j.Observed.LastAt()).Sub(j.ChangedAt) > Grace
}

func (j *Judged) finished(now time.Time) bool {
	return !j.Expires.IsZero() && !now.Before(j.Expires) || j.Runs > 0 && (j.OneOff || j.Schedule.Kind == Clocked)
}

// next is when it runs next, which may have passed. A task that has not run yet runs as if it had when it was changed last,
// or at its start, as beat has it. If it is the only one with its task, what events told since it was due was its run.
func (j *Judged) next(only bool, now time.Time) time.Time {
	if !j.Enabled || j.finished(now) {
		return time.Time{}
	}
	from := j.LastRunAt
	if from.IsZero() {
		from = j.ChangedAt
		if !j.StartTime.IsZero() && (j.Schedule.Kind == Interval || j.Schedule.Kind == Crontab) {
			return j.StartTime
		}
	}
	if j.Schedule.Kind == Clocked {
		return j.Schedule.At
	}
	if from.IsZero() {
		return time.Time{}
	}
	at, ok := j.Schedule.Next(from)
	if ok && only && !j.SeenAt.Before(at.Add(-time.Second)) {
		at, ok = j.Schedule.Next(j.SeenAt)
	}
	if !ok || !j.Expires.IsZero() && !at.Before(j.Expires) {
		return time.Time{}
	}
	if at.Before(j.StartTime) {
		return j.StartTime
	}
	return at
}
