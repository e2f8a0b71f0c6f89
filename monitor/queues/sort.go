package queues

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// SortKeys are the columns that queues can be sorted by.
func SortKeys() []string {
	return []string{"name", "ready", "unacked", "consumers", "in", "out", "age", "drain"}
}

// Sort sorts queues by a key, greatest first if it begins with -. Those of which the value is unknown come last, and equal ones
// by name.
func Sort(list []Queue, order string) {
	key, descending := strings.CutPrefix(order, "-")
	slices.SortStableFunc(list, func(a, b Queue) int {
		byName := cmp.Compare(a.Name, b.Name)
		if key == "name" {
			if descending {
				return -byName
			}
			return byName
		}
		x, y := a.value(key), b.value(key)
		if (x == nil) != (y == nil) {
			if x == nil {
				return 1
			}
			return -1
		}
		if x == nil {
			return byName
		}
		order := cmp.Compare(*x, *y)
		if descending {
			order = -order
		}
		return cmp.Or(order, byName)
	})
}

// value is what a queue has in a column, nil if it is unknown.
func (q *Queue) value(key string) *float64 {
	switch key {
	case "ready":
		return count(q.Ready)
	case "unacked":
		return count(q.Unacked)
	case "consumers":
		if q.Consumers == nil && q.WorkersKnown {
			return new(float64(len(q.Workers)))
		}
		return count(q.Consumers)
	case "in":
		return q.InRate
	case "out":
		return q.OutRate
	case "age":
		return seconds(cmp.Or(q.Age, q.AgeAtLeast))
	case "drain":
		return seconds(q.DrainTime)
	}
	return nil
}

func count(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}

func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(d.Seconds())
}
