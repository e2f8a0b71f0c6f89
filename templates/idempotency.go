package templates

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/idempotency/audit"
	rules "github.com/umbelhq/umbel/monitor/idempotency/settings"
)

// Idempotency is the content of the page that audits the settings of workers.
type Idempotency struct {
	Report audit.Report
	Online int    // workers
	Find   string // what the names of tasks contain
	All    bool   // tasks that only have the settings of their workers are shown too
	Tasks  []rules.TaskRow
	Total  int // tasks that match
}

// Page draws the whole page.
func (v Idempotency) Page(l Layout) templ.Component { return idempotency(l, v) }

// IdempotencyPath is the page below the prefix.
const IdempotencyPath = "/workers/idempotency"

const (
	shownTasks   = 8   // of a finding, at first
	foldedTasks  = 100 // of a finding, when it is opened
	shownWorkers = 6   // of a finding, a value or a cell
)

func findingID(f audit.Finding) string { return "finding-" + f.Cause }

func severityWord(s audit.Severity) string {
	switch s {
	case audit.Happened:
		return "Has happened"
	case audit.Exceeded:
		return "Likely"
	case audit.Possible:
	}
	return "Possible"
}

func severityIcon(s audit.Severity) string {
	switch s {
	case audit.Happened:
		return "circle-x"
	case audit.Exceeded:
		return "triangle-alert"
	case audit.Possible:
	}
	return "circle-dot"
}

func effectWord(e rules.Effect) string {
	switch e {
	case rules.Lost:
		return "Tasks can be lost"
	case rules.Twice:
		return "Tasks can run twice"
	case rules.Other:
	}
	return "Tasks can be handled differently"
}

// concerned says how many tasks and workers a finding concerns.
func concerned(f audit.Finding) string {
	workers := plural(len(f.Workers), "worker", "workers")
	if len(f.Tasks) == 0 {
		return workers
	}
	return plural(len(f.Tasks), "task", "tasks") + " on " + workers
}

// someWorkers lists the first workers and how many more there are.
func someWorkers(names []string) string {
	if len(names) <= shownWorkers {
		return joined(names)
	}
	return joined(names[:shownWorkers]) + " and " + number(len(names)-shownWorkers) + " more"
}

// cellTitle says which workers have which value.
func cellTitle(c rules.Cell) string {
	var parts []string
	for _, v := range c.Values {
		parts = append(parts, v.Value+": "+someWorkers(v.Workers))
	}
	return strings.Join(parts, "; ")
}

// happenedTo is how many tasks a query found.
func happenedTo(n history.Count) string {
	s := number(n.N)
	if !n.Exact {
		s += "+"
	}
	if n.N == 1 && n.Exact {
		return s + " task"
	}
	return s + " tasks"
}

// observedWords are the p99 of run times and the longest ETA, empty if both are unknown.
func observedWords(o rules.Observed) string {
	var parts []string
	if o.Runs > 0 {
		parts = append(parts, duration(o.P99.Seconds()))
	}
	if o.Delay > 0 {
		parts = append(parts, "ETA "+duration(o.Delay.Seconds()))
	}
	return strings.Join(parts, ", ")
}

// tasksFound links to the tasks of a query.
func (u URLs) tasksFound(q audit.Query) templ.SafeURL { return u.tasksWhere("q", q.Query.String()) }

// IdempotencyURL is the page below the prefix with the tasks whose names contain find.
func IdempotencyURL(find string, all bool) string {
	v := url.Values{}
	if find != "" {
		v.Set("find", find)
	}
	if all {
		v.Set("all", "1")
	}
	if len(v) == 0 {
		return IdempotencyPath
	}
	return IdempotencyPath + "?" + v.Encode()
}

// idempotencyAll links to the page with all tasks, or only those that differ.
func (u URLs) idempotencyAll(v Idempotency, all bool) templ.SafeURL {
	return u.path(IdempotencyURL(v.Find, all) + "#audit-tasks")
}

func ordinal(n int) string { return strconv.Itoa(n + 1) }
