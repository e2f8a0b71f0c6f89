package templates

import (
	"cmp"
	"net/url"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/deploys"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/tasktype"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/state/query"
)

// Failures is the content of the page that lists groups of failures.
type Failures struct {
	Groups         []history.FailureGroup
	Show           string                            // open, resolved or all
	Assignee       string                            // whose groups are listed, empty for all
	Open, Resolved int                               // groups in all
	JustResolved   *history.FailureGroup             // what the visitor has just resolved
	Unreadable     bool                              // the history cannot be read
	Span           *ChartSpan                        // only what failed in it is counted; nil for all
	SpanQuery      string                            // since=…&until=… of it
	Self           string                            // address of the page
	Since          int64                             // µs since 1970, when the last hour began
	Before         map[fingerprint.ID][]deploys.Mark // what came before groups were first seen
	Newest, Older  string                            // addresses of other pages of the list, empty if there are none
}

// Page draws the whole page.
func (v Failures) Page(l Layout) templ.Component { return failures(l, v) }

// sinceMark is how long after a mark a group was first seen. What comes after need not come of it.
func sinceMark(f history.FailureGroup, m deploys.Mark) string {
	return duration(f.FirstAt.Sub(m.At).Seconds()) + " after " + m.Label()
}

func failureRowID(id fingerprint.ID) string { return "f-" + id.String() }

// shown are the choices of groups, by the value of their parameter.
func (v Failures) shown() []shown {
	return []shown{
		{"open", "Open", v.Open},
		{"resolved", "Resolved", v.Resolved},
		{"all", "All", v.Open + v.Resolved},
	}
}

type shown struct {
	Value, Label string
	Count        int
}

// FailureGroup is the content of the page of one group.
type FailureGroup struct {
	Group                history.FailureGroup
	Exception, Traceback *string      // of the newest task
	Tasks                []state.Task // the newest
	Split                tasktype.Split
	Before               []deploys.Mark // what came before it was first seen
	JustResolved         bool           // the visitor has just resolved it
	Self                 string         // address of the page
	Since                int64          // µs since 1970, when its last hour began
	Span                 *ChartSpan     // only what failed in it is counted; nil for all
	SpanQuery            string         // since=…&until=… of it
}

// Page draws the whole page.
func (v FailureGroup) Page(l Layout) templ.Component { return failureGroup(l, v) }

// failureType is the type of the exceptions, in words if it is not known.
func failureType(f history.FailureGroup) string {
	return cmp.Or(f.Fingerprint.Type, "Unknown exception")
}

// exampleText is the newest exception without its type, which precedes it on the page.
func exampleText(f history.FailureGroup) string {
	if f.Example == "" {
		return f.Fingerprint.Message
	}
	return strings.TrimPrefix(f.Example, f.Fingerprint.Type)
}

// ifKnown returns nil for an empty text, which is unknown.
func ifKnown(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// tasksName is the name of the tasks, in words if it is not known.
func tasksName(f history.FailureGroup) string { return cmp.Or(f.Name, "tasks with unknown name") }

// atLeast is a number of tasks, with a plus if there may be more.
func atLeast(c history.Count) string {
	if c.Exact {
		return number(c.N)
	}
	return number(c.N) + "+"
}

// failedWithin is how many of its tasks failed in the span that was asked for.
func failedWithin(f history.FailureGroup) string {
	return atLeast(history.Count{N: f.Within, Exact: f.Within < history.MaxFailureCount})
}

// countTasks is a number of tasks with its noun.
func countTasks(c history.Count) string {
	if c.Exact {
		return plural(c.N, "task", "tasks")
	}
	return atLeast(c) + " tasks"
}

// others says how many other tasks are in the group of a task.
func others(f history.FailureGroup) string {
	switch n := (history.Count{N: f.Count.N - 1, Exact: f.Count.Exact}); n.N {
	case 0:
		return "No similar failures"
	case 1:
		return "1 similar failure"
	default:
		return atLeast(n) + " similar failures"
	}
}

// failureSeries is the trend as a chart takes it.
func failureSeries(f history.FailureGroup) []float64 {
	list := make([]float64, len(f.Trend))
	for i, n := range f.Trend {
		list[i] = float64(n)
	}
	return list
}

// trendWords describe the trend.
func trendWords(f history.FailureGroup, span *ChartSpan) string {
	if len(f.Trend) == 0 {
		return "No trend available"
	}
	series := failureSeries(f)
	if span != nil {
		return "Failures in this time, in " + number(len(series)) + " parts: " + number(int64(total(series))) + " in all, at most " +
			number(int64(peak(series))) + " in one"
	}
	return "Failures by hour over the last " + number(len(series)) + " hours: " + number(int64(total(series))) +
		" in all, at most " + number(int64(peak(series))) + " in one hour, " + number(f.Trend[len(f.Trend)-1]) + " in this one"
}

// failuresWith links to the groups of an assignee, of everybody if that is empty, that a choice shows in a span of time.
func (u URLs) failuresWith(assignee, show, span string) templ.SafeURL {
	v, err := url.ParseQuery(span)
	if err != nil {
		v = url.Values{}
	}
	if assignee != "" {
		v.Set("assignee", assignee)
	}
	if show != "" && show != "open" {
		v.Set("show", show)
	}
	if len(v) == 0 {
		return u.path("/failures")
	}
	return u.path("/failures?" + v.Encode())
}

// FailurePath is the address of a group's page, below the prefix.
func FailurePath(id string) string { return "/failures/" + id }

func (u URLs) failure(id fingerprint.ID) templ.SafeURL { return u.path(FailurePath(id.String())) }

func (u URLs) failureJSON(id fingerprint.ID) templ.SafeURL {
	return u.path("/api/v1/failures/" + id.String())
}

// failureIn links to the page of a group, with a span of time.
func (u URLs) failureIn(id fingerprint.ID, span string) templ.SafeURL {
	if span == "" {
		return u.failure(id)
	}
	return u.failure(id) + "?" + templ.SafeURL(span)
}

// failuresOf links to the tasks of a group that failed in a span of time, to all if that is nil.
func (u URLs) failuresOf(id fingerprint.ID, in *ChartSpan) templ.SafeURL {
	return u.tasksWhere("q", failedIn(id, in))
}

// failedIn finds the tasks of a group that failed in a span of time.
func failedIn(id fingerprint.ID, in *ChartSpan) string {
	q := "failure:" + id.String()
	if in != nil {
		q += " " + query.New(query.Between(query.Finished, in.From, in.To)).String()
	}
	return q
}

// retryFailed leads to the preview of a retry of the tasks of a group that have ended since, of all if that is 0.
func (u URLs) retryFailed(id fingerprint.ID, since int64) templ.SafeURL {
	q := "failure:" + id.String()
	if since != 0 {
		q += " finished:" + utc(since).Format(time.RFC3339) + ".."
	}
	return u.retryWhere(q)
}

// retryWhere leads to the preview of a retry of the tasks that a query finds.
func (u URLs) retryWhere(q string) templ.SafeURL {
	return u.path("/act/task?" + url.Values{"action": {"retry"}, "q": {q}}.Encode())
}

// splitSentences say the most telling of what failed tasks share.
func splitSentences(s tasktype.Split) []string {
	var list []string
	for _, group := range [][]tasktype.Share{s.Workers, s.Values} {
		for _, share := range group {
			if share.Apart && len(list) < 3 {
				list = append(list, shareWords(share))
			}
		}
	}
	return list
}

// shareWords say how many have a value: "18 of 20 ran on celery@w3".
func shareWords(s tasktype.Share) string {
	who := number(s.Selected) + " of " + number(s.SelectedOf)
	if s.Selected == s.SelectedOf {
		who = "All " + number(s.Selected)
	}
	switch s.Field {
	case "worker":
		return who + " ran on " + s.Value
	case "queue":
		return who + " came from the queue " + s.Value
	}
	return who + " have " + traitField(s.Trait) + " = " + s.Value
}

// splitWords say which tasks are counted.
func splitWords(s tasktype.Split) string {
	words := "all " + number(s.Tasks)
	if !s.Whole {
		words = "the newest " + number(s.Tasks)
	}
	if s.Others > 0 {
		words += ", beside the newest " + number(s.Others) + " that succeeded"
	}
	return words
}

// FailureTitle names a group: "ConnectionError in billing.charge".
func FailureTitle(f history.FailureGroup) string { return failureType(f) + " in " + tasksName(f) }

// FailureCount is the number of its tasks with its noun.
func FailureCount(f history.FailureGroup) string { return countTasks(f.Count) }
