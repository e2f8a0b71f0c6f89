package templates

import (
	"cmp"
	"strings"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/internal/about"
	"github.com/umbelhq/umbel/monitor/flow"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
)

// AboutPath is the address of the page about the program, below the prefix.
const AboutPath = "/about"

// docsURL is where the documentation is read.
const docsURL = "https://github.com/umbelhq/umbel/blob/main/"

// About is the content of the page about the program.
type About struct {
	Version string
	Build   about.Build
	Health  view.Health
	Stored  history.Health
	Flow    flow.Verdict // whether work flows; its zero value where that is not asked
	IsTrace bool         // what is shown does not change
}

// Page draws the whole page.
func (v About) Page(l Layout) templ.Component { return aboutPage(l, v) }

// commit is the commit that the program was built from, in short.
func (v About) commit() string {
	c := v.Build.Commit[:min(len(v.Build.Commit), 12)]
	if c != "" && v.Build.Modified {
		c += ", with changes"
	}
	return c
}

// condition is how a part of the program is doing.
type condition struct {
	What  string
	Well  bool
	Words string
}

// conditions say how the program is doing.
func (v About) conditions() []condition {
	return []condition{v.brokerCondition(), v.historyCondition(), v.eventsCondition(), v.lagCondition()}
}

func (v About) brokerCondition() condition {
	b := v.Health.Broker
	if b.Connected {
		return condition{"Broker", true, "Connected to " + b.URL + "."}
	}
	words := "Not connected to " + b.URL + "; Umbel keeps trying."
	if b.LastError != "" {
		words += " " + b.LastError
	}
	return condition{"Broker", false, words}
}

func (v About) historyCondition() condition {
	where := "in " + v.Stored.Location
	if v.Stored.Location == ":memory:" {
		where = "in memory, until Umbel stops"
	}
	why := cmp.Or(v.Health.Store.LastError, v.Stored.LastError)
	switch {
	case !v.Health.Ready:
		return condition{"History", false, "It is being restored; events are received once this is done."}
	case why != "":
		return condition{"History", false, "It cannot be written: " + why}
	case len(v.Health.Notices) > 0:
		return condition{"History", false, "It is incomplete: " + strings.Join(v.Health.Notices, " ")}
	}
	words := "Kept " + where + "."
	if v.Health.Restoring {
		words += " Older tasks are being loaded into memory."
	}
	return condition{"History", true, words}
}

func (v About) eventsCondition() condition {
	h := v.Health
	words := "No event has been received since Umbel started."
	if h.Events > 0 {
		words = plural(h.Events, "event", "events") + " received since Umbel started."
	}
	rejected := rejections(h.Rejected)
	if len(rejected) > 0 {
		title, rest := rejectedWords(rejected)
		words += " " + title + " " + rest
	}
	if text := missed(h.Broker.Loss); text != "" {
		words += " Some may be missing: " + text + "."
	}
	return condition{"Events", h.Events > 0 && len(rejected) == 0, words}
}

func (v About) lagCondition() condition {
	switch m := v.Health.Watermark; {
	case m.Behind:
		return condition{"Lag", false, "Complete to " + sentenceTime(utc(m.Micros)) + ". " + watermarkTitle(v.Health) + "."}
	case m.Micros == 0:
		return condition{"Lag", true, "Not known: it is read off the heartbeats of workers, and none are heard."}
	default:
		return condition{"Lag", true, "Complete to " + wholeSeconds(m.Within) + " ago. " + watermarkTitle(v.Health) + "."}
	}
}

// doc is a part of the documentation.
type doc struct{ Title, Words, Href string }

func docs() []doc {
	return []doc{
		{"Tour", "the pages, one after another", docsURL + "docs/guides/tour.md"},
		{"Query language", "what the search field understands", docsURL + "docs/query.md"},
		{"Connect", "brokers, and settings of Celery", docsURL + "docs/guides/connect.md"},
		{"Operations", "options, history, upgrades", docsURL + "docs/guides/operations.md"},
		{"Access", "users, roles, tokens", docsURL + "docs/guides/access.md"},
		{"API", "the same as JSON", docsURL + "docs/api.md"},
		{"Changes", "what each version brings", docsURL + "CHANGELOG.md"},
	}
}
