package tasktype

import (
	"strings"

	"github.com/umbelhq/umbel/internal/columns"
	"github.com/umbelhq/umbel/monitor/history"
)

// Row is a type with what is compared.
type Row struct {
	Type

	Drift        *Drift // nil if unknown
	LastFailedAt int64  // µs since 1970 UTC, or the start of the step if that is all that is known; 0 if unknown
}

// SortKeys are the columns that rows can be sorted by. Those of run and wait are percentiles.
func SortKeys() []string {
	return []string{
		"name", "count", "failed", "retries", "wait_p50", "wait", "wait_p99", "run_p50", "run", "run_p99", "slowest", "drift", "last_failure",
		"queues", "workers",
	}
}

// Sort sorts rows by one of SortKeys, as columns.Sort does.
func Sort(rows []Row, order string) {
	columns.Sort(rows, order, func(r *Row) string { return r.Name }, func(r *Row, column string) columns.Value {
		n, known := r.value(column)
		return columns.Value{Known: known, Number: n}
	})
}

// value is what a row has in a column, false if it is unknown.
func (r *Row) value(key string) (float64, bool) {
	column, percentile, found := strings.Cut(key, "_p")
	if column == "wait" || column == "run" {
		h, share := r.Run, map[string]float64{"50": .5, "99": .99}[percentile]
		if column == "wait" {
			h = r.Wait
		}
		if !found {
			share = .95
		}
		return float64(h.Quantile(share)), len(h) > 0
	}
	switch key {
	case "count":
		return float64(r.Ended()), true
	case "failed":
		return r.FailureShare()
	case "retries":
		return float64(r.Retried), true
	case "slowest":
		return float64(r.Run.Quantile(1)), len(r.Run) > 0
	case "drift":
		if r.Drift == nil {
			return 0, false
		}
		return r.Drift.Change, true
	case "last_failure":
		return float64(r.LastFailedAt), r.LastFailedAt != 0
	case "queues":
		return float64(len(r.Queues.Names)), true
	case "workers":
		return float64(len(r.Workers.Names)), true
	}
	return 0, false
}

// Rows returns the rows of a table, with usual run times by name and groups of failures, the newest failure first.
func (t *Table) Rows(usual map[string]Usual, failures []history.FailureGroup) []Row {
	last := make(map[string]int64, len(failures))
	for i := range failures {
		if f := &failures[i]; last[f.Name] == 0 {
			last[f.Name] = f.LastAt.UnixMicro()
		}
	}
	rows := make([]Row, len(t.Types))
	for i, of := range t.Types {
		rows[i] = Row{Type: of, Drift: usual[of.Name].Against(of.Run), LastFailedAt: max(last[of.Name], of.FailedAt)}
	}
	return rows
}
