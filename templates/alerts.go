package templates

import (
	"strconv"
	"time"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/alert/evaluate"
)

// Alerts is the content of the page of alerts.
type Alerts struct {
	Error       string // why rules could not be judged last, empty if they could
	Elsewhere   bool   // another Umbel judges
	Firing      []AlertFiring
	Rules       []AlertRule
	Suggestions []AlertSuggestion
	Past        []AlertFiring
	Older       string // address of earlier firings, empty if there are none
	Newest      string // address of the first page, empty on it
	Receivers   int    // that are configured
}

// AlertFiring is a time during which a rule fired.
type AlertFiring struct {
	ID             int64
	Rule           string // name
	Subject        string
	Text           string
	Href           string // what it saw; empty if that is not to be seen
	Start, End     int64  // µs, End is 0 while it fires
	Muted          bool
	AcknowledgedAt int64
	AcknowledgedBy string
}

// AlertRule is a rule.
type AlertRule struct {
	ID         int64
	Name       string
	Sentence   string
	Enabled    bool
	Invalid    string // why it cannot be judged, empty if it can
	Firing     int
	MutedUntil int64 // µs, 0 if it is not muted
	MutedBy    string
	Receivers  []string
	Edit       string // address of its form
}

// AlertSuggestion is a rule that there is not.
type AlertSuggestion struct {
	Name, Why, Sentence string
	Href                string // address of its form
}

// AlertBell says on every page how many firings nobody looks after.
type AlertBell struct{ Firing int }

// Page draws the whole page.
func (v Alerts) Page(l Layout) templ.Component { return alerts(l, v) }

func alertRowID(prefix string, id int64) string { return prefix + strconv.FormatInt(id, 10) }

// took says how long a firing lasted.
func (f AlertFiring) took() string { return duration(float64(f.End-f.Start) / 1e6) }

// AlertBacktest is what a rule would have done.
type AlertBacktest struct {
	evaluate.Backtest

	URL func(e alert.Evidence) string // below the prefix
}

// maxBacktested is how many firings of a backtest are listed.
const maxBacktested = 20

// summary says how often a rule would have fired.
func (b AlertBacktest) summary() string {
	since := "in the last week"
	if b.Records == 0 {
		return "There is nothing to judge it by yet: the log of alerts begins now."
	}
	if !b.LogFrom.IsZero() {
		since = "since " + sentenceTime(b.LogFrom) + ", when the log of alerts begins"
	}
	switch n := len(b.Firings); n {
	case 0:
		return "Would not have fired " + since + "."
	case 1:
		return "Would have fired once " + since + "."
	default:
		return "Would have fired " + number(n) + " times " + since + "."
	}
}

// newest are the firings that are listed, newest first.
func (b AlertBacktest) newest() []alert.Firing {
	var list []alert.Firing
	for i := len(b.Firings) - 1; i >= 0 && len(list) < maxBacktested; i-- {
		list = append(list, b.Firings[i])
	}
	return list
}

// firingEnd says how a firing of a backtest ended.
func firingEnd(f alert.Firing) string {
	if f.End.IsZero() {
		return "still firing"
	}
	return "for " + duration(f.End.Sub(f.Start).Seconds())
}

func microsOf(t time.Time) int64 { return t.UnixMicro() }

// AlertReceiver is who can be told of alerts.
type AlertReceiver struct{ Name, Kind, Address string }

// somebodyIf is a user, in words if nobody said who.
func somebodyIf(user string) string {
	if user == "" {
		return "somebody"
	}
	return user
}
