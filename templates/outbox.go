package templates

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"
)

// Outbox is the content of the page that lists commands.
type Outbox struct {
	Counts        map[string]int // commands by state, of all
	OldestPending int64          // µs since 1970, 0 if none is pending
	Unsupported   int            // that another version wrote
	Relay         *Relay         // nil if nothing is sent
	Failures      []FailureCount // the most frequent ones
	States        []StateOption  // choices of states
	State         string         // the choice, empty if it is another
	Conditions    []Condition    // further ones, each with the way to be without it
	Query         CommandQuery
	Commands      []Command
	Self          string // address of the page
	Newest, Older string // addresses of other pages of the list, empty if there are none
	Unreadable    bool
}

// Relay says how sending goes.
type Relay struct {
	Open  bool // broker unavailable: nothing is sent until Until
	Until int64
	Error string
	Sent  uint64 // since the start
}

// FailureCount is how often an error occurred.
type FailureCount struct {
	Error string
	N     int
}

// StateOption is a choice of what a list shows, with the address of the list then.
type StateOption struct {
	Value, Label, Href string
	Count              int
}

// CommandQuery is what a form asks for of a list of commands.
type CommandQuery struct {
	States, Kind, Worker, Actor string
	Kinds                       []string
}

// Condition is one that a list is under, with the address of the list without it.
type Condition struct{ Label, Value, Without string }

// Command is something that is to be sent, or was. Times are µs since 1970, 0 if unknown or never.
type Command struct {
	ID, Request                                int64
	Kind                                       string // control, task, purge
	State                                      string
	Target, Summary                            string
	TaskID                                     string
	Attempts, Deferrals                        int
	Error                                      string
	Replies                                    []CommandReply
	NoReply                                    []string // who has not answered
	Created, Due, Expires, Claimed, Sent, Done int64
	Actor                                      string
	// Waiting says that it is due and waiting.
	Waiting bool
}

// CommandReply is what a worker said.
type CommandReply struct {
	Node string
	At   int64
	Text string
	OK   bool // it said yes
}

// Page draws the whole page.
func (v Outbox) Page(l Layout) templ.Component { return outboxPage(l, v) }

// picks reports whether commands can be chosen: dead letters, by those who may act.
func (v Outbox) picks(u URLs) bool { return u.CanSend && v.State == "dead" }

func (c Command) rowID() string { return "c-" + c.id() }
func (c Command) id() string    { return strconv.FormatInt(c.ID, 10) }

// expected is how many are to answer.
func (c Command) expected() int { return len(c.Replies) + len(c.NoReply) }

// told tells how far the command has come.
func (c Command) outcome() string {
	if c.expected() > 0 {
		return "Replies from " + number(len(c.Replies)) + " of " + number(c.expected())
	}
	switch c.State {
	case "pending":
		return "Waiting to be sent."
	case "in_flight":
		return "Being sent to the broker."
	case "sent", "done":
		return "Accepted by the broker."
	case "dead":
		return "Could not be sent; not retried."
	case "expired":
		return "Expired before it could be sent."
	case "discarded":
		return "Cancelled."
	}
	return commandWord(c.State)
}

// refused is how many have said no.
func (c Command) refused() int {
	n := 0
	for _, a := range c.Replies {
		if !a.OK {
			n++
		}
	}
	return n
}

// silent names who did not answer.
func (c Command) missing() string {
	const most = 3
	named := c.NoReply[:min(len(c.NoReply), most)]
	list := strings.Join(named, ", ")
	if more := len(c.NoReply) - len(named); more > 0 {
		list += " and " + number(more) + " more"
	}
	return list
}

// waited is how long answers were waited for.
func (c Command) waited() string {
	if c.Sent == 0 || c.Done <= c.Sent {
		return ""
	}
	return " in " + duration(float64(c.Done-c.Sent)/1e6)
}

// open reports whether the command is on its way.
func (c Command) open() bool {
	return c.State == "pending" || c.State == "in_flight" || c.State == "sent"
}

func commandStates() []string {
	return []string{"pending", "in_flight", "sent", "done", "silent", "dead", "expired", "discarded"}
}

// commandWord is the state of a command as a word.
func commandWord(state string) string {
	switch state {
	case "pending":
		return "Pending"
	case "in_flight":
		return "Being sent"
	case "sent":
		return "Sent"
	case "done":
		return "Done"
	case "silent":
		return "No reply"
	case "dead":
		return "Dead letter"
	case "expired":
		return "Expired"
	case "discarded":
		return "Discarded"
	}
	return state
}

// commandClass is the state of tasks that has the color of a command's state.
func commandClass(state string) string {
	switch state {
	case "pending":
		return "pending"
	case "in_flight":
		return "received"
	case "sent":
		return "started"
	case "done":
		return "success"
	case "silent":
		return "retry"
	case "dead":
		return "failure"
	case "expired":
		return "rejected"
	case "discarded":
		return "revoked"
	}
	return "custom"
}

func commandIcon(state string) string {
	switch state {
	case "pending":
		return "circle-dashed"
	case "in_flight":
		return "send"
	case "sent":
		return "clock"
	case "done":
		return "circle-check"
	case "silent":
		return "triangle-alert"
	case "dead":
		return "circle-x"
	case "expired":
		return "octagon-x"
	case "discarded":
		return "ban"
	}
	return "circle-dot"
}

// kindWord is the kind of a command as a word.
func kindWord(kind string) string {
	switch kind {
	case "control":
		return "remote control"
	case "task":
		return "task message"
	case "purge":
		return "purge"
	}
	return kind
}

func (u URLs) deadLetters() templ.SafeURL { return templ.SafeURL(u.Prefix + "/outbox?state=dead") }

func (u URLs) request(id int64) templ.SafeURL { return templ.SafeURL(u.Prefix + RequestPath(id)) }

func (u URLs) audit() templ.SafeURL { return templ.SafeURL(u.Prefix + "/outbox/audit") }

func (u URLs) actOutbox() templ.SafeURL { return templ.SafeURL(u.Prefix + "/act/outbox") }

// actOnCommands links to the form that requeues or discards what a parameter names.
func (u URLs) actOnCommands(action, param, value string) templ.SafeURL {
	v := url.Values{"action": {action}, param: {value}}
	return templ.SafeURL(u.Prefix + "/act/outbox?" + v.Encode())
}

func (u URLs) commandsJSON(request int64) templ.SafeURL {
	return templ.SafeURL(u.Prefix + "/api/v1/commands?request=" + strconv.FormatInt(request, 10))
}
