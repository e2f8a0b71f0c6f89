// Package flow concludes from what is known of a cluster whether work flows, with its reasons. Judge is a pure function;
// Reader reads what it judges.
package flow

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Level says how well work flows.
type Level string

// The levels. Unknown is no grade: it says that nothing can be concluded.
const (
	Flowing  Level = "flowing"
	Degraded Level = "degraded"
	Stuck    Level = "stuck"
	Unknown  Level = "unknown"
)

// Kind is what a reason is about.
type Kind string

// The kinds.
const (
	Listening Kind = "listening" // whether Umbel hears the cluster
	Lag       Kind = "lag"       // how far Umbel is behind
	Workers   Kind = "workers"
	Deaf      Kind = "deaf" // messages wait, and no consumer takes them
	Backlog   Kind = "backlog"
	Waiting   Kind = "waiting" // first attempts that have not started
	Relay     Kind = "relay"   // of an application's outbox
	Failing   Kind = "failing"
)

// Limits of what counts as usual.
const (
	listenFirst   = 30 * time.Second // before anything is concluded
	lagLeast      = 30 * time.Second // below which it is no more than a late heartbeat
	lagLimit      = time.Minute      // beyond which what is known is too old
	waitLimit     = 5 * time.Minute  // of first attempts, unless they usually wait longer
	waitFactor    = 2                // of the usual wait
	growthLimit   = 20               // messages by which a queue grows before that counts
	growthShare   = 0.1              // likewise, of what waited before
	minEnded      = 20               // tasks without which a share says nothing
	minFailed     = 5
	usualEnded    = 100  // tasks without which nothing is usual
	leastUnusual  = 0.02 // by which a share is above the usual one: as much as that, within these bounds
	mostUnusual   = 0.1
	deviations    = 3   // standard ones by which it is above, too
	alwaysTooMany = 0.5 // share of failures where none is usual
)

// Observation is what is known of a cluster at one moment. Nil is unknown.
type Observation struct {
	Connected     bool
	Heard         bool          // anything at all: a task, or a worker
	For           time.Duration // how long the connection has been up, or down
	Behind        time.Duration // what Umbel knows is so much older than it should be
	BehindWorker  string        // of which this is so
	Unreadable    bool          // the history cannot be read, so that what follows Queues is not known
	Backpressure  bool          // Umbel receives nothing until its history is written
	WorkersOnline int
	Stopped       []Outbox // of which the relay has stopped
	Unwatched     bool     // nobody reads the queues
	Queues        []Queue  // nil if they cannot be read
	Waiting       *Wait
	Recent        Ends // of the last ten minutes
	Usual         Ends // of the day before
	UsualWait     time.Duration
}

// Queue is a queue of tasks.
type Queue struct {
	Name      string
	Ready     int64
	Consumers *int64 // workers or consumers that take from it
	// Taken says whether messages were taken in the last minute; nil unless something waited all that time.
	Taken *bool
	Busy  bool // some worker that consumes from it is running tasks, or none of them is known
	// Before is the number of messages five minutes ago.
	Before  *int64
	In, Out *float64 // messages a second over the last minute
}

// Outbox is an application's, whose tasks wait to be sent.
type Outbox struct {
	Name    string
	Tasks   int64
	AtLeast bool          // there may be more
	For     time.Duration // none has been taken for
}

// Wait is the first attempts that could start and have not.
type Wait struct {
	Tasks   int64
	AtLeast bool // there may be more
	Oldest  time.Duration
	Query   string // that finds them
}

// Ends counts tasks that have ended.
type Ends struct{ Succeeded, Failed int64 }

// Share is the share of tasks that have failed, nil if none has ended.
func (e *Ends) Share() *float64 {
	if e == nil || e.all() == 0 {
		return nil
	}
	return new(e.share())
}

func (e *Ends) all() int64 { return e.Succeeded + e.Failed }

func (e *Ends) share() float64 { return float64(e.Failed) / float64(max(1, e.all())) }

// Verdict is what was concluded.
type Verdict struct {
	Level   Level
	Reasons []Reason // the gravest first, never empty
	Recent  *Ends    // tasks of the last ten minutes; nil if they cannot be read
}

// Reason is one finding, with its own level.
type Reason struct {
	Kind  Kind
	Level Level
	Text  string // a sentence
	Path  string // of the page that shows exactly what it counts, below the prefix
}

// Sentence is the verdict in one sentence.
func (v Verdict) Sentence() string {
	switch v.Level {
	case Flowing:
		return "Work is flowing."
	case Degraded:
		return "Work is flowing, but not as usual."
	case Stuck:
		return "Work is stuck."
	case Unknown:
	}
	return "It is not known whether work is flowing."
}

// rank orders levels from the best. Where something is unknown, what else is known may be wrong.
func (l Level) rank() int { return slices.Index([]Level{Flowing, Degraded, Stuck, Unknown}, l) }

// Judge concludes. The level is that of the gravest reason, and Unknown if one is. An observation that is worse in one
// respect and equal in all others never has a better level.
func Judge(o Observation) Verdict {
	v := Verdict{Reasons: slices.Concat(o.umbel(), o.workers(), o.queues(), o.relays(), o.waiting(), o.failing())}
	slices.SortStableFunc(v.Reasons, func(a, b Reason) int { return cmp.Compare(b.Level.rank(), a.Level.rank()) })
	v.Level = v.Reasons[0].Level
	return v
}

// umbel says whether Umbel knows what happens now.
func (o Observation) umbel() []Reason {
	unknown := func(kind Kind, format string, args ...any) []Reason {
		return []Reason{{kind, Unknown, fmt.Sprintf(format, args...), "/settings"}}
	}
	switch {
	case !o.Connected:
		return unknown(Listening, "Umbel has had no connection to the broker for %s.", words(o.For))
	case !o.Heard:
		return unknown(Listening, "No worker and no task has been heard of.")
	case o.For < listenFirst:
		return unknown(Listening, "Umbel has been listening for %s, and needs %s.", words(o.For), words(listenFirst))
	case o.Backpressure:
		return unknown(Lag, "Umbel receives nothing until its history can be written.")
	case o.Unreadable:
		return unknown(Lag, "The history cannot be read.")
	case o.Behind >= lagLimit:
		return unknown(Lag, "What Umbel knows of %s is %s old.", o.BehindWorker, words(o.Behind))
	case o.Behind >= lagLeast:
		return []Reason{{Lag, Degraded, fmt.Sprintf("What Umbel knows of %s is %s old.", o.BehindWorker, words(o.Behind)), "/workers"}}
	}
	return nil
}

func (o Observation) workers() []Reason {
	r := Reason{Kind: Workers, Path: "/workers", Level: Flowing}
	switch {
	case o.WorkersOnline > 0:
		r.Text = count(int64(o.WorkersOnline), "worker is", "workers are") + " online."
	case o.Queues == nil:
		r.Level, r.Text = Stuck, "No worker is online."
	default:
		r.Text = "No worker is online, and nothing waits."
		if waits := slices.ContainsFunc(o.Queues, func(q Queue) bool { return q.Ready > 0 }); waits || o.Waiting != nil && o.Waiting.Tasks > 0 {
			r.Level, r.Text = Stuck, "Work waits, and no worker is online."
		}
	}
	return []Reason{r}
}

// queues has a reason for each queue that does not do, and one for all others.
func (o Observation) queues() []Reason {
	if o.Unwatched {
		return nil
	}
	if o.Queues == nil {
		return []Reason{{Backlog, Flowing, "The queues cannot be read: what waits in them is not judged.", "/queues"}}
	}
	var list []Reason
	var waiting int64
	var drains float64 // messages a second
	for _, q := range o.Queues {
		if r, found := q.judge(); found {
			list = append(list, r)
		} else if waiting += q.Ready; q.Ready > 0 && q.In != nil && q.Out != nil {
			drains += *q.Out - *q.In
		}
	}
	slices.SortFunc(list, func(a, b Reason) int { return cmp.Compare(a.Path, b.Path) })
	const most = 5 // of those in the sentence
	slices.SortStableFunc(list, func(a, b Reason) int { return cmp.Compare(b.Level.rank(), a.Level.rank()) })
	if n := len(list) - most; n > 0 {
		list = append(list[:most], Reason{Backlog, list[most].Level, count(int64(n), "more queue is", "more queues are") + " like that.", "/queues"})
	}
	if len(list) > 0 {
		return list
	}
	text := "Nothing waits in any queue."
	if waiting > 0 {
		text = count(waiting, "message waits", "messages wait") + " in queues"
		if left := time.Duration(float64(waiting) / drains * float64(time.Second)); drains > 0 && left > 0 && left < 48*time.Hour {
			text += ", which drain within " + words(left+time.Second)
		}
		text += "."
	}
	return []Reason{{Backlog, Flowing, text, "/queues"}}
}

// judge says what is wrong with a queue.
func (q Queue) judge() (Reason, bool) {
	r := Reason{Kind: Deaf, Level: Stuck, Path: "/queues/" + url.PathEscape(q.Name)}
	waits := count(q.Ready, "message waits in ", "messages wait in ") + q.Name
	switch {
	case q.Ready == 0:
		return r, false
	case q.Consumers != nil && *q.Consumers == 0:
		r.Text = waits + ", and nobody consumes from it."
	case q.Taken != nil && !*q.Taken && !q.Busy:
		r.Text = waits + ", and its consumers, which run nothing, took none for a minute."
	case q.Taken != nil && !*q.Taken:
		r.Level, r.Text = Degraded, waits+", and its consumers, which are busy, took none for a minute."
	case q.grows():
		r.Kind, r.Level = Backlog, Degraded
		r.Text = fmt.Sprintf("%s grows: %s, %s five minutes ago.", q.Name, count(q.Ready, "message waits", "messages wait"), number(*q.Before))
	default:
		return r, false
	}
	return r, true
}

// grows reports whether a queue has grown for five minutes and still does.
func (q Queue) grows() bool {
	if q.Before == nil || q.In == nil || q.Out == nil || *q.In <= *q.Out {
		return false
	}
	return float64(q.Ready-*q.Before) > max(growthLimit, growthShare*float64(*q.Before))
}

// relays says which applications' tasks are not sent.
func (o Observation) relays() []Reason {
	var list []Reason
	for _, x := range o.Stopped {
		waits := count(x.Tasks, "task waits", "tasks wait")
		if x.AtLeast {
			waits = "at least " + waits
		}
		list = append(list, Reason{
			Relay, Degraded, fmt.Sprintf("The relay of the outbox %s has stopped: %s to be sent, and none was taken for %s.", x.Name, waits, words(x.For)),
			"/outbox/app?" + url.Values{"outbox": {x.Name}}.Encode(),
		})
	}
	return list
}

// waiting judges the first attempt that has waited longest.
func (o Observation) waiting() []Reason {
	if o.Waiting == nil || o.Waiting.Tasks == 0 {
		return nil
	}
	w, limit := *o.Waiting, max(waitLimit, waitFactor*o.UsualWait)
	r := Reason{Kind: Waiting, Level: Flowing, Path: "/tasks?" + url.Values{"q": {w.Query}}.Encode()}
	least := ""
	if w.AtLeast {
		least = "At least "
	}
	r.Text = fmt.Sprintf("%s%s, the oldest for %s.", least, count(w.Tasks, "task waits to start", "tasks wait to start"), words(w.Oldest))
	if w.Oldest > limit {
		r.Level = Degraded
		r.Text = strings.TrimSuffix(r.Text, ".") + fmt.Sprintf("; up to %s is usual.", words(limit))
	}
	return []Reason{r}
}

// failing compares the share of failures with the usual one.
func (o Observation) failing() []Reason {
	r := Reason{Kind: Failing, Level: Flowing, Path: "/tasks?" + url.Values{"q": {"finished:-10m.. state:failure"}}.Encode()}
	n := o.Recent.all()
	if n == 0 {
		return nil
	}
	share := o.Recent.share()
	r.Text = percent(share) + " of the tasks that ended in the last 10 minutes failed"
	if o.Usual.all() < usualEnded {
		r.Text += "."
		if o.Recent.Failed >= minFailed && n >= minEnded && share > alwaysTooMany {
			r.Level = Degraded
		}
	} else {
		usual := o.Usual.share()
		r.Text += fmt.Sprintf("; %s is usual.", percent(usual))
		deviation := math.Sqrt(max(usual, 1/float64(o.Usual.all())) * (1 - usual) / float64(n))
		if o.Recent.Failed >= minFailed && n >= minEnded && share > usual+deviations*deviation &&
			share > usual+max(leastUnusual, min(usual, mostUnusual)) {
			r.Level = Degraded
		}
	}
	if o.Recent.Succeeded == 0 && n >= minEnded && r.Level == Degraded {
		r.Level = Stuck
	}
	return []Reason{r}
}

// percent writes a share with as many digits as say something.
func percent(share float64) string {
	switch p := 100 * share; {
	case p > 0 && p < 0.1:
		return "less than 0.1 %"
	case p < 10 && p != math.Trunc(p):
		return fmt.Sprintf("%.1f %%", p)
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}

// number separates thousands by commas.
func number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// words writes a duration in its greatest unit, rounded down.
func words(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", max(0, d)/time.Second)
}
