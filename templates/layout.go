package templates

import "strings"

// Section is the entry of the main navigation that a page belongs to.
type Section string

// The sections that exist.
const (
	SectionOverview Section = "overview"
	SectionTasks    Section = "tasks"
	SectionFailures Section = "failures"
	SectionWorkers  Section = "workers"
	SectionQueues   Section = "queues"
	SectionOutbox   Section = "outbox"
	SectionSettings Section = "settings"
)

// Layout is what surrounds the content of every page.
type Layout struct {
	URLs
	Title        string  // of the page, without the name of the product
	Section      Section // empty for pages outside all sections
	Topic        string  // live topic; empty if the page does not change by itself
	Page         string  // name of this rendering, by which a socket asks for what has changed since; may be empty
	Theme        string  // light or dark as chosen by the visitor, empty to follow the system
	Path         string  // address of the page, to come back to after changing the theme
	Version      string
	Broker       Broker
	HistoryAlert HistoryAlert
	OutboxAlert  OutboxAlert
}

// OutboxAlert is what keeps commands from being sent, zero if nothing does.
type OutboxAlert struct {
	Open    bool   // broker unavailable: nothing is sent until Until
	Until   int64  // µs since 1970, 0 if unknown
	Error   string // why it is away
	Pending int    // commands that wait
	Dead    int    // commands that were failed for good
}

// HistoryAlert is what is wrong with the history, zero if nothing is. Times are µs since 1970, 0 if unknown.
type HistoryAlert struct {
	Error     string // what keeps it from being written, empty if nothing does
	Since     int64
	NextTryAt int64
	Waiting   int  // events that are not on disk yet
	Full      bool // so many that no more are received

	Notices []string // what was found wrong when it was opened, and what to do
}

// Broker is the state of the connection that events come from. Times are µs since 1970, 0 if
// unknown.
type Broker struct {
	URL         string // password masked
	Connected   bool
	Since       int64
	LastEventAt int64
	LastError   string
	NextTryAt   int64
	Attempts    int
	Restoring   bool // history is being read first

	Forgets     bool    // the broker keeps no events while nobody listens
	Gaps        int     // times that nobody did
	GapSeconds  float64 // how long those were, in all
	LastGapAt   int64   // when the newest began
	UnseenTasks int64   // at most so many began meanwhile
	Dropped     uint64  // messages that came too fast
}

// missed says what may be missing here, empty if nothing is known to be.
func (b Broker) missed() string {
	var parts []string
	if b.Gaps > 0 {
		text := "disconnected " + plural(b.Gaps, "time", "times") + ", " + duration(b.GapSeconds) + " in all"
		if b.UnseenTasks > 0 {
			text += ", and at most " + plural(b.UnseenTasks, "task", "tasks") + " missed"
		}
		parts = append(parts, text)
	}
	if b.Dropped > 0 {
		parts = append(parts, plural(b.Dropped, "message", "messages")+" dropped for lack of capacity")
	}
	return strings.Join(parts, "; ")
}

// entry is a link of the main navigation.
type entry struct {
	Section Section
	Icon    string
	Label   string
	Href    string
}

func (l Layout) entries() []entry {
	list := []entry{
		{SectionOverview, "layout-dashboard", "Overview", string(l.path("/"))},
		{SectionTasks, "list-checks", "Tasks", string(l.path("/tasks"))},
		{SectionFailures, "bug", "Failures", string(l.path("/failures"))},
		{SectionWorkers, "server", "Workers", string(l.path("/workers"))},
	}
	if l.HasCommands {
		list = append(list,
			entry{SectionQueues, "layers", "Queues", string(l.path("/queues"))},
			entry{SectionOutbox, "send", "Outbox", string(l.path("/outbox"))})
	}
	return append(list, entry{SectionSettings, "settings", "Settings", string(l.path("/settings"))})
}

// choice is one of the themes.
type choice struct{ Value, Icon, Label string }

func themes() []choice {
	return []choice{
		{"light", "sun", "Light theme"},
		{"system", "monitor", "System theme"},
		{"dark", "moon", "Dark theme"},
	}
}

func (l Layout) chosen(theme string) bool {
	return theme == l.Theme || theme == "system" && l.Theme == ""
}

// attempts tells how often in a row the broker was not reached.
func attempts(failed int) string {
	if failed == 0 {
		return ""
	}
	return ", after " + plural(failed, "failed attempt", "failed attempts")
}
