package query

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/queues"
)

const (
	paramHidden       = "hidden"
	defaultQueuesSort = "name"
)

// SortFailed is the key of tasks that failed.
const SortFailed = "failed"

// Queues selects and orders the list of queues. The zero value selects those that people named, by name, with the tasks that
// ended within the last hour.
type Queues struct {
	Hidden bool   // Celery's own queues too
	Sort   string // one of QueuesSortKeys, with - before it for the greatest first; empty means by name
	Span          // of which ended tasks are counted
}

// QueuesSortKeys are the columns that the list can be sorted by: those of queues, and failed, for tasks that failed in the span.
func QueuesSortKeys() []string { return append(queues.SortKeys(), SortFailed) }

// ParseQueues reads a query from URL parameters. Wrong values select what missing ones do.
func ParseQueues(v url.Values) Queues {
	q := Queues{Hidden: v.Get(paramHidden) == "true", Sort: v.Get(paramSort)}
	q.Span, _ = ParseSpan(v)
	if q.Sort == defaultQueuesSort || !slices.Contains(QueuesSortKeys(), strings.TrimPrefix(q.Sort, "-")) {
		q.Sort = ""
	}
	return q
}

// Order is the order of the list.
func (q Queues) Order() string { return cmp.Or(q.Sort, defaultQueuesSort) }

// URL returns path with the parameters that select the same list, in one spelling.
func (q Queues) URL(path string) string {
	hidden := ""
	if q.Hidden {
		hidden = "true"
	}
	sort := q.Sort
	if sort == defaultQueuesSort {
		sort = ""
	}
	return address(path, map[string]string{paramHidden: hidden, paramSort: sort, paramSpanSince: q.since(), paramSpanUntil: q.until()})
}
