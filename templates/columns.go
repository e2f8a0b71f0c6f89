package templates

import (
	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/state"
)

// column is one that a table of tasks can have.
type column struct {
	ID    string // as in an address; args are drawn by call
	Label string
	Title string // more words, empty if the label says it all
	Class string
	Cell  func(s URLs, t state.Task) templ.Component
}

// columns are all there are, in the order in which they are offered.
func columns() []column {
	return []column{
		{"state", "State", "", "c-state", func(s URLs, t state.Task) templ.Component { return stateMark(s, t.State) }},
		{"name", "Task", "", "c-name", taskCell},
		{"id", "Id", "", "c-id", func(s URLs, t state.Task) templ.Component { return shortIDCopy(s, t.ID) }},
		{"args", "Arguments", "", "c-args", nil},
		{"worker", "Worker", "", "c-worker", func(s URLs, t state.Task) templ.Component { return workerLink(s, t.Worker) }},
		{"queue", "Queue", "", "c-queue", func(_ URLs, t state.Task) templ.Component { return text(t.Queue, "No task-sent event") }},
		{"wait", "Wait", "From sent, or received if unknown, to started; before that, until or since the ETA", "c-time", func(_ URLs, t state.Task) templ.Component {
			if eta, ok := due(t); ok {
				return age(eta, "")
			}
			return took(t.WaitSeconds, "Not known")
		}},
		{"run", "Run", "Measured by the worker, or from started to the end", "c-time", func(_ URLs, t state.Task) templ.Component {
			return took(ran(t), "Not known")
		}},
		{"retries", "Attempts", "Number of attempts", "c-tries", func(_ URLs, t state.Task) templ.Component { return tries(t) }},
		{"updated", "Updated", "", "c-age", func(_ URLs, t state.Task) templ.Component { return age(t.UpdatedAt, "Not known") }},
		{"sent", "Sent", "", "c-age", func(_ URLs, t state.Task) templ.Component { return age(t.SentAt, "No task-sent event") }},
		{"received", "Received", "", "c-age", func(_ URLs, t state.Task) templ.Component {
			return age(t.ReceivedAt, "No task-received event")
		}},
		{"started", "Started", "", "c-age", func(_ URLs, t state.Task) templ.Component {
			return age(t.StartedAt, "No task-started event")
		}},
		{"finished", "Finished", "", "c-age", func(_ URLs, t state.Task) templ.Component { return age(finishedAt(t), "Not finished") }},
		{"result", "Result", "", "c-text", func(u URLs, t state.Task) templ.Component { return repr(t.Result, u.unseen("None received")) }},
		{"exc", "Exception", "", "c-text c-error", func(_ URLs, t state.Task) templ.Component { return repr(t.Exception, "None received") }},
		{"trace", "Traceback", "", "c-text", func(u URLs, t state.Task) templ.Component { return repr(t.Traceback, u.unseen("None received")) }},
		{"kwargs", "Keyword arguments", "", "c-text", func(u URLs, t state.Task) templ.Component { return repr(t.Kwargs, u.unseen("Not known")) }},
		{"client", "Client", "Client that published it", "c-worker", func(_ URLs, t state.Task) templ.Component { return text(t.Client, "No task-sent event") }},
		{"exchange", "Exchange", "", "c-queue", func(_ URLs, t state.Task) templ.Component { return text(t.Exchange, "Not known") }},
		{"routing_key", "Routing key", "", "c-queue", func(_ URLs, t state.Task) templ.Component { return text(t.RoutingKey, "Not known") }},
		{"root", "Root", "First task of the workflow", "c-id", func(s URLs, t state.Task) templ.Component { return idLink(s, t.RootID) }},
		{"parent", "Parent", "Task that published it", "c-id", func(s URLs, t state.Task) templ.Component { return idLink(s, t.ParentID) }},
		{"eta", "ETA", "Earliest start time", "c-moment", func(_ URLs, t state.Task) templ.Component { return isoMoment(t.ETA, "None") }},
		{"expires", "Expires", "Latest start time", "c-moment", func(_ URLs, t state.Task) templ.Component { return isoMoment(t.Expires, "None") }},
		{"clock", "Clock", "Lamport clock of its latest event", "c-number", func(_ URLs, t state.Task) templ.Component {
			return counted(&t.Stamp.Clock, "")
		}},
	}
}

// plainColumns are the default columns.
func plainColumns() []string {
	return []string{"state", "name", "args", "worker", "queue", "wait", "run", "retries", "updated"}
}

// chosen returns the columns by their ids. Unknown ids are left out.
func chosen(ids []string) []column {
	if len(ids) == 0 {
		ids = plainColumns()
	}
	known := map[string]column{}
	for _, c := range columns() {
		known[c.ID] = c
	}
	var list []column
	for _, id := range ids {
		if c, ok := known[id]; ok {
			list = append(list, c)
		}
	}
	return list
}

// labelled reports whether a cell needs its label where rows are drawn as cards.
func (c column) labelled() bool {
	switch c.ID {
	case "state", "name", "id", "args", "updated":
		return false
	}
	return true
}

// due returns the ETA of a task that has not started, µs since 1970.
func due(t state.Task) (eta int64, ok bool) {
	if t.ETA == nil || t.StartedAt != 0 || t.State.Final() {
		return 0, false
	}
	return state.ParseTime(*t.ETA)
}

func finishedAt(t state.Task) int64 {
	return max(t.SucceededAt, t.FailedAt, t.RevokedAt, t.RejectedAt)
}
