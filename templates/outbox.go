package templates

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
)

// Outbox is the content of the page that lists commands.
type Outbox struct {
	Tabs          []Choice // to outboxes of applications, none if none is watched
	Stats         history.OutboxStats
	Relay         *relay.Status // nil if nothing is sent
	States        []StateOption
	State         string      // the selected state, empty for all
	Conditions    []Condition // other conditions on the list
	Query         CommandQuery
	ByRequest     bool // the list has requests, else commands
	Requests      []history.RequestSummary
	Commands      []history.Command
	Newest, Older string // addresses of other pages of the list, empty if there are none
	Unreadable    bool   // the history cannot be read
}

// StateOption is a choice of what a list shows, with the address of the list then.
type StateOption struct {
	Value, Label, Href string
	Count              int
}

// CommandQuery is the content of the form that filters commands.
type CommandQuery struct {
	States, Kind, Worker, Actor string
	Kinds                       []string
}

// Condition is a condition on a list, with the address of the list without it.
type Condition struct{ Label, Value, Without string }

// Page draws the whole page.
func (v Outbox) Page(l Layout) templ.Component { return outboxPage(l, v) }

// picks reports whether commands can be selected: dead letters, where the user may act.
func (v Outbox) picks(u URLs) bool { return u.CanSend && v.State == string(history.CommandDead) }

func commandRowID(c history.Command) string { return "c-" + strconv.FormatInt(c.ID, 10) }

// expected is the number of workers that have replied or should reply.
func expected(c history.Command) int { return len(c.Replies) + len(c.Missing()) }

// outcome says how far a command has come.
func outcome(c history.Command) string {
	if n := expected(c); n > 0 {
		return "Replies from " + number(len(c.Replies)) + " of " + number(n)
	}
	return lookOf(c.State).outcome
}

// missingNames names the workers that have not replied.
func missingNames(c history.Command) string {
	const most = 3
	all := c.Missing()
	list := strings.Join(all[:min(len(all), most)], ", ")
	if more := len(all) - most; more > 0 {
		list += " and " + number(more) + " more"
	}
	return list
}

// waited says how long replies were waited for.
func waited(c history.Command) string {
	if c.SentAt.IsZero() || !c.DoneAt.After(c.SentAt) {
		return ""
	}
	return " in " + duration(c.DoneAt.Sub(c.SentAt).Seconds())
}

// commandLook is how a state of commands is shown.
type commandLook struct {
	word    string
	counted string // after a number of commands
	class   string // the state of tasks whose color it has
	icon    string
	outcome string // a sentence
}

func lookOf(s history.CommandState) commandLook {
	switch s {
	case history.CommandPending:
		return commandLook{"Pending", "pending", "pending", "circle-dashed", "Waiting to be sent."}
	case history.CommandInFlight:
		return commandLook{"Being sent", "being sent", "received", "send", "Being sent to the broker."}
	case history.CommandSent:
		return commandLook{"Sent", "waiting for replies", "started", "clock", "Accepted by the broker."}
	case history.CommandDone:
		return commandLook{"Done", "done", "success", "circle-check", "Accepted by the broker."}
	case history.CommandNoReply:
		return commandLook{"No reply", "without a reply", "retry", "triangle-alert", "No reply"}
	case history.CommandDead:
		return commandLook{"Dead letter", "failed for good", "failure", "circle-x", "Could not be sent; not retried."}
	case history.CommandExpired:
		return commandLook{"Expired", "expired", "rejected", "octagon-x", "Expired before it could be sent."}
	case history.CommandDiscarded:
		return commandLook{"Discarded", "discarded", "revoked", "ban", "Cancelled."}
	}
	return commandLook{string(s), string(s), "custom", "circle-dot", string(s)}
}

// kindWord is the kind of a command as a word.
func kindWord(kind string) string {
	switch kind {
	case "control":
		return "remote control"
	case "task":
		return "task message"
	case command.RequeueDeadLetters:
		return "requeue of dead letters"
	case command.PurgeDeadLetters:
		return "purge of dead letters"
	}
	return kind
}

// DeadLettersPath is the page of the dead letters of an application's outbox.
func DeadLettersPath(outbox string) string {
	return "/outbox/app/dead?" + url.Values{"outbox": {outbox}}.Encode()
}

// actOnDeadLetters links to the form that requeues or purges a dead letter, or all those of a task name if id is 0.
func (u URLs) actOnDeadLetters(action, outbox, name string, id int64) templ.SafeURL {
	v := url.Values{"action": {action}, "outbox": {outbox}}
	if id == 0 {
		v.Set("all", "1")
		if name != "" {
			v.Set("name", name)
		}
	} else {
		v.Set("id", strconv.FormatInt(id, 10))
	}
	return u.path("/act/dead-letters?" + v.Encode())
}

// actOnCommands links to the form that requeues or discards what a parameter names.
func (u URLs) actOnCommands(action, param, value string) templ.SafeURL {
	return u.path("/act/outbox?" + url.Values{"action": {action}, param: {value}}.Encode())
}
