package settings

import (
	"fmt"
	"slices"
	"strings"
)

// TaskRow is a task with its settings on all workers that have registered it.
type TaskRow struct {
	Name     string
	Observed Observed
	Cells    []Cell // in the order of Columns
}

// Cell is a setting of a task.
type Cell struct {
	Values []Value // with the workers, the most frequent first; none if unknown
	// Overrides reports that the class of the task has another value than the setting of a worker.
	Overrides bool
}

// column is a setting that tasks have.
type column struct {
	name, setting string
	read          func(e effective) string // empty if unknown
}

func columns() []column {
	flag := func(of func(e effective) answer) func(effective) string {
		return func(e effective) string { return [...]string{unclear: "", no: "False", yes: "True"}[of(e)] }
	}
	return []column{
		{"acks_late", "task_acks_late", flag(func(e effective) answer { return e.late })},
		{"reject_on_worker_lost", "task_reject_on_worker_lost", flag(func(e effective) answer { return e.reject })},
		{"retry_on_worker_lost", "task_retry_on_worker_lost", flag(func(e effective) answer { return e.retry })},
		{"acks_on_failure", "", flag(func(e effective) answer { return e.acksFailure })},
		{"acks_on_timeout", "", flag(func(e effective) answer { return e.acksTimeout })},
		{"ignore_result", "task_ignore_result", flag(func(e effective) answer { return e.ignore })},
		{"time_limit", "", func(e effective) string {
			switch {
			case !e.limitKnown:
				return ""
			case e.limit == 0:
				return "None"
			}
			return short(e.limit)
		}},
		{"serializer", "task_serializer", func(e effective) string { return e.serializer }},
	}
}

// Columns returns the names of the settings in TaskRow.Cells.
func Columns() []string {
	var names []string
	for _, c := range columns() {
		names = append(names, c.name)
	}
	return names
}

// rows returns all registered tasks by name.
func rows(groups []group, observed map[string]Observed) []TaskRow {
	list := columns()
	byName := map[string][]map[string][]string{} // by column, workers by value
	overrides := map[string][]bool{}
	for i := range groups {
		g := &groups[i]
		for t := range g.Tasks {
			task := &g.Tasks[t]
			if byName[task.Name] == nil {
				byName[task.Name], overrides[task.Name] = make([]map[string][]string, len(list)), make([]bool, len(list))
			}
			e := g.effective(task)
			for c, column := range list {
				v := column.read(e)
				if v == "" {
					continue
				}
				if byName[task.Name][c] == nil {
					byName[task.Name][c] = map[string][]string{}
				}
				byName[task.Name][c][v] = append(byName[task.Name][c][v], g.names...)
				if base, ok := g.base(column); ok && base != v {
					overrides[task.Name][c] = true
				}
			}
		}
	}
	var table []TaskRow
	for name, cells := range byName {
		row := TaskRow{Name: name, Observed: observed[name]}
		for c, values := range cells {
			cell := Cell{Overrides: overrides[name][c]}
			for v, workers := range values {
				slices.Sort(workers)
				cell.Values = append(cell.Values, Value{v, slices.Compact(workers)})
			}
			slices.SortFunc(cell.Values, func(a, b Value) int {
				if d := len(b.Workers) - len(a.Workers); d != 0 {
					return d
				}
				return strings.Compare(a.Value, b.Value)
			})
			row.Cells = append(row.Cells, cell)
		}
		table = append(table, row)
	}
	slices.SortFunc(table, func(a, b TaskRow) int { return strings.Compare(a.Name, b.Name) })
	return table
}

// base is the value that a task has which sets nothing itself, false if it is unknown.
func (g *group) base(c column) (string, bool) {
	v := c.read(g.effective(&Task{}))
	return v, v != ""
}

// String writes the values of a cell as on a page: True, or True on 3 and False on 1.
func (c Cell) String() string {
	if len(c.Values) == 1 {
		return c.Values[0].Value
	}
	var parts []string
	for _, v := range c.Values {
		parts = append(parts, fmt.Sprintf("%s on %d", v.Value, len(v.Workers)))
	}
	return strings.Join(parts, ", ")
}
