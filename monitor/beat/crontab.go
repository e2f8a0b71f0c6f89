package beat

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // containers may have none
)

// crontab is a schedule as Celery's crontab understands it. Unlike cron, Celery runs a task on days that match both the
// day of the month and the day of the week, and lets ranges go past the end: 22-2.
type crontab struct {
	minutes, hours, days, months, weekdays []int // ascending
	zone                                   *time.Location
}

// farthest is how many days next looks ahead: to the next leap day, even across 2100.
const farthest = 8*366 + 1

func parseCrontab(s Schedule) (c crontab, err error) {
	if s.Timezone == "" || s.Timezone == "Local" {
		return c, errors.New("the time zone is unknown")
	}
	if c.zone, err = time.LoadLocation(s.Timezone); err != nil {
		return c, err
	}
	for _, f := range []struct {
		into        *[]int
		text        string
		first, last int
		names       string
	}{
		{&c.minutes, s.Minute, 0, 59, ""},
		{&c.hours, s.Hour, 0, 23, ""},
		{&c.days, s.DayOfMonth, 1, 31, ""},
		{&c.months, s.MonthOfYear, 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"},
		{&c.weekdays, s.DayOfWeek, 0, 6, "sun mon tue wed thu fri sat"},
	} {
		if *f.into, err = (field{f.first, f.last, strings.Fields(f.names)}).parse(f.text); err != nil {
			return c, err
		}
	}
	return c, nil
}

// field is one of the five fields of a crontab.
type field struct {
	first, last int
	names       []string // of its values
}

func (f field) parse(text string) ([]int, error) {
	var all []int
	for part := range strings.SplitSeq(strings.ReplaceAll(text, " ", ""), ",") {
		values, err := f.part(part)
		if err != nil {
			return nil, err
		}
		all = append(all, values...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// part reads 5, 1-5, *, and these with a step.
func (f field) part(text string) (values []int, err error) {
	span, every, stepped := strings.Cut(text, "/")
	step := 1
	if stepped {
		if step, err = strconv.Atoi(every); err != nil || step < 1 {
			return nil, fmt.Errorf("no step: %.20q", every)
		}
	}
	from, to := f.first, f.last
	if span != "*" {
		low, high, isRange := strings.Cut(span, "-")
		if from, err = f.number(low); err != nil {
			return nil, err
		}
		to = from
		if stepped && !isRange {
			return nil, fmt.Errorf("a step without a range: %.20q", text)
		}
		if isRange {
			if to, err = f.number(high); err != nil {
				return nil, err
			}
		}
		if to < from { // past the end
			to += f.last - f.first + 1
		}
	}
	for n := from; n <= to; n += step {
		values = append(values, f.first+(n-f.first)%(f.last-f.first+1))
	}
	return values, nil
}

func (f field) number(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		if n = slices.Index(f.names, strings.ToLower(text[:min(3, len(text))])); n < 0 {
			return 0, fmt.Errorf("no number: %.20q", text)
		}
		n += f.first
	}
	if n < f.first || n > f.last {
		return 0, fmt.Errorf("%d is not within %d and %d", n, f.first, f.last)
	}
	return n, nil
}

// next returns the first time after another, false if none comes within eight years. A time that clocks skip does not come; of
// one that they repeat, the first counts.
func (c crontab) next(after time.Time) (time.Time, bool) {
	local := after.In(c.zone)
	for day := range farthest {
		date := time.Date(local.Year(), local.Month(), local.Day()+day, 12, 0, 0, 0, c.zone) // noon is on every day
		if !slices.Contains(c.months, int(date.Month())) || !slices.Contains(c.days, date.Day()) ||
			!slices.Contains(c.weekdays, int(date.Weekday())) {
			continue
		}
		for _, hour := range c.hours {
			for _, minute := range c.minutes {
				t := time.Date(date.Year(), date.Month(), date.Day(), hour, minute, 0, 0, c.zone)
				if t.After(after) && t.Hour() == hour && t.Minute() == minute {
					return t, true
				}
			}
		}
	}
	return time.Time{}, false
}
