package settings

import (
	"cmp"
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
	read          func(e *effective) string // empty if unknown
}

func columns() []column {
	flag := func(of func(e *effective) answer) func(*effective) string {
		return func(e *effective) string { return [...]string{unclear: "", no: "False", yes: "True"}[of(e)] }
	}
	return []column{
		{"acks_late", "task_acks_late", flag(func(e *effective) answer { return e.late })},
		{"reject_on_worker_lost", "task_reject_on_worker_lost", flag(func(e *effective) answer { return e.reject })},
		{"retry_on_worker_lost", "task_retry_on_worker_lost", flag(func(e *effective) answer { return e.retry })},
		{"acks_on_failure", "", flag(func(e *effective) answer { return e.acksFailure })},
		{"acks_on_timeout", "", flag(func(e *effective) answer { return e.acksTimeout })},
		{"ignore_result", "task_ignore_result", flag(func(e *effective) answer { return e.ignore })},
		{"time_limit", "", func(e *effective) string {
			switch {
			case !e.limitKnown:
				return ""
			case e.limit == 0:
				return "None"
			}
			return short(e.limit)
		}},
		{"serializer", "task_serializer", func(e *effective) string { return e.serializer }},
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
	type cells []struct {
		byValue   map[string][]int // groups
		overrides bool
	}
	list, sets := columns(), workerSets{groups, map[string][]string{}}
	byName := map[string]cells{}
	for i := range groups {
		g := &groups[i]
		for t := range g.Tasks {
			row := byName[g.Tasks[t].Name]
			if row == nil {
				row = make(cells, len(list))
				byName[g.Tasks[t].Name] = row
			}
			for c, column := range list {
				v := column.read(&g.effective[t])
				if v == "" {
					continue
				}
				if row[c].byValue == nil {
					row[c].byValue = make(map[string][]int, 1)
				}
				row[c].byValue[v] = append(row[c].byValue[v], i)
				if base := column.read(&g.base); base != "" && base != v {
					row[c].overrides = true
				}
			}
		}
	}
	table := make([]TaskRow, 0, len(byName))
	for name, row := range byName {
		shown := TaskRow{Name: name, Observed: observed[name]}
		for _, c := range row {
			cell := Cell{Overrides: c.overrides}
			for v, indexes := range c.byValue {
				cell.Values = append(cell.Values, Value{v, sets.of(indexes)})
			}
			slices.SortFunc(cell.Values, func(a, b Value) int {
				return cmp.Or(len(b.Workers)-len(a.Workers), strings.Compare(a.Value, b.Value))
			})
			shown.Cells = append(shown.Cells, cell)
		}
		table = append(table, shown)
	}
	slices.SortFunc(table, func(a, b TaskRow) int { return strings.Compare(a.Name, b.Name) })
	return table
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
