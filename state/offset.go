package state

import "slices"

// How bounds of offsets change with time, µs.
const (
	driftPerSecond = 500       // by which two clocks may move apart: NTP slews by no more
	offsetRounding = 2         // of times to whole µs
	offsetJitter   = 1_000_000 // change of the delay between heartbeats, and of time between threads of a worker
	minConfirming  = 4         // heartbeats after the first at their own pace that confirm an upper bound
	minPaced       = 3_500_000 // time for which heartbeats must come at their own pace to count
	minCorrection  = 100_000   // offset below which times are taken as they are
	minUnproved    = 2_000_000 // the same of a clock that seems to be behind, while there is no upper bound
	maxProbes      = 16        // probes of a worker whose heartbeats may still come
	maxTicks       = 10_000    // of a worker's clock between the two commands of a probe
)

// drift is how far two clocks may move apart in so many µs.
func drift(micros int64) int64 { return absolute(micros)/1_000_000*driftPerSecond + driftPerSecond }

func absolute(n int64) int64 { return max(n, -n) }

// bound is a bound of an offset: known since a local time, by an event of the worker with a raw clock.
type bound struct{ Micros, At, Clock int64 }

func (b bound) known() bool { return b.At != 0 }

// offset compares the wall clock of a worker's newest process with the local one. Every event bounds it from below: it was
// received after its timestamp was taken. A probe also bounds it from above. A bound holds for ever but for drift, so that
// the tightest at any time is the tightest for good, until the worker's clock is set. That shows where bounds contradict each
// other, or where a later event has an earlier timestamp: then bounds begin anew.
type offset struct {
	Process   int64 // number of the incarnation that it is of
	Since     int64 // raw clock from which on events count
	Low, High bound
	Claim     bound  // upper one that is not confirmed
	Latest    moment // event with the greatest raw clock
	Heartbeat beat   // newest one
	Seen      int64  `json:",omitempty"` // local time from which on the process is known to have run
	Ran       int64  `json:",omitempty"` // local time at which it ran still, by an upper bound
	History   offsetHistory

	Probes []probe  `json:",omitempty"` // newest ones, oldest first
	forced []moment // heartbeats of one of them, it is not known of which
}

// probe is one with its heartbeat.
type probe struct {
	ClockProbe

	Answered  bool   // its heartbeat has come
	Heartbeat moment // that one, zero if it is of an earlier process than the newest
}

// moment is an event of a worker.
type moment struct {
	Clock            int64 // raw, 0 if there is none
	Micros, Received int64 // timestamp, 0 if there is no event, and receipt
}

// beat is a heartbeat, with the first of those since which they have come at the pace at which they were sent. Those of a backlog
// do not.
type beat struct {
	moment
	First moment
	After int // heartbeats after the first
}

// paced reports whether heartbeats come at their own pace.
func (b *beat) paced() bool { return b.After >= 2 && b.Micros-b.First.Micros >= minPaced }

// confirming reports whether so many have come at their own pace that they are no backlog of a process that has ended.
func (b *beat) confirming() bool { return b.paced() && b.After >= minConfirming }

// add takes in an event of the process with that number, sent by the worker itself. online reports that the process began.
func (o *offset) add(e *Event, process int64, online bool) {
	if e.Retimed || e.ReceivedMicros == 0 {
		return
	}
	if process != o.Process || online {
		o.restart(process)
	}
	if e.Clock < o.Since {
		return
	}
	at := moment{e.Clock, e.Micros, e.ReceivedMicros}
	if e.Kind == WorkerHeartbeat || e.Kind == WorkerOnline {
		o.pace(at)
	}
	if o.follows(at) {
		o.confirm()
		o.raise(bound{e.Micros - e.ReceivedMicros - offsetRounding, e.ReceivedMicros, e.Clock})
		o.run(at)
	}
	if e.forced() && e.Clock != 0 && !o.repeated(at) {
		if len(o.forced) == maxProbes {
			o.forced = slices.Delete(o.forced, 0, 1)
		}
		o.forced = append(o.forced, at)
		o.match()
		o.loosely(at)
	}
	o.note(e.ReceivedMicros)
}

// follows takes in the order of an event among those of its process, and reports whether it is one of them. One with a greater
// clock and an earlier timestamp may be late, of a process that has ended, with the same pid: that the clock was set back
// is known when heartbeats like it have come at their own pace.
func (o *offset) follows(at moment) bool {
	if at.Clock <= o.Latest.Clock {
		return true
	}
	if o.Latest.Clock != 0 && at.Micros < o.Latest.Micros-offsetJitter {
		if h := o.Heartbeat; h.moment != at || !h.confirming() || h.First.Clock <= o.Latest.Clock {
			return false
		}
		o.set(at.Clock)
		o.pace(at)
	}
	o.Latest = at
	return true
}

// run records when the process ran: before an event of it was received, and after the event was sent at the earliest.
func (o *offset) run(at moment) {
	if o.Seen == 0 {
		o.Seen = at.Received
	}
	if o.High.known() {
		sent := at.Micros - o.High.Micros - drift(at.Received-o.High.At)
		if sent > o.Ran {
			o.Ran = sent
			o.match()
		}
	}
}

// restart forgets what was known of another process.
func (o *offset) restart(process int64) {
	h := o.History
	if o.Low.known() {
		h.pending = max(h.pending, otherProcess)
	}
	for i := range o.Probes { // those whose heartbeats have not come may be of it, too
		o.Probes[i].Heartbeat = moment{}
	}
	*o = offset{Process: process, History: h, Probes: o.Probes}
}

// set records that the worker's clock was set by the time of an event.
func (o *offset) set(clock int64) {
	o.Since, o.Low, o.High, o.Claim = clock, bound{}, bound{}, bound{}
	o.Latest, o.Heartbeat, o.Ran = moment{}, beat{}, 0
	o.History.pending = clockSet
}

func (o *offset) pace(at moment) {
	first, after := o.Heartbeat.First, o.Heartbeat.After+1
	between := at.Micros - first.Micros
	if first.Micros == 0 || at.Micros <= o.Heartbeat.Micros || absolute(at.Received-first.Received-between) > offsetJitter {
		first, after = at, 0
	}
	o.Heartbeat = beat{at, first, after}
}

// raise takes in a lower bound.
func (o *offset) raise(low bound) {
	if o.High.known() && low.Micros > above(o.High.Micros, drift(low.At-o.High.At)) {
		if low.Clock != 0 && low.Clock < o.High.Clock { // of before the clock was set
			return
		}
		o.set(low.Clock)
	}
	if !o.Low.known() || low.Micros >= o.Low.Micros-drift(low.At-o.Low.At)+driftPerSecond {
		o.Low = low
	}
}

// lower takes in an upper bound.
func (o *offset) lower(high bound) {
	if o.Low.known() && high.Micros < below(o.Low.Micros, drift(high.At-o.Low.At)) {
		if high.Clock < o.Low.Clock {
			return
		}
		o.set(high.Clock)
	}
	if !o.High.known() || high.Micros <= o.High.Micros+drift(high.At-o.High.At)-driftPerSecond {
		o.High = high
	}
}

// repeated reports whether a heartbeat has come before.
func (o *offset) repeated(at moment) bool {
	same := func(m moment) bool { return m.Clock == at.Clock && m.Micros == at.Micros }
	return slices.ContainsFunc(o.forced, same) ||
		slices.ContainsFunc(o.Probes, func(p probe) bool { return same(p.Heartbeat) })
}

// probe takes in a probe whose heartbeat has yet to come.
func (o *offset) probe(p ClockProbe) {
	if len(o.Probes) == maxProbes {
		o.Probes = slices.Delete(o.Probes, 0, 1)
	}
	o.Probes = append(o.Probes, probe{ClockProbe: p})
	o.match()
}

// match finds the probes of heartbeats. A late heartbeat may be of any probe that was sent before it came, of an ended process
// with the same pid, too: only one that can be of a single probe is of that. A probe that is forgotten has none to come.
func (o *offset) match() {
	for found := true; found; {
		found = false
		o.forced = slices.DeleteFunc(o.forced, func(at moment) bool {
			var of *probe
			n := 0
			for i := range o.Probes {
				if p := &o.Probes[i]; p.fits(at) && !o.dead(p, at) {
					of, n = p, n+1
				}
			}
			if n != 1 {
				return n == 0
			}
			of.Answered, of.Heartbeat, found = true, at, true
			o.bound(at, of.ClockProbe)
			return true
		})
	}
}

// fits reports whether a heartbeat may be of the probe.
func (p *probe) fits(at moment) bool {
	return !p.Answered && p.SentAt <= at.Received && p.Clock < at.Clock
}

// dead reports whether a heartbeat is of a later probe than p. A process takes commands in their order, so that the heartbeat of p
// came before the reply to the next probe. That both are of one process is known where it has run from before the first
// until after the second.
func (o *offset) dead(p *probe, at moment) bool {
	return o.Seen != 0 && p.SentAt >= o.Seen && slices.ContainsFunc(o.Probes, func(q probe) bool {
		return q.SentAt > p.SentAt && q.SentAt <= o.Ran && q.Clock > p.Clock && q.Clock < at.Clock
	})
}

// loosely takes in the upper bound that holds whichever probe a heartbeat is of: it was sent after the first of them.
func (o *offset) loosely(at moment) {
	if !slices.Contains(o.forced, at) {
		return
	}
	for i := range o.Probes {
		if p := &o.Probes[i]; p.fits(at) && !o.dead(p, at) {
			o.bound(at, p.ClockProbe)
			return
		}
	}
}

// bound takes in what a probe and its heartbeat tell. One whose clock is much greater may be of a command that another
// program sent.
func (o *offset) bound(at moment, p ClockProbe) {
	if at.Clock > p.Clock+maxTicks || at.Clock < o.Since {
		return
	}
	high := bound{at.Micros - p.SentAt + offsetRounding, p.SentAt, at.Clock}
	if !o.High.known() || high.Micros < o.High.Micros-drift(high.At-o.High.At)-offsetJitter {
		if !o.Claim.known() || high.At > o.Claim.At {
			o.Claim = high
			o.Heartbeat.First, o.Heartbeat.After = o.Heartbeat.moment, 0
		}
		return
	}
	o.lower(high)
	o.note(at.Received)
}

// confirm takes in an upper bound that was put aside, far below the present one, once heartbeats come at their own pace and do
// not contradict it: those of a process that has ended may have come late, and seem to be of a probe of the next one.
func (o *offset) confirm() {
	if !o.Claim.known() || !o.Heartbeat.confirming() || o.Heartbeat.First.Received < o.Claim.At {
		return
	}
	high := o.Claim
	o.Claim = bound{}
	h := o.Heartbeat
	if low := h.Micros - h.Received - offsetRounding; low <= high.Micros+drift(h.Received-high.At) {
		o.lower(high)
		o.note(h.Received)
	}
}

// note adds the bounds to the history if that is due.
func (o *offset) note(now int64) {
	if o.History.due(now, o.Low.known() && o.High.known()) {
		o.History.add(now, o.at(now))
	}
}

// point is what is known at a local time.
func (o *offset) point(now int64) OffsetPoint { return OffsetPoint{now, o.at(now), o.History.pending} }

// at returns the bounds at a local time that is not long before the newest event.
func (o *offset) at(now int64) ClockOffset {
	i := unknownOffset
	if o.Low.known() {
		i.Low = o.Low.Micros - drift(max(now-o.Low.At, 0))
	}
	if o.High.known() {
		i.High = o.High.Micros + drift(max(now-o.High.At, 0))
	}
	if late, suspicious := o.suspicious(); suspicious { // the clock may have been set back
		i.Low = min(i.Low, late)
	}
	return i
}

// present returns the bounds at a local time, nil if there are none.
func (o *offset) present(now int64) *ClockOffset {
	i := o.at(now)
	if !i.Known() {
		return nil
	}
	return &i
}

// suspicious returns the lower bound that the newest heartbeat gives, and whether it is far below the present one: there is
// a backlog, or the clock was set back.
func (o *offset) suspicious() (int64, bool) {
	h := o.Heartbeat
	if h.Micros == 0 || !o.Low.known() {
		return 0, false
	}
	low := h.Micros - h.Received - offsetRounding
	return low, low < o.Low.Micros-drift(h.Received-o.Low.At)-offsetJitter
}

// estimate is the offset that is most likely, and whether there is one: the middle of the bounds. Where there is but a lower
// one, the offset is little more, unless that seems to come of a backlog.
func (o *offset) estimate() (int64, bool) {
	if !o.Low.known() {
		return 0, false
	}
	low, paced := o.Low.Micros, o.Heartbeat.paced()
	if late, suspicious := o.suspicious(); suspicious && paced {
		return late, true
	}
	if o.High.known() {
		return low + (o.High.Micros-low)/2, true
	}
	return low, low > -minCorrection || paced
}

// correction is what to take from the worker's timestamps, 0 if they are taken as they are: offsets that are small, that
// may be none, or that are unknown.
func (o *offset) correction() int64 {
	m, ok := o.estimate()
	switch {
	case !ok || absolute(m) < minCorrection:
	case !o.High.known() && m < 0 && m > -minUnproved:
	case o.High.known() && o.at(o.Low.At).Contains(0):
	default:
		return m
	}
	return 0
}

// shift keeps the bounds right where the local clock was set forward by so many µs.
func (o *offset) shift(by int64) {
	for _, b := range []*bound{&o.Low, &o.High, &o.Claim} {
		if b.known() {
			b.Micros, b.At = b.Micros-by, b.At+by
		}
	}
	for _, t := range []*int64{&o.Seen, &o.Ran} {
		if *t != 0 {
			*t += by
		}
	}
	o.Heartbeat.Received, o.Heartbeat.First.Received = o.Heartbeat.Received+by, o.Heartbeat.First.Received+by
	for i := range o.forced {
		o.forced[i].Received += by
	}
	for i := range o.Probes {
		o.Probes[i].SentAt += by
		o.Probes[i].Heartbeat.Received += by
	}
	o.History.shift(by)
}
