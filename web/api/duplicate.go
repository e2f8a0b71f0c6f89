package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/calls"
	"github.com/umbelhq/umbel/web/query"
)

// Duplicate is a group of tasks with one name and equal arguments, or one task that repeats its own work. Null means
// unknown.
type Duplicate struct {
	Key           string         `json:"key" doc:"32 hexadecimal digits of the call, which the query dup:KEY finds, or task: and the ID of a single task." example:"0dd7dc58725190cd8c2f4b0e6a917f35"`
	Name          *string        `json:"name" doc:"Task name."`
	Arguments     *string        `json:"arguments" doc:"Arguments of the newest task on one line, with secrets masked; at most 2,000 bytes. Null if they are unknown."`
	Tasks         int            `json:"tasks" doc:"Number of retained tasks."`
	Verdicts      []string       `json:"verdicts" nullable:"false" doc:"How tasks of the group came to repeat others, worst first: overlapping, rerun, redelivery, resend, retry, skipped."`
	Counts        map[string]int `json:"counts" nullable:"false" doc:"Number of repeated runs by verdict, among the tasks that were compared."`
	WastedSeconds float64        `json:"wasted_seconds" doc:"Run time of what was done again, among the tasks that were compared, but not of what ran again as scheduled."`
	PeriodSeconds *float64       `json:"period_seconds" doc:"Interval between the compared tasks if they were sent at regular intervals, as a schedule sends them; otherwise null."`
	Partial       bool           `json:"partial" doc:"Whether the group has older tasks that were not compared for this response."`
	Workers       []string       `json:"workers" nullable:"false" doc:"Node names of the workers that received the compared tasks."`
	Excluded      []string       `json:"excluded" nullable:"false" doc:"Fields of the arguments that do not count."`
	FirstAt       Time           `json:"first_at" doc:"When the oldest retained task was sent, or else received."`
	LastAt        Time           `json:"last_at" doc:"When the newest was."`
	TaskIDs       []string       `json:"task_ids" nullable:"false" doc:"The compared tasks, newest first."`
}

// DuplicateGroup is a group with its pairs of runs.
type DuplicateGroup struct {
	Duplicate

	Pairs []DuplicatePair `json:"pairs" nullable:"false" doc:"Repeated runs, newest first."`
}

// DuplicatePair is two runs of one call.
type DuplicatePair struct {
	Verdict       string            `json:"verdict" enum:"redelivery,resend,retry,overlapping,rerun,skipped"`
	Proved        bool              `json:"proved" doc:"Whether the verdict is proved; otherwise it is possible: clocks may be off, or another message may explain it."`
	First         DuplicateRun      `json:"first" doc:"Earlier run."`
	Second        DuplicateRun      `json:"second" doc:"Run that repeats it."`
	WastedSeconds float64           `json:"wasted_seconds"`
	Evidence      []DuplicateReason `json:"evidence" nullable:"false"`
}

// DuplicateRun is one execution of a task, or one that was sent.
type DuplicateRun struct {
	TaskID     string  `json:"task_id"`
	Attempt    Int     `json:"attempt" doc:"0 for the first."`
	Worker     *string `json:"worker"`
	PID        *Int    `json:"pid"`
	State      *string `json:"state"`
	Client     *string `json:"client" doc:"Sender, where the verdict is resend."`
	SentAt     Time    `json:"sent_at"`
	ReceivedAt Time    `json:"received_at"`
	StartedAt  Time    `json:"started_at"`
	EndedAt    Time    `json:"ended_at"`
}

// DuplicateReason is a piece of evidence.
type DuplicateReason struct {
	Kind   string  `json:"kind" example:"overlap"`
	Text   string  `json:"text" doc:"A sentence."`
	At     Time    `json:"at"`
	TaskID *string `json:"task_id"`
}

// DuplicateStats says what was compared.
type DuplicateStats struct {
	Tasks          int          `json:"tasks" doc:"Retained tasks."`
	Groups         int          `json:"groups"`
	Grouped        int          `json:"grouped" doc:"Tasks in groups."`
	Ungrouped      int          `json:"ungrouped" doc:"Tasks that are not compared, since their arguments are not known as a whole."`
	UngroupedNames []NamedTasks `json:"ungrouped_names" nullable:"false" doc:"Names of most of those, at most 20, most tasks first."`
	Pending        int          `json:"pending" doc:"Older tasks that are yet to be compared. Until it is 0, groups are incomplete."`
}

// NamedTasks says how many tasks have a name.
type NamedTasks struct {
	Name  *string `json:"name"`
	Tasks int     `json:"tasks"`
}

// Duplicates is a page of the list of groups.
type Duplicates struct {
	Items []Duplicate     `json:"items" nullable:"false"`
	Next  *string         `json:"next" doc:"Cursor of the next page; null on the last page."`
	Stats *DuplicateStats `json:"stats" doc:"Summary of all groups, up to 10 s old; null as of an instant."`
}

func (a *api) fromDuplicates(groups []view.DuplicateGroup) []Duplicate {
	list := make([]Duplicate, len(groups))
	arguments := calls.OfGroups(a.redactor, groups)
	for i, g := range groups {
		list[i] = Duplicate{
			Key: g.Key.String(), Name: text(g.Name), Arguments: text(arguments[i]), Tasks: g.N, Counts: map[string]int{},
			Verdicts:      mapSlice(g.WorstFirst(), func(v duplicates.Verdict) string { return string(v) }),
			WastedSeconds: g.WastedSeconds, Partial: g.Partial, Workers: append([]string{}, g.Workers()...),
			Excluded: append([]string{}, g.Excluded...), FirstAt: timeOf(g.Oldest), LastAt: timeOf(g.Newest),
			TaskIDs: mapSlice(g.Tasks, func(t state.Task) string { return t.ID }),
		}
		if g.Period > 0 {
			list[i].PeriodSeconds = new(g.Period.Seconds())
		}
		for v, n := range g.Verdicts {
			list[i].Counts[string(v)] = n
		}
	}
	return list
}

func fromPair(p duplicates.Pair) DuplicatePair {
	return DuplicatePair{
		Verdict: string(p.Verdict), Proved: p.Proved, First: fromRun(p.First), Second: fromRun(p.Second), WastedSeconds: p.WastedSeconds,
		Evidence: mapSlice(p.Evidence, func(f duplicates.Fact) DuplicateReason {
			return DuplicateReason{Kind: string(f.Kind), Text: f.Text, At: Time(f.At), TaskID: text(f.Task)}
		}),
	}
}

func fromRun(r duplicates.Run) DuplicateRun {
	return DuplicateRun{
		TaskID: r.TaskID, Attempt: Int(r.Attempt), Worker: text(r.Worker), PID: positive(r.PID), State: text(string(r.State)),
		Client: text(r.Client), SentAt: Time(r.SentAt), ReceivedAt: Time(r.ReceivedAt), StartedAt: Time(r.StartedAt), EndedAt: Time(r.EndedAt),
	}
}

func fromDuplicateStats(s history.DuplicateStats) DuplicateStats {
	return DuplicateStats{
		Tasks: s.Tasks, Groups: s.Groups, Grouped: s.Grouped, Ungrouped: s.Ungrouped, Pending: s.Pending,
		UngroupedNames: mapSlice(s.UngroupedNames, func(n history.NameCount) NamedTasks { return NamedTasks{text(n.Name), n.N} }),
	}
}

type listDuplicates struct {
	Query
	Verdict string `query:"verdict" enum:"redelivery,resend,retry,overlapping,rerun,skipped" doc:"Only groups with this verdict."`
	Name    string `query:"name" doc:"Only tasks with exactly this name."`
	Sort    string `query:"sort" enum:"tasks" doc:"tasks sorts by number of tasks, most first. Defaults to the newest task first."`
	Limit   int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Maximum number of groups to return."`
	Cursor  string `query:"cursor" doc:"Cursor from next of an earlier response with the same sort."`
}

// DuplicatePath names a group of duplicates.
type DuplicatePath struct {
	Key string `path:"key" doc:"Key of the group." example:"0dd7dc58725190cd8c2f4b0e6a917f35"`
}

type getDuplicate struct {
	DuplicatePath
	Tasks int `query:"tasks" minimum:"1" maximum:"500" default:"100" doc:"Maximum number of tasks to compare, newest first."`
}

// registerDuplicates adds the operations on tasks that repeat work.
func (a *api) registerDuplicates(h huma.API) {
	huma.Register(h, operation(h, auth.ReadPayload, "list-duplicates", "/duplicates", "List groups of duplicate tasks", unavailable), a.duplicates)
	huma.Register(h, operation(h, auth.ReadPayload, "get-duplicate", "/duplicates/{key}", "Get a group of duplicate tasks", notFound, unavailable), a.duplicate)
	huma.Register(h, operation(h, auth.ReadPayload, "list-duplicate-rules", "/duplicates/rules", "List the fields that are excluded when calls are compared", unavailable), a.duplicateRules)
}

func (a *api) duplicates(ctx context.Context, r *listDuplicates) (*response[Duplicates], error) {
	q, err := query.ParseDuplicates(r.values)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	page, err := a.backend.Duplicates(ctx, q.Request())
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	l := Duplicates{Items: a.fromDuplicates(page.Groups)}
	if a.then == nil {
		l.Stats = new(fromDuplicateStats(page.Stats))
	}
	if page.Next != nil {
		l.Next = new(query.EncodeDuplicate(*page.Next, q.Most))
	}
	return &response[Duplicates]{l}, nil
}

func (a *api) duplicate(ctx context.Context, r *getDuplicate) (*response[DuplicateGroup], error) {
	key, ok := history.ParseDuplicateKey(r.Key)
	if !ok {
		return nil, duplicateNotFound(r.Key)
	}
	g, err := a.backend.DuplicateGroup(ctx, key, r.Tasks)
	switch {
	case errors.Is(err, history.ErrNotFound):
		return nil, duplicateNotFound(r.Key)
	case err != nil:
		return nil, a.failed(ctx, err)
	}
	return &response[DuplicateGroup]{DuplicateGroup{
		Duplicate: a.fromDuplicates([]view.DuplicateGroup{g})[0], Pairs: mapSlice(g.Pairs, fromPair),
	}}, nil
}

func duplicateNotFound(key string) *Problem {
	return problem(http.StatusNotFound, "No group of duplicates has the key "+shorten(key)+", or none of its tasks is retained.")
}

func (a *api) duplicateRules(ctx context.Context, _ *struct{}) (*response[List[DuplicateRule]], error) {
	rules, err := a.backend.History().DuplicateRules(ctx)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	return &response[List[DuplicateRule]]{onePage(rules, fromDuplicateRule)}, nil
}
