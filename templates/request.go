package templates

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// Request is the content of the page of one request.
type Request struct {
	history.RequestSummary

	List          []history.Command      // a page of its commands
	TaskStates    map[string]state.State // of the tasks that these publish, by ID, as far as they are known
	Newest, Older string
	Effect        *command.Effect // of a single command that was to revoke or terminate a task, nil of others
}

// Page draws the whole page.
func (v Request) Page(l Layout) templ.Component { return requestPage(l, v) }

// RequestPath is the address of the page of a request, below the prefix.
func RequestPath(request int64) string { return "/outbox/" + strconv.FormatInt(request, 10) }

func (u URLs) request(id int64) templ.SafeURL { return u.path(RequestPath(id)) }

func (v Request) single() bool { return v.Commands() == 1 }

// class names the table of commands for the style sheet. It leaves out what the head of the page says.
func (v Request) class() string {
	if v.single() {
		return "commands of-request single"
	}
	if v.First.Kind == "task" {
		return "commands of-request of-tasks"
	}
	return "commands of-request"
}

// requestTitle is what was requested.
func requestTitle(r history.RequestSummary) string {
	first, n := r.First.Summary, r.Commands()
	switch {
	case n == 1:
		return first
	case r.First.Kind == "task": // only a retry has several
		return "Run " + plural(n, "task", "tasks") + " again"
	case r.Mixed:
		return first + " and " + number(n-1) + " more"
	}
	return first + ": " + number(n) + " commands"
}

// progress says how far the request has come.
func (v Request) progress() string {
	if v.single() {
		return outcome(v.First)
	}
	finished := 0
	var states []string
	for _, s := range history.CommandStates() {
		if n := v.States[s]; n > 0 {
			states = append(states, number(n)+" "+lookOf(s).counted)
			if s.Final() {
				finished += n
			}
		}
	}
	return strings.Join(append([]string{number(finished) + " of " + number(v.Commands()) + " finished"}, states...), ", ")
}

// requestState is the state that a request is shown in: that of its first open command, else the worst end of one.
func requestState(r history.RequestSummary) history.CommandState {
	for _, s := range []history.CommandState{
		history.CommandPending, history.CommandInFlight, history.CommandSent,
		history.CommandDead, history.CommandNoReply, history.CommandExpired, history.CommandDiscarded,
	} {
		if r.States[s] > 0 {
			return s
		}
	}
	return history.CommandDone
}

// countedWords are a number of commands or tasks with what became of them, and the class of the text.
type countedWords struct{ Text, Class string }

// requestOutcome says what became of a request: of the tasks that it published, else of its commands.
func requestOutcome(r history.RequestSummary) []countedWords {
	var list []countedWords
	add := func(n int, words, class string) {
		if n > 0 {
			list = append(list, countedWords{number(n) + " " + words, class})
		}
	}
	done := r.States[history.CommandDone]
	if r.First.Kind == "task" {
		for _, o := range taskOutcomes() {
			add(r.Tasks[o.state], o.words, o.class)
			done -= r.Tasks[o.state]
		}
		for _, s := range slices.Sorted(maps.Keys(r.Tasks)) {
			if !slices.ContainsFunc(taskOutcomes(), func(o taskOutcome) bool { return o.state == s }) {
				add(r.Tasks[s], "in state "+excerpt(string(s), 40), "")
				done -= r.Tasks[s]
			}
		}
		add(done, "sent", "") // and no event since
	} else {
		add(done-r.Refused, "done", "")
		add(r.Refused, "refused", "bad")
	}
	for _, s := range history.CommandStates() {
		switch s {
		case history.CommandDone:
		case history.CommandDead, history.CommandNoReply, history.CommandExpired:
			add(r.States[s], lookOf(s).counted, "bad")
		default:
			add(r.States[s], lookOf(s).counted, "")
		}
	}
	return list
}

type taskOutcome struct {
	state        state.State
	words, class string
}

func taskOutcomes() []taskOutcome {
	return []taskOutcome{
		{state.Success, "succeeded", ""},
		{state.Failure, "failed", "bad"},
		{state.Started, "running", ""},
		{state.Retry, "waiting for a retry", ""},
		{state.Received, "received", ""},
		{state.Pending, "waiting", ""},
		{state.Revoked, "revoked", "warn"},
		{state.Rejected, "rejected", "bad"},
	}
}

// part is one part of a bar that shows how commands are divided, in thousandths of its length.
type part struct {
	State    history.CommandState
	X, Width int
}

// parts divides a bar among the states of commands.
func (v Request) parts() []part {
	if v.single() && v.Refused > 0 {
		return []part{{history.CommandDead, 0, 1000}}
	}
	var list []part
	whole, before := v.Commands(), 0
	for _, s := range []history.CommandState{
		history.CommandDone, history.CommandNoReply, history.CommandSent, history.CommandInFlight, history.CommandPending,
		history.CommandExpired, history.CommandDiscarded, history.CommandDead,
	} {
		if n := v.States[s]; n > 0 {
			from, to := 1000*before/whole, 1000*(before+n)/whole
			list = append(list, part{s, from, to - from})
			before += n
		}
	}
	return list
}

func requestRowID(r history.RequestSummary) string {
	return "r-" + strconv.FormatInt(r.First.RequestID, 10)
}
