package templates

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
)

// Request is the content of the page of one request.
type Request struct {
	ID            int64
	Counts        map[history.CommandState]int // its commands by state
	Commands      []history.Command            // a page of them
	Newest, Older string
	Effect        *command.Effect // of a single command that was to revoke or terminate a task, nil of others
}

// Page draws the whole page.
func (v Request) Page(l Layout) templ.Component { return requestPage(l, v) }

// RequestPath is the address of the page of a request, below the prefix.
func RequestPath(request int64) string { return "/outbox/" + strconv.FormatInt(request, 10) }

func (u URLs) request(id int64) templ.SafeURL { return u.path(RequestPath(id)) }

// first is the first command of the request.
func (v Request) first() history.Command {
	if len(v.Commands) == 0 {
		return history.Command{}
	}
	return slices.MinFunc(v.Commands, func(a, b history.Command) int { return cmp.Compare(a.ID, b.ID) })
}

func (v Request) total() int {
	n := 0
	for _, count := range v.Counts {
		n += count
	}
	return n
}

func (v Request) single() bool { return v.total() == 1 }

// class names the table of commands for the style sheet. It leaves out what the head of the page says.
func (v Request) class() string {
	if v.single() {
		return "commands of-request single"
	}
	return "commands of-request"
}

// title is what was requested.
func (v Request) title() string {
	first, n := v.first().Summary, v.total()
	switch {
	case v.single():
		return first
	case slices.ContainsFunc(v.Commands, func(c history.Command) bool { return c.Summary != first }):
		return first + " and " + number(n-1) + " more"
	}
	return first + ": " + number(n) + " commands"
}

// progress says how far the request has come.
func (v Request) progress() string {
	if v.single() {
		return outcome(v.first())
	}
	finished := 0
	var states []string
	for _, s := range history.CommandStates() {
		if n := v.Counts[s]; n > 0 {
			states = append(states, number(n)+" "+lookOf(s).counted)
			if s.Final() {
				finished += n
			}
		}
	}
	return strings.Join(append([]string{number(finished) + " of " + number(v.total()) + " finished"}, states...), ", ")
}

// part is one part of a bar that shows how commands are divided, in thousandths of its length.
type part struct {
	State    history.CommandState
	X, Width int
}

// parts divides a bar among the states of commands.
func (v Request) parts() []part {
	if v.single() && v.first().Refused() > 0 {
		return []part{{history.CommandDead, 0, 1000}}
	}
	var list []part
	whole, before := v.total(), 0
	for _, s := range []history.CommandState{
		history.CommandDone, history.CommandNoReply, history.CommandSent, history.CommandInFlight, history.CommandPending,
		history.CommandExpired, history.CommandDiscarded, history.CommandDead,
	} {
		if n := v.Counts[s]; n > 0 {
			from, to := 1000*before/whole, 1000*(before+n)/whole
			list = append(list, part{s, from, to - from})
			before += n
		}
	}
	return list
}
