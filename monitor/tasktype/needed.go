package tasktype

import "time"

// Needed is how many processes of workers a type keeps busy: by Little's law, the rate at which its tasks arrive times
// how long they run. Failed tasks, of which no run time is known, count as if they had run as long as others.
type Needed struct {
	Average     float64
	Busiest     float64 // in the step with the most tasks
	BusiestFrom time.Time
}

// Needed returns how many processes the tasks of a type need, false if that is unknown.
func (t *Table) Needed(of *Type) (n Needed, ok bool) {
	count := of.Run.Count()
	if count == 0 || of.Received == 0 || t.Observed <= 0 {
		return n, false
	}
	mean := of.Run.Sum() / 1e6 / float64(count)
	n.Average = float64(of.Received) / t.Observed.Seconds() * mean
	for i, step := range of.Trend {
		start := t.From.Add(time.Duration(i) * t.Step)
		if start.Add(t.Step).After(t.To) && len(of.Trend) > 1 {
			continue // it has just begun
		}
		if busy := float64(step.Received) / t.Step.Seconds() * mean; busy > n.Busiest {
			n.Busiest, n.BusiestFrom = busy, start
		}
	}
	n.Busiest = max(n.Busiest, n.Average)
	return n, true
}

// PerSecond is how many tasks ended in a second, on average over the time in which a monitor was running; false if it was
// not.
func (t *Table) PerSecond(of *Type) (float64, bool) {
	if t.Observed <= 0 {
		return 0, false
	}
	return float64(of.Ended()) / t.Observed.Seconds(), true
}
