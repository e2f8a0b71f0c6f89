package beat

import (
	"fmt"
	"strings"
	"time"
)

// Kind is the table that a schedule is in.
type Kind string

// The kinds.
const (
	Interval Kind = "interval"
	Crontab  Kind = "crontab"
	Solar    Kind = "solar"
	Clocked  Kind = "clocked"
)

// Schedule is when a periodic task runs. Kind says which fields are set; it is empty if there is no schedule, or none
// that can be read.
type Schedule struct {
	Kind Kind

	Every  int64  // of Interval
	Period string // days, hours, minutes, seconds or microseconds

	// Fields of Crontab.
	Minute, Hour, DayOfMonth, MonthOfYear, DayOfWeek string
	Timezone                                         string // of the tz database, empty if the table has none

	Event               string // of Solar, such as sunset
	Latitude, Longitude string // degrees

	At time.Time // of Clocked
}

// String says a schedule as a person would.
func (s Schedule) String() string {
	switch s.Kind {
	case Interval:
		return s.interval()
	case Crontab:
		fields := strings.Join([]string{s.Minute, s.Hour, s.DayOfMonth, s.MonthOfYear, s.DayOfWeek}, " ")
		return strings.TrimSpace("crontab " + fields + "  " + s.Timezone)
	case Solar:
		return fmt.Sprintf("at %s (%s, %s)", s.event(), s.Latitude, s.Longitude)
	case Clocked:
		return "once at " + s.At.UTC().Format("2006-01-02 15:04:05") + " UTC"
	}
	return "no schedule"
}

func (s Schedule) interval() string {
	if one := strings.TrimSuffix(s.Period, "s"); s.Every == 1 {
		return "every " + one
	}
	unit := s.Period
	switch s.Period {
	case "hours":
		unit = "h"
	case "minutes":
		unit = "min"
	case "seconds":
		unit = "s"
	case "microseconds":
		unit = "µs"
	}
	return fmt.Sprintf("every %d %s", s.Every, unit)
}

// event writes dawn_civil as civil dawn.
func (s Schedule) event() string {
	if part, kind, ok := strings.Cut(s.Event, "_"); ok && (part == "dawn" || part == "dusk") {
		return kind + " " + part
	}
	return strings.ReplaceAll(s.Event, "_", " ")
}

// step is the length of an interval, 0 if it has none.
func (s Schedule) step() time.Duration {
	var unit time.Duration
	switch s.Period {
	case "days":
		unit = 24 * time.Hour
	case "hours":
		unit = time.Hour
	case "minutes":
		unit = time.Minute
	case "seconds":
		unit = time.Second
	case "microseconds":
		unit = time.Microsecond
	}
	const most = 200 * 365 * 24 * time.Hour
	if unit == 0 || s.Every <= 0 || s.Every > int64(most/unit) {
		return 0
	}
	return time.Duration(s.Every) * unit
}

// Next is when a task runs that ran at a time before, false if that cannot be told: the sun is not computed.
func (s Schedule) Next(after time.Time) (time.Time, bool) {
	switch s.Kind {
	case Interval:
		step := s.step()
		return after.Add(step), step > 0
	case Crontab:
		c, err := parseCrontab(s)
		if err != nil {
			return time.Time{}, false
		}
		return c.next(after)
	case Clocked:
		return s.At, after.Before(s.At)
	case Solar:
	}
	return time.Time{}, false
}
