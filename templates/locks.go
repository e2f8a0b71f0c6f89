package templates

import (
	"net/url"
	"strconv"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/locks"
)

// Locks is the content of the page that lists locks.
type Locks struct {
	Off    bool        // there is no Redis to read locks from
	Locks  []LockRow   // that are shown
	Total  int         // of all locks
	Found  int         // of those that the filters match
	Find   string      // words that are looked for
	Filter LockChoices // by mark and kind
	Read   locks.Snapshot
}

// LockRow is a lock in the list.
type LockRow = locks.Lock

// LockChoices are the filters of the list of locks.
type LockChoices struct {
	Chosen string // what is chosen, empty for all
	List   []LockChoice
	Hidden []Param // of the form that finds locks
}

// LockChoice is a filter.
type LockChoice struct {
	Value, Label, Href string
	Count              int
}

// Page draws the whole page.
func (v Locks) Page(l Layout) templ.Component { return locksPage(l, v) }

func lockRowID(l locks.Lock) string {
	if !l.Gone.IsZero() {
		return "gone-" + l.Key
	}
	return "lock-" + l.Key
}

// summary sums up the locks.
func (v Locks) summary() string {
	if v.Off || v.Read.At.IsZero() {
		return ""
	}
	words := plural(v.Total, "lock", "locks")
	if v.Read.More {
		words = "more than " + words + "; the others are not shown"
	}
	if v.Found < v.Total {
		words = number(v.Found) + " of " + words
	}
	if n := len(v.Locks); n < v.Found {
		words += ", the first " + number(n) + " shown"
	}
	if v.Read.Scanning {
		words += ", still looking for more"
	}
	return words
}

// LockMarkLabel is a mark in two words.
func LockMarkLabel(k locks.MarkKind) string {
	switch k {
	case locks.SecondRun:
		return "Second run"
	case locks.Expired:
		return "Gone too early"
	case locks.Stuck:
		return "Stuck"
	case locks.TooShort:
		return "TTL too short"
	}
	return string(k)
}

// LockKindLabel names what wrote a lock.
func LockKindLabel(k locks.Kind) string {
	switch k {
	case locks.Idempotent:
		return "Idempotent task"
	case locks.OtherKind:
		return "Other"
	case locks.Once, locks.Singleton:
	}
	return string(k)
}

// lockState is the word, the icon and the colour of a lock.
func lockState(l locks.Lock) (word, icon, class string) {
	switch {
	case !l.Gone.IsZero():
		return "gone", "unplug", "failure"
	case l.Has(locks.Stuck):
		return "stuck", "anchor", "failure"
	case l.State == locks.Processing:
		return "processing", "play", "started"
	case l.State == locks.Completed:
		return "completed", "circle-check", "success"
	case l.State == locks.Held:
		return "held", "play", "started"
	}
	return "unknown", "circle-dashed", "pending"
}

// severe reports whether a mark is more than a warning.
func severe(k locks.MarkKind) bool { return k == locks.Stuck || k == locks.SecondRun }

// lockTitle names the call of a lock: its task, or else its key.
func lockTitle(l locks.Lock) string {
	if l.Name != "" {
		return l.Name
	}
	return l.Key
}

// holderWords says how a task holds a lock.
func holderWords(h *locks.Holder) string {
	words := map[locks.HolderStatus]string{
		locks.Running: "running", locks.Waiting: "not started yet", locks.Ended: "ended", locks.Lost: "lost", locks.UnknownHolder: "no events retained",
	}[h.Status]
	if h.Status == locks.Ended && h.State != "" {
		words += " with " + string(h.State)
	}
	if h.Worker != "" && h.Status != locks.Waiting {
		words += " on " + h.Worker
	}
	return words
}

// releasable reports whether the page offers to release a lock.
func releasable(l locks.Lock) bool { return l.Gone.IsZero() && (l.Problem == "" || l.Value != "") }

func (u URLs) release(l locks.Lock) templ.SafeURL {
	return u.path("/act/release?" + url.Values{"key": {l.Key}}.Encode())
}

// ofCall links to the tasks of a name, the newest first.
func (u URLs) named(name string) templ.SafeURL { return u.tasksWhere("q", "name:"+strconv.Quote(name)) }

// shortPrint is the head of a fingerprint.
func shortPrint(s string) string {
	return s[:min(len(s), 12)]
}

// keyShown is a key or, beside the name of its task, the head of the fingerprint.
func keyShown(l locks.Lock) string {
	if l.Fingerprint != "" && l.Name != "" {
		return shortPrint(l.Fingerprint) + "…"
	}
	return l.Key
}

// LockDetails are what a release says of its lock.
func LockDetails(l locks.Lock) []Param {
	list := []Param{{Name: "Value", Value: excerpt(l.Value, 100)}}
	if h := l.Holder; h != nil {
		list = append(list, Param{Name: "Held by", Value: h.TaskID + ", " + holderWords(h)})
	}
	if l.Persistent {
		list = append(list, Param{Name: "Expires", Value: "never"})
	}
	return list
}
