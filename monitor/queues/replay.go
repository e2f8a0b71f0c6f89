package queues

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

// Record is what was known of queues at the end of an interval.
type Record struct {
	From, At  time.Time
	Ready     map[string]int64    // depths, nil if they could not be read
	Consumers map[string][]string // workers that consume from a queue, as they had reported
	// Received is how many messages workers received in the interval, by queue. Unrouted is how many more, by worker, whose
	// queue no event told.
	Received, Unrouted map[string]int64
}

// replayGap is how much may be missing between two records before nothing is concluded from both.
const replayGap = time.Minute

// Replay returns the queues as they were at the end of the last record, as a Watcher would that had polled at the end of each.
// Records are of one hour, oldest first. The broker's own counts, and what had been delivered and not acknowledged, are
// unknown.
func Replay(records []Record) Snapshot {
	if len(records) == 0 {
		return Snapshot{}
	}
	names := make(map[string]bool)
	for i := range records {
		r := &records[i]
		for _, named := range []map[string]int64{r.Ready, r.Received} {
			for name := range named {
				names[name] = true
			}
		}
		for name := range r.Consumers {
			names[name] = true
		}
	}
	delete(names, "")
	last := &records[len(records)-1]
	tracks, rates := replayTracks(records, names)
	s := Snapshot{At: last.At}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		q := broker.Queue{Name: name}
		if n, known := last.Ready[name]; known {
			q.Ready = &n
		}
		d := Queue{
			Queue: q, Hidden: Hidden(name), Workers: slices.Sorted(slices.Values(last.Consumers[name])),
			WorkersKnown: last.Consumers[name] != nil,
		}
		for i := range records {
			if n, known := records[i].Ready[name]; known {
				d.Depths = append(d.Depths, Point{records[i].At, n})
			}
		}
		d.OutRate, d.RatesFrom = new(rates[name]), fromEvents
		if t := tracks[name]; t != nil && q.Ready != nil {
			if in, out, source := t.rates(); source != "" {
				d.InRate, d.OutRate, d.RatesFrom = in, out, source
			}
			t.age(&d)
			if d.InRate != nil && positive(q.Ready) {
				d.DrainTime = drain(*q.Ready, *d.OutRate-*d.InRate)
			}
		}
		s.Queues = append(s.Queues, d)
	}
	return s
}

// replayTracks polls what is known of queues at the end of each record since the last gap. rates are messages received per
// second of the last record.
func replayTracks(records []Record, names map[string]bool) (tracks map[string]*track, rates map[string]float64) {
	tracks = make(map[string]*track)
	totals := make(map[string]Counters)
	for i := range records {
		r := &records[i]
		if i > 0 && r.From.Sub(records[i-1].At) > replayGap {
			clear(tracks)
			clear(totals)
		}
		received := make(map[string]Counters, len(r.Received))
		for name, n := range r.Received {
			received[name] = Counters{Received: n}
		}
		rates = make(map[string]float64)
		for name, c := range RouteCounters(received, r.Unrouted, r.Consumers) {
			t := totals[name]
			t.Received += c.Received
			totals[name] = t
			rates[name] = float64(c.Received) / cmp.Or(max(r.At.Sub(r.From).Seconds(), 0), 60)
		}
		for name := range names {
			n, known := r.Ready[name]
			if !known {
				delete(tracks, name)
				continue
			}
			if tracks[name] == nil {
				tracks[name] = &track{}
			}
			tracks[name].add(broker.Queue{Name: name, Ready: &n}, totals[name], true, r.At)
		}
	}
	return tracks, rates
}
