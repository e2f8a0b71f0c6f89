package queues

import (
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

const (
	window      = 65 * time.Second // of rates: a minute, even if polls are a little late
	fullFor     = 2 * time.Minute  // for which every poll is remembered
	sparseEvery = 30 * time.Second // between the polls remembered after that
	keepFor     = time.Hour
	forgetAfter = 24 * time.Hour // for which an empty queue that nothing names is still polled

	// totalsLag is how far the totals of RabbitMQ's management API may be behind each other and the depth: two of the
	// intervals in which it gathers them.
	totalsLag = 10 * time.Second

	fromBroker = "broker"
	fromEvents = "events"
)

// track is the history of one queue.
type track struct {
	samples []sample // oldest first
	empty   time.Time
	seen    time.Time // when it was last named, or not empty
	exact   bool      // messages leave in the order in which they came, as far as known
}

// sample is one poll. Of totals only differences within an epoch are meaningful.
type sample struct {
	at      time.Time
	ready   *int64
	counted bool     // in and out are known
	in, out int64    // messages that came, and that left
	totals  [2]int64 // as reported; 0 if not
	source  string
	epoch   int // rises when totals are reset
}

// add appends a poll and drops old ones.
func (t *track) add(q broker.Queue, events Counters, counted bool, at time.Time) {
	s := sample{at: at, ready: q.Ready}
	s.count(q, events, counted)
	if n := len(t.samples); n > 0 {
		last := t.samples[n-1]
		if !at.After(last.at) {
			return // a clock that was set back, or nothing new
		}
		s.epoch = last.epoch
		if s.source != last.source || s.totals[0] < last.totals[0] || s.totals[1] < last.totals[1] {
			s.epoch++
		}
	}
	if q.Ready != nil && *q.Ready == 0 {
		t.empty = at
	}
	t.exact = !reorders(q)
	t.samples = append(t.samples, s)
	t.prune(at)
}

// count reads the totals of the broker, or else those of events. What came and what left differ by what waits, so that
// either tells the other; not to the message, since depth and totals are of slightly different moments.
func (s *sample) count(q broker.Queue, events Counters, counted bool) {
	switch {
	case q.Published != nil && q.Delivered != nil:
		s.in, s.out = *q.Published, departed(q)
	case q.Published != nil && q.Ready != nil:
		s.in, s.out = *q.Published, *q.Published-*q.Ready
	case q.Delivered != nil && q.Ready != nil:
		s.in, s.out = departed(q)+*q.Ready, departed(q)
	case counted && q.Ready != nil: // more certain than Sent, which only some clients report
		s.in, s.out = events.Received+*q.Ready, events.Received
	case counted:
		s.in, s.out = events.Sent, events.Received
	default:
		return
	}
	s.counted, s.source, s.totals = true, fromEvents, [2]int64{events.Sent, events.Received}
	if q.Published != nil || q.Delivered != nil {
		s.source, s.totals = fromBroker, [2]int64{value(q.Published), value(q.Delivered)}
	}
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// departed counts each message once, however often it was delivered.
func departed(q broker.Queue) int64 {
	if q.Redelivered == nil {
		return *q.Delivered
	}
	return *q.Delivered - *q.Redelivered
}

// reorders says whether a queue may deliver a message before one that came earlier.
func reorders(q broker.Queue) bool {
	if positive(q.MaxPriority) {
		return true
	}
	used := 0
	for _, step := range q.Steps {
		if step.Ready > 0 {
			used++
		}
	}
	return used > 1
}

// prune drops samples older than keepFor, and most of those older than fullFor.
func (t *track) prune(now time.Time) {
	kept := t.samples[:0]
	for _, s := range t.samples {
		age := now.Sub(s.at)
		if age > keepFor {
			continue
		}
		if n := len(kept); n > 0 && age > fullFor && s.at.Sub(kept[n-1].at) < sparseEvery && s.epoch == kept[n-1].epoch {
			continue
		}
		kept = append(kept, s)
	}
	clear(t.samples[len(kept):])
	t.samples = kept
}

func (t *track) depths() []Point {
	points := make([]Point, 0, len(t.samples))
	for _, s := range t.samples {
		if s.ready != nil {
			points = append(points, Point{s.at, *s.ready})
		}
	}
	return points
}

// sinceReset returns the samples whose totals can be compared with those of the last, which is one of them.
func (t *track) sinceReset() []sample {
	n := len(t.samples)
	i := n
	for i > 0 && t.samples[i-1].counted && t.samples[i-1].epoch == t.samples[n-1].epoch {
		i--
	}
	return t.samples[i:]
}

// rates are messages per second over the last minute, or as much of it as was seen.
func (t *track) rates() (in, out *float64, source string) {
	samples := t.sinceReset()
	if len(samples) < 2 {
		return nil, nil, ""
	}
	last := samples[len(samples)-1]
	first := last
	for i := len(samples) - 2; i >= 0 && last.at.Sub(samples[i].at) <= window; i-- {
		first = samples[i]
	}
	span := last.at.Sub(first.at).Seconds()
	if span <= 0 {
		return nil, nil, ""
	}
	perSecond := func(n int64) *float64 { return new(float64(max(0, n)) / span) }
	return perSecond(last.in - first.in), perSecond(last.out - first.out), last.source
}

// age estimates how long the next message of q has waited.
//
// If messages leave in the order in which they came, the next one is the first that came after as many had come as
// have left by now. So it came between the last poll at which no more than that had come, and the poll after it.
// Independently of any totals, it came after the last poll that found the queue empty. Only a message that was
// delivered and returned is older than that.
func (t *track) age(q *Queue) {
	if len(t.samples) == 0 || !positive(q.Ready) {
		return
	}
	now := t.samples[len(t.samples)-1].at
	if !t.empty.IsZero() {
		most := now.Sub(t.empty)
		q.AgeAtMost = &most
	}
	samples := t.sinceReset()
	if len(samples) == 0 || !t.exact {
		return
	}
	last := samples[len(samples)-1]
	left := last.in - *q.Ready
	i := len(samples) - 1
	for i >= 0 && samples[i].in > left {
		i--
	}
	if i == len(samples)-1 {
		return // totals behind the depth
	}
	after := samples[i+1]
	least := now.Sub(after.at)
	if i >= 0 {
		before := samples[i]
		share := float64(left+1-before.in) / float64(after.in-before.in)
		age := now.Sub(before.at) - time.Duration(share*float64(after.at.Sub(before.at)))
		if most := now.Sub(before.at) + totalsLag; last.source == fromBroker && (q.AgeAtMost == nil || most < *q.AgeAtMost) {
			q.AgeAtMost = &most
		}
		if q.AgeAtMost != nil {
			age = min(age, *q.AgeAtMost)
		}
		q.Age = &age
	}
	if last.source == fromBroker {
		least = max(0, least-totalsLag)
		if q.AgeAtMost != nil {
			least = min(least, *q.AgeAtMost)
		}
		q.AgeAtLeast = &least
	}
}
