package templates

import (
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/peers"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/monitor/view"
)

// Settings is the content of the page that says how Umbel runs. Times are µs since 1970, 0 if unknown.
type Settings struct {
	Receivers []AlertReceiver // of alerts
	Version   string
	Health    view.Health
	Peers     *peers.Status // nil if this Umbel asks workers nothing
	Location  string        // of the history, :memory: if it ends with the process
	Size      int64         // bytes on disk
	Error     string        // why the history cannot be written or read, empty if it can
	Unsaved   int           // tasks that changed since they were saved
	Backlog   int           // tasks whose text is not indexed yet
	Plan      *Plan
	Redact    Redaction
	MaxTasks  int   // in memory
	MaxText   int64 // bytes in memory
}

// Redaction is what is taken out of what Umbel reads.
type Redaction struct {
	Rules  []redact.RuleStatus
	Forms  bool   // secrets known by their form are redacted
	ByForm uint64 // texts in which there were some
	// Recent are keys in recent tasks whose values are hidden, by rule or still visible in those received before.
	Recent []string
	Tried  bool   // a text was tried
	Text   string // that was tried
	Result string // without its secrets
}

// Plan is what retention would remove now.
type Plan struct {
	Tasks  int           // kept now
	Oldest int64         // when the first of the finished ones ended
	Today  int64         // what ages are measured against, 0 if that is the wall clock
	Used   int64         // bytes in use
	Active history.Count // tasks that no rule removes
	// ActiveBytes is about how much those take, 0 if all fits. Oversized says that it is more than all history may have.
	ActiveBytes int64
	Oversized   bool
	Rules       []Rule
	Bytes       int64 // about how much would become free
}

// active says how many tasks no rule removes.
func (p *Plan) active() string {
	text := number(p.Active.N)
	if !p.Active.Exact {
		text = "more than " + text
	}
	if p.ActiveBytes > 0 {
		text += ", about " + binarySize(p.ActiveBytes)
	}
	return text
}

// Rule is a rule of retention with what it would remove now.
type Rule struct {
	What          string
	Keep          string // for how long, or how much
	Flag          string // which sets it
	Removes       history.Count
	Estimate      bool // Gone is an estimate
	RemovesEvents bool // it removes events, not tasks
}

// Page draws the whole page.
func (v Settings) Page(l Layout) templ.Component { return settings(l, v) }

// inMemory reports whether history ends with the process.
func (v Settings) inMemory() bool { return v.Location == ":memory:" }

// inPostgreSQL reports whether history is in a database of a server.
func (v Settings) inPostgreSQL() bool { return strings.HasPrefix(v.Location, "postgres://") }

// unwrittenWords say what happens while the history cannot be written.
func unwrittenWords(s view.StoreHealth) string {
	switch {
	case s.Backpressure:
		return plural(s.PendingEvents, "event is waiting", "events are waiting") + " to be written. Umbel receives no more until the history can be written."
	case s.PendingEvents > 0:
		return plural(s.PendingEvents, "event is waiting", "events are waiting") + " to be written and not acknowledged; nothing is lost."
	default:
		return "Nothing is waiting to be written."
	}
}

// gone says what a rule would remove.
func (r Rule) gone() string {
	if r.Removes.N == 0 {
		return "nothing"
	}
	n := number(r.Removes.N)
	switch {
	case r.Estimate:
		n = "about " + n
	case !r.Removes.Exact:
		n = "more than " + n
	}
	what := " tasks"
	if r.Removes.N == 1 && r.Removes.Exact {
		what = " task"
	}
	if r.RemovesEvents {
		what = " to check"
	}
	return n + what
}

// RetentionAge shows for how long a rule keeps things.
func RetentionAge(d time.Duration) string {
	if d == 0 {
		return "forever"
	}
	return duration(d.Seconds())
}

// SizeLimit shows how much a rule keeps.
func SizeLimit(n int64) string {
	if n == 0 {
		return "any size"
	}
	return "up to " + binarySize(n)
}

// binarySize shows bytes in the units that flags take: 512 MiB, 2 GiB.
func binarySize(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes {
			f := strconv.FormatFloat(float64(n)/float64(unit.bytes), 'f', 1, 64)
			return strings.TrimSuffix(f, ".0") + thin + unit.name
		}
	}
	return strconv.FormatInt(n, 10) + thin + "B"
}

// partOf says what this Umbel does.
func partOf(s *peers.Status) string {
	switch s.State {
	case peers.Leads, peers.Off:
		return "asks the workers"
	case peers.Fallback:
		return "asks the workers, as others may"
	case peers.Joining:
		return "joining"
	case peers.Follows:
		return "waits its turn"
	}
	return string(s.State)
}

// peerPart says what another Umbel does.
func peerPart(p peers.Peer) string {
	switch {
	case p.Silent:
		return "silent"
	case p.Leads:
		return "asks the workers"
	}
	return "waits its turn"
}
