package templates

import (
	"cmp"
	"slices"
	"strings"

	"github.com/a-h/templ"
)

// Order is the content of the page of one order: all that one request has asked for.
type Order struct {
	ID            int64
	Counts        map[string]int // its commands by state
	Commands      []Command      // a page of them
	Newest, Older string
}

// Page draws the whole page.
func (v Order) Page(c Chrome) templ.Component { return orderPage(c, v) }

// Regions are what is known of the order as a whole.
func (v Order) Regions(s Site) []Region {
	return []Region{
		{ID: "order-head", Body: orderHead(s, v)},
		{ID: "order-facts", Body: orderFacts(s, v)},
		{ID: "pager", Body: listPager(s, v.Newest, v.Older)},
	}
}

// Lists holds the commands.
func (v Order) Lists(s Site) []List { return []List{commandList(s, v.Commands, false, false)} }

// first is the command that stands for the order.
func (v Order) first() Command {
	if len(v.Commands) == 0 {
		return Command{}
	}
	return slices.MinFunc(v.Commands, func(a, b Command) int { return cmp.Compare(a.ID, b.ID) })
}

func (v Order) total() int {
	n := 0
	for _, count := range v.Counts {
		n += count
	}
	return n
}

func (v Order) single() bool { return v.total() == 1 }

// class names the table of commands for the style sheet. What is said above need not be said in it.
func (v Order) class() string {
	if v.single() {
		return "commands of-order single"
	}
	return "commands of-order"
}

// title is what was asked for.
func (v Order) title() string {
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
func (v Order) open() int { return v.Counts["pending"] + v.Counts["in_flight"] + v.Counts["sent"] }

// progress tells how far the order has come.
func (v Order) progress() string {
	if v.single() {
		return v.first().told()
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
		return "waiting for answers"
	case "silent":
		return "without an answer"
	case "dead":
		return "given up"
	}
	return strings.ToLower(commandWord(state))
}

// part is one part of a bar that shows how commands are divided, in thousandths of its length.
type part struct {
	State    string
	X, Width int
}

// parts divides a bar among the states of commands.
func (v Order) parts() []part {
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
