package templates

import (
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/beat"
	"github.com/umbelhq/umbel/monitor/schedules"
	"github.com/umbelhq/umbel/state"
)

// SchedulesPath is the address of the page of schedules, below the prefix.
const SchedulesPath = "/schedules"

// Schedules is the content of the page of schedules.
type Schedules struct {
	schedules.Result

	Now     time.Time // by which they are late
	Senders []Sender

	Databases []BeatDatabase // of django-celery-beat
}

// BeatDatabase is what a database of django-celery-beat configures.
type BeatDatabase struct {
	beat.Reading

	Entries []beat.Judged
}

// Sender is a node that sends what is scheduled.
type Sender struct {
	Name              string
	Schedules, Behind int   // those late or missed among them
	LastAt            int64 // when it sent a task last, µs since 1970
	Beat              bool  // Celery beat replies to pings on its host
}

// Page draws the whole page.
func (v Schedules) Page(l Layout) templ.Component { return scheduleList(l, v) }

// shownRuns is how many runs of a schedule are drawn.
const shownRuns = 20

// runBar is one run of a schedule, drawn as a bar.
type runBar struct {
	schedules.Run

	X int
}

func runBars(s schedules.Schedule) []runBar {
	runs := s.Runs[max(0, len(s.Runs)-shownRuns):]
	list := make([]runBar, len(runs))
	for i, r := range runs {
		list[i] = runBar{r, i * 6}
	}
	return list
}

// runTitle says of a run what its bar shows.
func runTitle(r schedules.Run) string {
	text := exactTime(r.At) + " UTC: " + stateWord(r.State)
	if r.Lost {
		text += ", lost"
	}
	if r.RuntimeSeconds != nil {
		text += " in " + duration(*r.RuntimeSeconds)
	}
	return text
}

// runsWord says what came of the runs that are drawn.
func runsWord(s schedules.Schedule) string {
	failed, lost := 0, 0
	list := runBars(s)
	for _, t := range list {
		if t.Lost {
			lost++
		} else if t.State == state.Failure {
			failed++
		}
	}
	text := "Last " + plural(len(list), "run", "runs") + ": " + strconv.Itoa(failed) + " failed"
	if lost > 0 {
		text += ", " + strconv.Itoa(lost) + " lost"
	}
	return text
}

// every shows an interval and how much it varies.
func every(s schedules.Schedule) string {
	text := duration(float64(s.Period) / 1e6)
	if s.Spread >= s.Period/1000 && s.Spread >= 1000 {
		text += " ±" + thin + duration(float64(s.Spread)/1e6)
	}
	return text
}

// usualRun is the median run time of the newer half of a schedule's runs, and how many times that of the older half it is; nil
// and 0 if unknown.
func usualRun(s schedules.Schedule) (newer *float64, times float64) {
	half := len(s.Runs) / 2
	before, after := medianRun(s.Runs[:half]), medianRun(s.Runs[half:])
	if before == nil || after == nil || *before <= 0 {
		return after, 0
	}
	return after, *after / *before
}

func scheduleStatus(s schedules.Status) (tone, iconName, word string) {
	switch s {
	case schedules.Late:
		return "status-late", "triangle-alert", "Late"
	case schedules.Ended:
		return "status-ended", "circle-stop", "Ended"
	case schedules.OnTime:
	}
	return "status-online", "circle-check", "On time"
}

func scheduleRowID(i int) string { return "schedule-" + strconv.Itoa(i) }

// medianRun is the median of known run times, s; nil if there is none.
func medianRun(runs []schedules.Run) *float64 {
	var known []float64
	for _, r := range runs {
		if r.RuntimeSeconds != nil {
			known = append(known, *r.RuntimeSeconds)
		}
	}
	if len(known) == 0 {
		return nil
	}
	slices.Sort(known)
	return &known[len(known)/2]
}
