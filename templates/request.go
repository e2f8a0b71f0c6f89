package templates

import (
	"cmp"
	"slices"
	"strings"

	"github.com/a-h/templ"
)

// Request is the content of the page of one request: all that one request has asked for.
type Request struct {
	ID            int64
	Counts        map[string]int // its commands by state
	Commands      []Command      // a page of them
	Newest, Older string
}

// Page draws the whole page.
func (v Request) Page(l Layout) templ.Component { return requestPage(l, v) }

// first is the command that matches the order.
func (v Request) first() Command {
	if len(v.Commands) == 0 {
		return Command{}
	}
	return slices.MinFunc(v.Commands, func(a, b Command) int { return cmp.Compare(a.ID, b.ID) })
}

func (v Request) total() int {
	n := 0
	for _, count := range v.Counts {
		n += count
	}
	return n
}

func (v Request) single() bool { return v.total() == 1 }

// class names the table of commands for the style sheet. What is said above need not be said in it.
func (v Request) class() string {
	if v.single() {
		return "commands of-request single"
	}
	return "commands of-request"
}

// title is what was asked for.
func (v Request) title() string {
	first, n := v.first().Summary, v.total()
	switch {
	case v.single():
		return first
	case slices.ContainsFunc(v.Commands, func(c Command) bool { return c.Summary != first }):
		return first + " and " + number(n-1) + " more"
	}
	return first + ": " + number(n) + " commands"
}

// open is how many commands are on their way.
func (v Request) open() int { return v.Counts["pending"] + v.Counts["in_flight"] + v.Counts["sent"] }

// progress tells how far the order has come.
func (v Request) progress() string {
	if v.single() {
		return v.first().outcome()
	}
	list := []string{number(v.total()-v.open()) + " of " + number(v.total()) + " finished"}
	for _, s := range commandStates() {
		if n := v.Counts[s]; n > 0 {
			list = append(list, number(n)+" "+countWord(s))
		}
	}
	return strings.Join(list, ", ")
}

// countWord is the state of commands after their number.
func countWord(state string) string {
	switch state {
	case "sent":
		return "waiting for replies"
	case "silent":
		return "without a reply"
	case "dead":
		return "failed for good"
	}
	return strings.ToLower(commandWord(state))
}

// part is one part of a bar that shows how commands are divided, in thousandths of its length.
type part struct {
	State    string
	X, Width int
}

// parts divides a bar among the states of commands.
func (v Request) parts() []part {
	if v.single() && v.first().refused() > 0 {
		return []part{{"dead", 0, 1000}}
	}
	var list []part
	whole, before := v.total(), 0
	for _, s := range []string{"done", "silent", "sent", "in_flight", "pending", "expired", "discarded", "dead"} {
		if n := v.Counts[s]; n > 0 {
			from, to := 1000*before/whole, 1000*(before+n)/whole
			list = append(list, part{s, from, to - from})
			before += n
		}
	}
	return list
}
