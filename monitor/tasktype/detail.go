package tasktype

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/rollup"
)

// Detail is one type, step by step and by where its tasks were.
type Detail struct {
	Table // with this type alone

	Type    Type
	Runs    []rollup.Histogram // run times of each step
	Workers []Part             // most failures first
	Queues  []Part
}

// Part counts the tasks of a type that were in one place.
type Part struct {
	Name                       string // of the worker or queue; empty if unknown; rollup.Other beyond maxPlaces
	Succeeded, Failed, Retried int64
	Run                        rollup.Histogram
}

// ReadDetail reads what the counters have of a name. Its Type is zero if that is nothing.
func ReadDetail(ctx context.Context, rollups history.RollupReader, s Span, name string) (Detail, error) {
	b := newBuilder(s)
	d := Detail{Runs: make([]rollup.Histogram, len(b.known))}
	workers, queues := map[string]*Part{}, map[string]*Part{}
	b.added = func(m history.Rollup, step int) error {
		if m.Name != name {
			return nil
		}
		return errors.Join(d.Runs[step].MergeSaved(m.Run), addPart(workers, m.Worker, m), addPart(queues, m.Queue, m))
	}
	table, err := b.read(ctx, rollups, history.ByAll, []string{name})
	if err != nil {
		return Detail{}, err
	}
	d.Table, d.Workers, d.Queues = table, parts(workers), parts(queues)
	for i := range table.Types {
		if table.Types[i].Name == name {
			d.Type = table.Types[i]
		}
	}
	return d, nil
}

// addPart counts m in the part of a name.
func addPart(all map[string]*Part, name string, m history.Rollup) error {
	p := all[name]
	if p == nil && len(all) >= maxPlaces {
		name = rollup.Other
		p = all[name]
	}
	if p == nil {
		p = &Part{Name: name}
		all[name] = p
	}
	p.Succeeded += m.Succeeded
	p.Failed += m.Failed
	p.Retried += m.Retried
	return p.Run.MergeSaved(m.Run)
}

// parts returns those in which tasks ended, most failures first.
func parts(all map[string]*Part) []Part {
	var list []Part
	for _, p := range all {
		if p.Succeeded+p.Failed+p.Retried > 0 {
			list = append(list, *p)
		}
	}
	slices.SortFunc(list, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Failed, a.Failed), cmp.Compare(b.Succeeded, a.Succeeded), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// Bounds of a heat map.
const (
	maxRows   = 24
	maxLevels = 5
)

// HeatMap is how many tasks ran how long in each step.
type HeatMap struct {
	Low, High int64 // µs: the lower edge of the first row, the upper edge of the last
	Rows      int   // each ends at the same multiple of where it begins
	Cells     []Cell
	Most      int64 // tasks of one cell
}

// Cell counts tasks. Level is 1 to 5; each has twice as many tasks or more.
type Cell struct {
	Step, Row, Level int
	Count            int64
}

// HeatMap returns the run times by step. It is empty if none is known.
func (d *Detail) HeatMap() HeatMap {
	low, high := math.MaxInt, math.MinInt
	for _, h := range d.Runs {
		h.All(func(micros, _ int64) {
			low, high = min(low, octave(micros, 2)), max(high, octave(micros, 2))
		})
	}
	if low > high {
		return HeatMap{}
	}
	perOctave := 2.0 // rows for each power of two
	for high-low >= maxRows {
		perOctave /= 2
		low, high = int(math.Floor(float64(low)/2)), int(math.Floor(float64(high)/2))
	}
	m := HeatMap{Low: int64(math.Exp2(float64(low) / perOctave)), High: int64(math.Ceil(math.Exp2(float64(high+1) / perOctave))), Rows: high - low + 1}
	counts := map[[2]int]int64{}
	for i, h := range d.Runs {
		h.All(func(micros, n int64) { counts[[2]int{i, octave(micros, perOctave) - low}] += n })
	}
	for at, n := range counts {
		m.Most = max(m.Most, n)
		m.Cells = append(m.Cells, Cell{Step: at[0], Row: at[1], Count: n})
	}
	for i := range m.Cells {
		c := &m.Cells[i]
		c.Level = max(maxLevels-int(math.Log2(float64(m.Most)/float64(c.Count))), 1)
	}
	slices.SortFunc(m.Cells, func(a, b Cell) int { return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Row, b.Row)) })
	return m
}

// octave is the row that a duration is in, with so many for each power of two.
func octave(micros int64, perOctave float64) int {
	return int(math.Floor(perOctave * math.Log2(float64(max(micros, 1)))))
}
