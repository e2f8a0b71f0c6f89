package queues

import (
	"cmp"
	"time"

	"github.com/umbelhq/umbel/internal/columns"
)

// SortKeys are the columns that queues can be sorted by.
func SortKeys() []string {
	return []string{"name", "ready", "unacked", "consumers", "in", "out", "age", "drain"}
}

// Sort sorts queues by one of SortKeys, as columns.Sort does.
func Sort(list []Queue, order string) {
	columns.Sort(list, order, func(q *Queue) string { return q.Name }, (*Queue).value)
}

// value is what a queue has in a column.
func (q *Queue) value(key string) columns.Value {
	switch key {
	case "ready":
		return columns.Number(q.Ready)
	case "unacked":
		return columns.Number(q.Unacked)
	case "consumers":
		if q.Consumers == nil && q.WorkersKnown {
			return columns.Value{Known: true, Number: float64(len(q.Workers))}
		}
		return columns.Number(q.Consumers)
	case "in":
		return columns.Number(q.InRate)
	case "out":
		return columns.Number(q.OutRate)
	case "age":
		return seconds(cmp.Or(q.Age, q.AgeAtLeast))
	case "drain":
		return seconds(q.DrainTime)
	}
	return columns.Value{}
}

func seconds(d *time.Duration) columns.Value {
	if d == nil {
		return columns.Value{}
	}
	return columns.Value{Known: true, Number: d.Seconds()}
}
