package workers

import (
	"cmp"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/internal/columns"
	"github.com/umbelhq/umbel/state"
)

// SortKeys are the columns that rows can be sorted by.
func SortKeys() []string {
	return []string{
		"name", "status", "pool", "active", "queues", "unfinished", "processed", "failed", "memory", "load", "version", "clock", "heartbeat",
	}
}

// Sort sorts rows by one of SortKeys, as columns.Sort does.
func Sort(rows []Row, order string) {
	columns.Sort(rows, order, func(r *Row) string { return r.Name }, (*Row).value)
}

// value is what a row has in a column.
func (r *Row) value(key string) columns.Value {
	switch key {
	case "status":
		return columns.Number(new(int64(slices.Index(statuses(), r.Status))))
	case "pool":
		v := columns.Text(r.Pool)
		if r.Slots != nil {
			v.Known, v.Number = true, float64(*r.Slots)
		}
		return v
	case "active":
		return columns.Number(r.Active)
	case "queues":
		return columns.Value{Known: r.QueuesKnown, Number: float64(len(r.Queues)), Text: strings.Join(r.Queues, " ")}
	case "unfinished":
		return columns.Number(new(int64(r.RunningTasks)))
	case "processed":
		return columns.Number(r.Processed)
	case "failed":
		share, ok := r.Ends.FailureShare()
		return columns.Value{Known: ok, Number: share}
	case "memory":
		return columns.Number(r.Memory)
	case "load":
		if r.Load == nil {
			return columns.Value{}
		}
		return columns.Number(&r.Load[0])
	case "version":
		if r.Version == nil {
			return columns.Value{}
		}
		return columns.Text(*r.Version)
	case "clock":
		return columns.Number(r.ClockOffsetMicros)
	case "heartbeat":
		return columns.Value{Known: r.LastHeartbeatAt != 0, Number: float64(r.LastHeartbeatAt)}
	}
	return columns.Value{}
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
