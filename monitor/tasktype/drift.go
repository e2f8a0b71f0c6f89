package tasktype

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/rollup"
)

// Constants of drift. A deviation of normally distributed values is 1.4826 times their MAD, and 3.5 of these are what
// Iglewicz and Hoaglin call an outlier.
const (
	baseline       = 7 * 24 * time.Hour
	minHours       = 6 // of a baseline, with a run each
	madToDeviation = 1.4826
	maxDeviations  = 3.5
	minChange      = 0.1 // of the median: less is of no interest, however steady a type is
	resolution     = 1.0 / 128
)

// Usual is how long the tasks of a type ran in a week, by the medians of its hours.
type Usual struct {
	Median int64 // of the medians of the hours, µs
	MAD    int64 // median of the distances of these medians from that one, µs
	Hours  int   // in which a task succeeded
}

// Drift is how the median run time differs from that of the week before.
type Drift struct {
	Usual

	Now     int64   // median, µs
	Change  float64 // 0.5 is half as long again
	Unusual bool    // the change is more than hours differ among each other
}

// Against compares a run time with a usual one. It returns nil if either is unknown.
func (u Usual) Against(run rollup.Histogram) *Drift {
	if u.Hours < minHours || len(run) == 0 || u.Median <= 0 {
		return nil
	}
	d := &Drift{Usual: u, Now: run.Quantile(.5)}
	median := float64(u.Median)
	d.Change = float64(d.Now)/median - 1
	deviation := madToDeviation * max(float64(u.MAD), median*resolution)
	d.Unusual = math.Abs(d.Change) >= minChange && math.Abs(float64(d.Now)-median) > maxDeviations*deviation
	return d
}

// ReadUsual reads the run times of the week before a time, by name. If names is not empty it reads only these.
func ReadUsual(ctx context.Context, rollups history.RollupReader, before time.Time, names ...string) (map[string]Usual, error) {
	end := before.Truncate(time.Hour)
	medians, hour, runs := map[string][]int64{}, int64(0), map[string]*rollup.Histogram{}
	flush := func() {
		for name, run := range runs {
			if len(*run) == 0 {
				continue
			}
			if len(medians) < MaxTypes || medians[name] != nil {
				medians[name] = append(medians[name], run.Quantile(.5))
			}
			*run = (*run)[:0]
		}
	}
	r := history.RollupRange{From: end.Add(-baseline), To: end, Span: time.Hour, Names: names, OmitCounts: true, Run: true, By: history.ByName}
	err := rollups.Rollups(ctx, r, func(m history.Rollup) error {
		if m.At != hour {
			flush()
			hour = m.At
		}
		if len(m.Run) == 0 {
			return nil
		}
		if runs[m.Name] == nil {
			runs[m.Name] = new(rollup.Histogram)
		}
		return runs[m.Name].MergeSaved(m.Run)
	})
	if err != nil {
		return nil, fmt.Errorf("read usual run times: %w", err)
	}
	flush()
	usual := make(map[string]Usual, len(medians))
	for name, list := range medians {
		usual[name] = usualOf(list)
	}
	return usual, nil
}

// usualOf summarises the medians of hours. It sorts them.
func usualOf(hours []int64) Usual {
	u := Usual{Median: median(hours), Hours: len(hours)}
	distances := make([]int64, len(hours))
	for i, m := range hours {
		distances[i] = max(m-u.Median, u.Median-m)
	}
	u.MAD = median(distances)
	return u
}

// median sorts a list that is not empty and returns the value in its middle, the smaller of two.
func median(list []int64) int64 {
	slices.Sort(list)
	return list[(len(list)-1)/2]
}
