// Package schedules learns from the tasks of one name which of them are sent at regular intervals, as Celery beat does. It
// knows what was sent, not what a schedule says: what it tells is observed.
package schedules

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/state"
)

// What a schedule is learnt from.
const (
	LeastGaps = 5 // intervals between tasks
	minPeriod = int64(time.Second / time.Microsecond)
	slack     = minPeriod / 2 // by which intervals may differ, beside a tenth
	endsAfter = 20            // intervals of silence after which a schedule has ended
)

// Schedule is a series of tasks with the same name and arguments, sent at regular intervals. Times are µs since 1970 UTC by
// the clock of the sender, or of the worker for a task whose sending was not seen.
type Schedule struct {
	Name         string
	Args, Kwargs *string // as sent; nil if unknown
	Client       string  // node name of the newest sender, empty if unknown

	Period int64 // µs, median of the intervals
	Spread int64 // µs, median deviation from it
	Runs   []Run // oldest first, at least LeastGaps + 1
	Missed int   // intervals without a task, between those that have one
	// Overlaps counts runs that started before the one before had ended.
	Overlaps int
}

// Run is one task of a schedule.
type Run struct {
	ID    string
	State state.State
	Lost  bool // not expected to end
	At    int64
	// StartedAt and EndedAt are by the clock of the worker, 0 if that did not happen or is not known.
	StartedAt, EndedAt int64
	RuntimeSeconds     *float64
}

// Status says whether the next task of a schedule is due.
type Status string

// The statuses.
const (
	OnTime Status = "on_time"
	Late   Status = "late"
	Ended  Status = "ended" // late for 20 intervals
)

// LastAt is when the newest task was sent.
func (s *Schedule) LastAt() int64 { return s.Runs[len(s.Runs)-1].At }

// NextAt is when the next task is expected.
func (s *Schedule) NextAt() int64 { return s.LastAt() + s.Period }

// Status judges by now, µs since 1970 UTC.
func (s *Schedule) Status(now int64) Status {
	switch late := now - s.NextAt(); {
	case late > endsAfter*s.Period:
		return Ended
	case late > max(s.longest()-s.Period, 0)+3*s.Spread+s.Period/10+2*minPeriod:
		return Late
	}
	return OnTime
}

// longest is the longest interval that has come more than once, such as a weekend.
func (s *Schedule) longest() int64 {
	all := gaps(s.Runs)
	slices.Sort(all)
	for i := len(all) - 2; i >= 0; i-- {
		if alike(all[i], all[i+1]) {
			return all[i+1]
		}
	}
	return 0
}

func alike(short, long int64) bool { return long-short <= short/10 }

// Median is the median of the intervals and their median deviation from it, in their unit, and whether they are regular. It
// sorts its argument, µs.
func Median(intervals []int64) (period, spread int64, regular bool) {
	if len(intervals) < LeastGaps {
		return 0, 0, false
	}
	period = median(intervals)
	for i := range intervals {
		intervals[i] = max(intervals[i]-period, period-intervals[i])
	}
	spread = median(intervals)
	return period, spread, period >= minPeriod && spread <= period/10+min(slack, period/4)
}

func median(list []int64) int64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// Learn returns the schedules among tasks of one name, with the newest task first. Tasks that another task has sent belong to
// none.
func Learn(tasks []state.Task) []Schedule {
	byCall := map[[2]string][]*state.Task{}
	for i := range tasks {
		if t := &tasks[i]; t.ParentID == nil && at(t) != 0 {
			k := [2]string{text(t.Args), text(t.Kwargs)}
			byCall[k] = append(byCall[k], t)
		}
	}
	var found []Schedule
	for _, list := range byCall {
		slices.SortFunc(list, func(a, b *state.Task) int { return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a.ID, b.ID)) })
		found = append(found, among(list)...)
	}
	slices.SortFunc(found, func(a, b Schedule) int {
		return cmp.Or(cmp.Compare(b.LastAt(), a.LastAt()), cmp.Compare(text(a.Args), text(b.Args)), cmp.Compare(text(a.Kwargs), text(b.Kwargs)),
			cmp.Compare(a.Client, b.Client))
	})
	return found
}

// among returns the schedule that all tasks make together, or else those of each host or each client: beat may restart, on
// another host or under another pid, and others may send the same tasks whenever they like.
func among(list []*state.Task) []Schedule {
	if s, ok := regular(list); ok {
		return []Schedule{s}
	}
	var found []Schedule
	for _, onHost := range split(list, host) {
		if s, ok := regular(onHost); ok {
			found = append(found, s)
			continue
		}
		for _, sent := range split(onHost, client) {
			if s, ok := regular(sent); ok {
				found = append(found, s)
			}
		}
	}
	return found
}

// split groups tasks by a key, without those of which it is not known.
func split(list []*state.Task, key func(t *state.Task) string) map[string][]*state.Task {
	parts := map[string][]*state.Task{}
	for _, t := range list {
		if k := key(t); k != "" {
			parts[k] = append(parts[k], t)
		}
	}
	return parts
}

// regular returns the schedule of tasks by time, if they were sent at regular intervals.
func regular(list []*state.Task) (Schedule, bool) {
	runs := make([]Run, len(list))
	for i, t := range list {
		runs[i] = runOf(t)
	}
	period, spread, ok := Median(gaps(runs))
	if !ok {
		return Schedule{}, false
	}
	return newSchedule(list[len(list)-1], runs, period, spread), true
}

func newSchedule(newest *state.Task, runs []Run, period, spread int64) Schedule {
	s := Schedule{
		Name: text(newest.Name), Args: newest.Args, Kwargs: newest.Kwargs, Client: text(newest.Client), Period: period, Spread: spread, Runs: runs,
	}
	usual := s.longest()
	for i, g := range gaps(runs) {
		if g >= period*3/2 && !alike(min(g, usual), max(g, usual)) {
			s.Missed += int((g+period/2)/period) - 1
		}
		if before, next := runs[i], runs[i+1]; next.StartedAt != 0 && before.StartedAt != 0 && !before.Lost &&
			(before.EndedAt == 0 || before.EndedAt > next.StartedAt) {
			s.Overlaps++
		}
	}
	return s
}

func runOf(t *state.Task) Run {
	return Run{
		ID: t.ID, State: t.State, Lost: t.Lost != nil, At: at(t), StartedAt: t.StartedAt,
		EndedAt: max(t.SucceededAt, t.FailedAt, t.RevokedAt, t.RejectedAt), RuntimeSeconds: t.RuntimeSeconds,
	}
}

func gaps(runs []Run) []int64 {
	var list []int64
	for i := 1; i < len(runs); i++ {
		list = append(list, runs[i].At-runs[i-1].At)
	}
	return list
}

// at is when a task was sent, or else received, first.
func at(t *state.Task) int64 {
	if t.SentAt != 0 {
		return t.SentAt
	}
	for _, e := range t.Executions {
		if e.ReceivedAt != 0 {
			return e.ReceivedAt
		}
	}
	return t.ReceivedAt
}

func client(t *state.Task) string { return text(t.Client) }

// host is the part of a client's node name after its process: gen4711@host.
func host(t *state.Task) string {
	name := client(t)
	if _, after, ok := strings.Cut(name, "@"); ok {
		return after
	}
	return name
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
