package view

import (
	"slices"

	"github.com/umbelhq/umbel/monitor/duplicates"
)

// WorstFirst returns the verdicts on the tasks of the group, also on those that were not read, the worst first.
func (g DuplicateGroup) WorstFirst() []duplicates.Verdict {
	var list []duplicates.Verdict
	for _, v := range duplicates.WorstFirst() {
		if g.Marks&v.Mark() != 0 || g.Verdicts[v] > 0 {
			list = append(list, v)
		}
	}
	return list
}

// Workers returns the workers that received the tasks that were read, by name.
func (g DuplicateGroup) Workers() []string {
	var names []string
	for _, t := range g.Tasks {
		for _, e := range t.Executions {
			if e.Worker != "" && !slices.Contains(names, e.Worker) {
				names = append(names, e.Worker)
			}
		}
	}
	slices.Sort(names)
	return names
}
