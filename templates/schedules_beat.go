package templates

import (
	"strconv"
	"time"

	"github.com/umbelhq/umbel/monitor/beat"
)

func beatStatus(j *beat.Judged) (tone, iconName, word string) {
	switch j.Status {
	case beat.Overdue:
		return "status-late", "triangle-alert", "Overdue"
	case beat.DisabledRuns:
		return "status-late", "triangle-alert", "Disabled, but runs"
	case beat.Unreadable:
		return "status-late", "triangle-alert", "No schedule"
	case beat.NotSeen:
		return "state-pending", "circle-dashed", "Not seen yet"
	case beat.Waiting:
		return "status-ended", "clock", "Starts later"
	case beat.Finished:
		return "status-ended", "circle-check", "Finished"
	case beat.Disabled:
		return "status-ended", "circle-stop", "Disabled"
	case beat.Active:
	}
	if j.NextAt.IsZero() {
		return "status-online", "circle-check", "Enabled"
	}
	return "status-online", "circle-check", "On time"
}

// beatWhy says more of a status.
func beatWhy(j *beat.Judged) string {
	switch j.Status {
	case beat.Overdue:
		return "It should have run, and neither Django nor an event says so"
	case beat.DisabledRuns:
		return "Events tell of its task at regular intervals since it was disabled: beat may not have read that, or another one runs"
	case beat.Unreadable:
		return "It refers to no interval, crontab, solar or clocked schedule that Umbel can read"
	case beat.NotSeen:
		if !j.LastRunAt.IsZero() {
			return "Configured, and Django says that it ran, but no event told of it: set task_send_sent_event = True"
		}
		return "Configured, but no event told of a task of its name"
	case beat.Waiting:
		return "It does not run before its start"
	case beat.Finished:
		return "It has expired, or has run once and was to"
	case beat.Disabled:
		return "Beat does not send it"
	case beat.Active:
	}
	return "Enabled"
}

// beatNext says why no next run is shown.
func beatNext(d *BeatDatabase, j *beat.Judged) string {
	switch {
	case !j.Enabled || j.Status == beat.Finished:
		return "None is expected"
	case d.Table.Naive:
		return "Times are stored without a time zone"
	case j.Schedule.Kind == beat.Solar:
		return "By the sun: the next run is not computed"
	case j.Schedule.Kind == beat.Crontab:
		return "Its crontab or its time zone cannot be read, or it expires before"
	}
	return "No time is known"
}

// dueSoon reports whether a time has come, and not passed by so much that the run is overdue.
func dueSoon(j *beat.Judged, now time.Time) bool {
	return j.Status != beat.Overdue && !j.NextAt.IsZero() && !j.NextAt.After(now)
}

func beatTitleID(i int) string { return "configured-" + strconv.Itoa(i) }

func beatRowID(database int, j *beat.Judged) string {
	return "configured-" + strconv.Itoa(database) + "-" + strconv.FormatInt(j.ID, 10)
}
