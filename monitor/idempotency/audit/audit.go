// Package audit reads what package settings judges: the settings that workers report, how long tasks take, and to
// which tasks a finding has happened. The log of what people did is package command's.
package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/idempotency/settings"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Bounds of one audit.
const (
	Window       = 7 * 24 * time.Hour // of the run times that count
	maxETAs      = 2_000              // tasks read for their ETA, the newest first
	pageSize     = 500
	queryNames   = 60 // task names of one query
	maxQueries   = 8  // of one finding
	maxQueryText = query.MaxLength - 200
	countTime    = 500 * time.Millisecond // for one query
	observeTime  = 2 * time.Second        // for ETAs, and for run times
)

// Tasks finds tasks: a view.Reader.
type Tasks interface {
	View(f func(c state.View))
	Tasks(ctx context.Context, r history.TaskRequest) (history.TaskPage, error)
	Count(ctx context.Context, q query.Query) (history.Count, error)
}

// Options of Read. All are required.
type Options struct {
	Tasks   Tasks
	Rollups history.RollupReader
	// Settings returns what is known of the settings of the live workers: remote.Inspector.CachedSettings.
	Settings func() []remote.WorkerSettings
	Now      time.Time
}

// Report is what an audit finds.
type Report struct {
	settings.Report

	Findings []Finding // those that have happened first
	At       time.Time
	Waiting  int      // workers that have not been asked yet
	Partial  []string // what could not be read in time, a sentence each
}

// Severity grades a finding.
type Severity string

// Severities, worst first.
const (
	Happened Severity = "happened" // the history has tasks to which it happened
	Exceeded Severity = "exceeded" // run times or ETAs are beyond what the settings allow for
	Possible Severity = "possible" // the settings allow it
)

// Finding is a finding with the tasks to which it happened.
type Finding struct {
	settings.Finding

	Severity Severity
	Total    history.Count // tasks to which it happened, not exact if a query was not counted in full
	Queries  []Query       // that find them; none if the history cannot tell
}

// Query finds some of the tasks to which a finding happened.
type Query struct {
	Query query.Query
	Names int // of tasks that it asks for
	Total history.Count
}

// Read audits the live workers. What cannot be read of the history, or not before ctx ends, is in Partial.
func Read(ctx context.Context, o Options) Report {
	r := Report{At: o.Now}
	cluster := settings.Cluster{Workers: r.workers(o)}
	cluster.Tasks = r.observe(ctx, o)
	r.Report = settings.Judge(cluster)
	var failed error
	for _, f := range r.Report.Findings {
		found := Finding{Finding: f, Severity: Possible}
		if f.Risk == settings.Exceeded {
			found.Severity = Exceeded
		}
		if err := found.count(ctx, o.Tasks); err != nil && failed == nil {
			failed = err
		}
		r.Findings = append(r.Findings, found)
	}
	if failed != nil {
		r.late("Some of the tasks to which it happened", failed)
	}
	rank := map[Severity]int{Happened: 0, Exceeded: 1, Possible: 2}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(rank[a.Severity]-rank[b.Severity], b.Total.N-a.Total.N)
	})
	r.Report.Findings = nil
	return r
}

// count counts the tasks to which a finding happened. It returns the first error, and counts the rest.
func (f *Finding) count(ctx context.Context, tasks Tasks) (failed error) {
	if f.Query == "" || len(f.Tasks) == 0 {
		return nil
	}
	base, err := query.Parse(f.Query)
	if err != nil {
		return fmt.Errorf("query of %s: %w", f.Cause, err)
	}
	f.Total.Exact = true
	names, rest := chunks(f.Tasks)
	if rest > 0 {
		f.Total.Exact = false
	}
	for _, chunk := range names {
		q := Query{Query: base.And(query.New(query.Equal(query.Name, chunk...))), Names: len(chunk)}
		limited, cancel := context.WithTimeout(ctx, countTime)
		q.Total, err = tasks.Count(limited, q.Query)
		cancel()
		if err != nil && failed == nil {
			failed = err
		}
		f.Total.N += q.Total.N
		f.Total.Exact = f.Total.Exact && err == nil && q.Total.Exact
		f.Queries = append(f.Queries, q)
	}
	if f.Total.N > 0 {
		f.Severity = Happened
	}
	return failed
}

// chunks splits the names of tasks into those of one query each. The rest are those that do not fit.
func chunks(tasks []settings.TaskFact) (list [][]string, rest int) {
	length := 0
	for _, t := range tasks {
		n := len(t.Name) + 3 // with a comma and quotes
		if len(list) == 0 || len(list[len(list)-1]) == queryNames || length+n > maxQueryText {
			if len(list) == maxQueries || n > maxQueryText {
				rest++
				continue
			}
			list, length = append(list, nil), 0
		}
		last := &list[len(list)-1]
		*last, length = append(*last, t.Name), length+n
	}
	return list, rest
}

// late says that something could not be read.
func (r *Report) late(what string, err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("it took too long")
	}
	r.Partial = append(r.Partial, fmt.Sprintf("%s could not be read: %v.", what, strings.TrimSuffix(err.Error(), ".")))
}
