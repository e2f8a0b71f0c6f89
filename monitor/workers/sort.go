package workers

import (
	"cmp"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/state"
)

// SortKeys are the columns that rows can be sorted by.
func SortKeys() []string {
	return []string{
		"name", "status", "pool", "active", "queues", "unfinished", "processed", "failed", "memory", "load", "version", "clock", "heartbeat",
	}
}

// Sort sorts rows by a key, greatest first if it begins with -. Rows of which the value is unknown come last, and equal ones
// by name.
func Sort(rows []Row, order string) {
	key, descending := strings.CutPrefix(order, "-")
	slices.SortStableFunc(rows, func(a, b Row) int {
		x, y := a.value(key), b.value(key)
		if x.known != y.known {
			if x.known {
				return -1
			}
			return 1
		}
		order := cmp.Or(cmp.Compare(x.number, y.number), cmp.Compare(x.text, y.text))
		if descending {
			order = -order
		}
		return cmp.Or(order, cmp.Compare(a.Name, b.Name))
	})
}

// value is what a row has in a column: a number, or a text.
type value struct {
	known  bool
	number float64
	text   string
}

func text(s string) value { return value{known: s != "", text: s} }

func number[N int64 | float64](n *N) value {
	if n == nil {
		return value{}
	}
	return value{known: true, number: float64(*n)}
}

func (r *Row) value(key string) value {
	switch key {
	case "name":
		return text(r.Name)
	case "status":
		return number(new(int64(slices.Index(statuses(), r.Status))))
	case "pool":
		v := text(r.Pool)
		if r.Slots != nil {
			v.known, v.number = true, float64(*r.Slots)
		}
		return v
	case "active":
		return number(r.Active)
	case "queues":
		return value{r.QueuesKnown, float64(len(r.Queues)), strings.Join(r.Queues, " ")}
	case "unfinished":
		return number(new(int64(r.RunningTasks)))
	case "processed":
		return number(r.Processed)
	case "failed":
		share, ok := r.Ends.FailureShare()
		return value{known: ok, number: share}
	case "memory":
		return number(r.Memory)
	case "load":
		if r.Load == nil {
			return value{}
		}
		return number(&r.Load[0])
	case "version":
		if r.Version == nil {
			return value{}
		}
		return text(*r.Version)
	case "clock":
		return number(r.ClockOffsetMicros)
	case "heartbeat":
		return value{known: r.LastHeartbeatAt != 0, number: float64(r.LastHeartbeatAt)}
	}
	return value{}
}

// statuses are in the order of what needs attention least.
func statuses() []state.Status {
	return []state.Status{state.Online, state.Stopping, state.Late, state.Offline}
}

// Group is the workers of a host.
type Group struct {
	Host string // empty for those without one
	Rows []Row
}

// ByHost groups rows by host, both in the order of names. It returns nil if no host has several workers.
func ByHost(rows []Row) []Group {
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b Row) int {
		return cmp.Or(cmp.Compare(state.Host(a.Name), state.Host(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	var groups []Group
	several := false
	for i := range sorted {
		host := state.Host(sorted[i].Name)
		if n := len(groups); n > 0 && groups[n-1].Host == host {
			groups[n-1].Rows = append(groups[n-1].Rows, sorted[i])
			several = true
			continue
		}
		groups = append(groups, Group{Host: host, Rows: sorted[i : i+1 : i+1]})
	}
	if !several {
		return nil
	}
	return groups
}

// Total sums up the rows of a group. Sums leave out what is unknown; they are nil if nothing is known.
type Total struct {
	Workers, Online       int
	Active, Slots, Memory *int64 // of those that are not offline
	Unfinished            int
	Ends                  Ends
	TooLong               int // workers with a task that runs far longer than usual
}

// Total sums up the rows of the group.
func (g Group) Total() Total {
	t := Total{Workers: len(g.Rows)}
	for i := range g.Rows {
		r := &g.Rows[i]
		t.Unfinished += r.RunningTasks
		t.Ends.Succeeded += r.Ends.Succeeded
		t.Ends.Failed += r.Ends.Failed
		if r.Longest != nil && r.Longest.TooLong() {
			t.TooLong++
		}
		if r.Status == state.Offline {
			continue
		}
		if r.Status == state.Online {
			t.Online++
		}
		add(&t.Active, r.Active)
		add(&t.Slots, r.Slots)
		add(&t.Memory, r.Memory)
	}
	return t
}

func add(to **int64, n *int64) {
	switch {
	case n == nil:
	case *to == nil:
		*to = new(*n)
	default:
		**to += *n
	}
}
