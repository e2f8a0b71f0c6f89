package results

import (
	"fmt"
	"time"

	"github.com/umbelhq/umbel/state"
)

// Tolerance is how far the end of a task may lie from DoneAt before Compare says so: clocks differ, and results are
// stored after events are sent.
const Tolerance = 2 * time.Minute

// Compare says, in sentences, where the events and the record of a task disagree. A record that only lacks something, or
// is of a task that has not ended, disagrees with nothing.
func Compare(t *state.Task, r Result) []string {
	var list []string
	if r.Status != "" && disagree(t.State, state.State(r.Status)) {
		list = append(list, fmt.Sprintf("Events say %s, the backend says %s.", t.State, r.Status))
	}
	ended := max(t.SucceededAt, t.FailedAt, t.RevokedAt, t.RejectedAt)
	if ended == 0 || r.DoneAt.IsZero() {
		return list
	}
	apart := r.DoneAt.Sub(time.UnixMicro(ended))
	if apart.Abs() <= Tolerance {
		return list
	}
	how := apart.Abs().Round(time.Second).String() + " later"
	if apart < 0 {
		how = apart.Abs().Round(time.Second).String() + " earlier"
	}
	say := fmt.Sprintf("By the backend it ended %s than by its events.", how)
	if zone := apart.Round(15 * time.Minute); r.NaiveTime && zone != 0 && (apart-zone).Abs() <= Tolerance && zone.Abs() <= 14*time.Hour {
		say += fmt.Sprintf(" The backend's time has no zone: it may be local time, UTC%s.", offset(zone))
	}
	return append(list, say)
}

// disagree reports whether two states cannot both be the last one. While a task runs, it may store any text.
func disagree(events, stored state.State) bool {
	return events != stored && (events.Final() || stored.Final())
}

// offset writes the offset of a time zone: +2, +5:30, −3.
func offset(d time.Duration) string {
	sign := "+"
	if d < 0 {
		sign, d = "−", -d
	}
	if minutes := int(d.Minutes()) % 60; minutes != 0 {
		return fmt.Sprintf("%s%d:%02d", sign, int(d.Hours()), minutes)
	}
	return fmt.Sprintf("%s%d", sign, int(d.Hours()))
}
