package templates

import (
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/view"
)

// Section is the entry of the main navigation that a page belongs to.
type Section string

// The sections that exist.
const (
	SectionOverview   Section = "overview"
	SectionTasks      Section = "tasks"
	SectionTypes      Section = "types"
	SectionWorkflows  Section = "workflows"
	SectionSchedules  Section = "schedules"
	SectionFailures   Section = "failures"
	SectionDuplicates Section = "duplicates"
	SectionWorkers    Section = "workers"
	SectionQueues     Section = "queues"
	SectionOutbox     Section = "outbox"
	SectionAlerts     Section = "alerts"
	SectionSettings   Section = "settings"
)

// How times can be shown.
const (
	TimeLocal    = "local"    // in the zone of the browser
	TimeRelative = "relative" // as ages
	TimeUTC      = "utc"
)

// timeChoices are what a visitor chooses among.
func timeChoices() []Param {
	return []Param{{"", "Ages in lists, elsewhere UTC"}, {TimeLocal, "Local time"}, {TimeRelative, "Ages"}, {TimeUTC, "UTC"}}
}

// Layout is what surrounds the content of every page.
type Layout struct {
	URLs
	Title        string  // of the page, without the name of the product
	Section      Section // empty for pages outside all sections
	Topic        string  // live topic; empty if the page does not change by itself
	Page         string  // name of this rendering, by which a socket asks for what has changed since; may be empty
	Bare         bool    // for those who are not signed in: without links into the dashboard and what is known of the cluster
	Theme        string  // light or dark as chosen by the visitor, empty to follow the system
	Compact      bool    // the visitor chose lower rows
	Time         string  // how the visitor chose to see times, empty for ages in lists and else UTC
	Demo         bool    // the cluster is simulated
	TourDone     bool    // the visitor has closed the tour of the demo
	Span         string  // since=…&until=… of the span of time that the page shows, empty for none
	Path         string  // address of the page, to come back to after changing the theme
	User         User
	Clusters     []Link // this page of each cluster that the user may see, where there are several
	Overall      bool   // for a page of several clusters: without links into one, and what is known of it
	Version      string
	Health       view.Health
	HistoryError string // why the history cannot be written or read, empty if it can
	Outbox       OutboxAlert
	Trace        *Trace // what is shown in place of a cluster that changes, nil for that
	Past         *Past  // the instant that the page shows, nil for now
	LookBack     string // address of the page as it is at this moment, empty if there is none
	Alerts       AlertBell
	AppOutboxes  []AppOutboxAlert // relays of applications that have stopped; nil if no outbox is watched
}

// OutboxAlert is what keeps commands from being sent, zero if nothing does.
type OutboxAlert struct {
	Relay   relay.Status
	Pending int // commands that wait
	Dead    int // dead letters
}

// missed says what may be missing here, empty if nothing is known to be.
func missed(l view.Loss) string {
	var parts []string
	if l.Outages > 0 {
		text := "disconnected " + plural(l.Outages, "time", "times") + ", " + duration(l.OutageTime.Seconds()) + " in all"
		if l.MissedTasks > 0 {
			text += ", and at most " + plural(l.MissedTasks, "task", "tasks") + " missed"
		}
		parts = append(parts, text)
	}
	if l.Dropped > 0 {
		parts = append(parts, plural(l.Dropped, "message", "messages")+" dropped for lack of capacity")
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

// spanned is the address of a page that can show the span of time of this one.
func (l Layout) spanned(path string) string {
	address := string(l.path(path))
	if l.Span != "" {
		address += "?" + l.Span
	}
	return address
}

// entries lead to the main pages. What people on call look at comes first: on a phone, five fit.
func (l Layout) entries() []entry {
	list := []entry{
		{SectionOverview, "layout-dashboard", "Overview", l.spanned("/")},
		{SectionTasks, "list-checks", "Tasks", l.spanned("/tasks")},
		{SectionFailures, "bug", "Failures", l.spanned("/failures")},
		{SectionWorkers, "server", "Workers", string(l.path("/workers"))},
	}
	if l.HasCommands {
		list = append(list, entry{SectionQueues, "layers", "Queues", l.spanned("/queues")})
	}
	list = append(list,
		entry{SectionTypes, "timer", "Task types", l.spanned(TypesPath)},
		entry{SectionWorkflows, "workflow", "Workflows", string(l.path(WorkflowsPath))},
		entry{SectionSchedules, "clock", "Schedules", string(l.path(SchedulesPath))})
	if !l.HidesPayload {
		list = append(list, entry{SectionDuplicates, "files", "Duplicates", string(l.path("/duplicates"))})
	}
	if l.HasCommands {
		list = append(list, entry{SectionOutbox, "send", "Outbox", string(l.path("/outbox"))})
	}
	if l.HasAlerts {
		list = append(list, entry{SectionAlerts, "bell", "Alerts", string(l.path("/alerts"))})
	}
	if l.Trace != nil {
		return list
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

// attempts says how many connection attempts have failed in a row.
func attempts(failed int) string {
	if failed == 0 {
		return ""
	}
	return ", after " + plural(failed, "failed attempt", "failed attempts")
}

// searchHint says what the search of tasks finds.
func (l Layout) searchHint() string {
	if l.HidesPayload {
		return "Search tasks: id, name"
	}
	return "Search tasks: id, name, arguments, result"
}

// tabTitle tells tabs of several dashboards apart.
func (l Layout) tabTitle() string {
	if l.Bare {
		return l.Title
	}
	parts := []string{l.Title, l.Cluster, l.URLs.Title}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " · ")
}

// unseen says why what a task carries is not shown: why, unless it is hidden.
func (u URLs) unseen(why string) string {
	if u.HidesPayload {
		return "You may not see it"
	}
	return why
}
