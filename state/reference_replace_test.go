package state_test

import (
	"cmp"
	"fmt"
	"slices"
)

// Classes of parents.
const (
	none = iota
	another
	own
)

func (e *wire) class() int {
	switch {
	case e.ParentID == nil:
		return none
	case *e.ParentID != e.UUID:
		return another
	}
	return own
}

// replacements adds a 100 to the attempts of events of each message that replaced the task: a task-received of attempt 0
// that says something else than the first, or that the task is its own parent. More of them than were sent are
// deliveries of those. A retry is of the newest message of its name, or the first if none had begun.
func replacements(events []*wire) {
	var first *wire
	var others, sent []*wire
	name := func(e *wire) string {
		if e.Name == nil {
			return ""
		}
		return *e.Name
	}
	alike := func(a, b *wire) bool { return name(a) == name(b) && a.class() == b.class() }
	distinct := slices.CompactFunc(slices.SortedFunc(slices.Values(events), func(a, b *wire) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), byPlace(a, b))
	}), func(a, b *wire) bool { return a.Type == b.Type && byPlace(a, b) == 0 })
	for _, e := range distinct {
		switch {
		case e.is("sent") && e.Retries == 0 && e.class() == own:
			sent = append(sent, e)
		case e.is("received") && e.Retries == 0 && e.class() < own && (first == nil || e.class() < first.class()):
			first = e
		}
	}
	for _, e := range distinct {
		if e.is("received") && e.Retries == 0 && (e.class() == own || !alike(e, first)) {
			others = append(others, e)
		}
	}
	message := make(map[string]int64)
	key := func(e *wire) string { return fmt.Sprint(e.Type, e.Hostname, e.PID, e.Clock, e.micros()) }
	last := func(e *wire) (n int) {
		for i, s := range sent {
			if s.micros() <= e.micros() {
				n = i
			}
		}
		return n
	}
	n := int64(0)
	for i, e := range others {
		if i == 0 || len(sent) == 0 || len(others) <= len(sent) || !alike(others[i-1], e) || last(others[i-1]) != last(e) {
			n++
		}
		message[key(e)] = n
	}
	for _, e := range events {
		if !e.is("received") {
			continue
		}
		if e.Retries == 0 {
			e.generation = message[key(e)]
			continue
		}
		known := first != nil && name(first) == name(e)
		for _, o := range others {
			if name(o) == name(e) && (o.micros() <= e.micros() || !known) {
				e.generation, known = message[key(o)], true
			}
		}
		for _, o := range others {
			if !known && o.micros() <= e.micros() {
				e.generation = message[key(o)]
			}
		}
	}
}

// incarnations splits the events of one pid where its clock drops though time went on by more than a second, if
// the incarnation before had received the task. Where not all events have a clock, all are in order of time.
func incarnations(events []*wire) (all [][]*wire) {
	slices.SortFunc(events, byTime)
	if slices.ContainsFunc(events, func(e *wire) bool { return e.Clock == 0 }) {
		return [][]*wire{events}
	}
	var incarnation []*wire
	for _, e := range events {
		if anyIs(incarnation, "received") {
			newest := slices.MaxFunc(incarnation, func(a, b *wire) int { return cmp.Compare(a.Clock, b.Clock) })
			if e.Clock < newest.Clock && e.micros() > newest.micros()+1_000_000 {
				all, incarnation = append(all, incarnation), nil
			}
		}
		incarnation = append(incarnation, e)
	}
	all = append(all, incarnation)
	for _, incarnation := range all {
		slices.SortFunc(incarnation, byClock)
	}
	return all
}

// splitIncarnation sorts the events of one incarnation of a process. received are all task-received of the task, also
// those of others.
func splitIncarnation(p process, incarnation, received []*wire) (executions []*execution, discarded []*wire) {
	for _, e := range incarnation {
		if e.is("received") || len(executions) == 0 {
			executions = append(executions, &execution{process: p, attempt: e.attempt(), events: []*wire{e}})
			continue
		}
		on := executions[len(executions)-1]
		switch {
		case e.is("revoked") && (on.waits() || !anyIs(on.events, "succeeded", "failed") &&
			slices.ContainsFunc(received, func(o *wire) bool {
				return o.Retries == 0 && o.generation > on.attempt/message && o.micros() <= e.micros()
			})):
			discarded = append(discarded, e)
			continue
		case e.is("started", "retried"):
			// A worker may be behind with its reports: they are of the earliest attempt that is still out. A
			// delivery that was taken back before it started is not, nor one whose next attempt was missed.
			var earliest *execution
			for _, r := range executions {
				newest := executions[len(executions)-1].attempt
				started, again := anyIs(r.events, "started"), false
				next := r.attempt >= newest || !started && r.attempt/message < newest/message
				for _, o := range received {
					again = again || o.attempt() == r.attempt && o.micros() > r.events[0].micros()
					next = next || o.attempt() == r.attempt+1
				}
				past := r.events[0].is("received") && (again && !started || !next)
				if r.ended() || started && e.is("started") || past {
					continue
				}
				if earliest == nil || r.attempt <= earliest.attempt {
					earliest = r
				}
			}
			if earliest != nil {
				on = earliest
			}
		}
		on.events = append(on.events, e)
	}
	return executions, discarded
}
