package state_test

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/state"
)

// The causal fold once more, from its description: naive, over all events of a task at once, and for reading
// rather than speed. TestCausalFoldEqualsTheReference compares the two.

// wire is an event as encoding/json reads it.
type wire struct {
	Type, Hostname, UUID          string
	PID, Clock, Retries           int64
	Timestamp                     float64
	Name, Args, Result, Exception *string
	Runtime                       *float64
	RootID                        *string `json:"root_id"`
	ParentID                      *string `json:"parent_id"`
}

func (e *wire) micros() int64 { return int64(math.Round(e.Timestamp * 1e6)) }

func (e *wire) is(subjects ...string) bool {
	return slices.Contains(subjects, strings.TrimPrefix(e.Type, "task-"))
}

func anyIs(events []*wire, subjects ...string) bool {
	return slices.ContainsFunc(events, func(e *wire) bool { return e.is(subjects...) })
}

// byTime orders events of one process by timestamp, and equal ones as a task passes through them.
func byTime(a, b *wire) int {
	return cmp.Or(cmp.Compare(a.micros(), b.micros()), cmp.Compare(a.Clock, b.Clock), cmp.Compare(a.step(), b.step()))
}

func (e *wire) step() int {
	return slices.IndexFunc([]string{"received", "started", "succeeded", "failed", "rejected", "revoked", "retried"}, func(s string) bool { return e.is(s) }) & 7
}

func byClock(a, b *wire) int { return cmp.Or(cmp.Compare(a.Clock, b.Clock), byTime(a, b)) }

// run is an execution.
type run struct {
	attempt int64
	process process
	begun   int64 // timestamp of the first event of its own process
	events  []*wire
}

type process struct {
	host string
	pid  int64
}

func (r *run) ended() bool {
	return anyIs(r.events, "succeeded", "failed", "retried", "revoked", "rejected")
}

// waits reports whether the last word on the run is that it will be tried again.
func (r *run) waits() bool {
	return anyIs(r.events, "retried") && !anyIs(r.events, "succeeded", "failed")
}

// older orders executions: by attempt, by the timestamp of their first event, by process.
func older(a, b *run) int {
	return cmp.Or(cmp.Compare(a.attempt, b.attempt), cmp.Compare(a.begun, b.begun),
		cmp.Compare(a.process.host, b.process.host), cmp.Compare(a.process.pid, b.process.pid))
}

// refold sorts the events of one task, in any order and any number of copies, into its executions, oldest
// first, and the task-sent events beside them.
func refold(events []*wire) (runs []*run, sent []*wire) {
	seen := make(map[string]bool)
	processes := make(map[process][]*wire)
	var received, children, loose []*wire
	for _, e := range events {
		// An identity has the timestamp in it: a pid comes back, and so do its clocks.
		id, err := json.Marshal([]any{e.Hostname, e.PID, e.Clock, e.Type, e.micros()})
		if err != nil || seen[string(id)] {
			continue
		}
		seen[string(id)] = true
		switch {
		case e.is("sent"):
			sent = append(sent, e)
			continue
		case e.is("received"):
			received = append(received, e)
		}
		p := process{e.Hostname, e.PID}
		processes[p] = append(processes[p], e)
	}
	for p, events := range processes {
		for _, life := range lives(events) {
			// Pool children send nothing but custom events; whoever discards a revoked task says nothing else of it.
			if !slices.ContainsFunc(life, func(e *wire) bool { return e.rank() != custom && !e.is("revoked") }) {
				loose = append(loose, life...)
				continue
			}
			opened, discarded := executions(p, life, received)
			runs, loose = append(runs, opened...), append(loose, discarded...)
		}
	}
	// An execution whose task-received was not seen is of the highest attempt that had begun by then.
	for _, r := range runs {
		r.begun = slices.MinFunc(r.events, byTime).micros()
		if !anyIs(r.events, "received") {
			r.attempt = attemptAt(received, r.begun)
		}
	}
	slices.SortFunc(loose, byTime)
	children = slices.DeleteFunc(slices.Clone(loose), func(e *wire) bool { return e.is("revoked") })
	revoked := slices.DeleteFunc(loose, func(e *wire) bool { return !e.is("revoked") })
	runs = adopt(runs, children, received)
	for _, e := range revoked {
		// It ends the newest attempt, or discards the one that a retry announced and nobody took up.
		slices.SortFunc(runs, older)
		r := &run{process: process{e.Hostname, e.PID}, begun: e.micros()}
		switch last := len(runs) - 1; {
		case last < 0:
			for _, s := range sent {
				r.attempt = max(r.attempt, s.Retries)
			}
		case runs[last].waits():
			r.attempt = runs[last].attempt + 1
		default:
			runs[last].events = append(runs[last].events, e)
			continue
		}
		r.events = []*wire{e}
		runs = append(runs, r)
	}
	slices.SortFunc(runs, older)
	return runs, sent
}

// lives splits the events of one pid where its clock drops though time went on by more than a second, if
// the life before had received the task. Where not all events have a clock, all are in order of time.
func lives(events []*wire) (all [][]*wire) {
	slices.SortFunc(events, byTime)
	if slices.ContainsFunc(events, func(e *wire) bool { return e.Clock == 0 }) {
		return [][]*wire{events}
	}
	var life []*wire
	for _, e := range events {
		if anyIs(life, "received") {
			newest := slices.MaxFunc(life, func(a, b *wire) int { return cmp.Compare(a.Clock, b.Clock) })
			if e.Clock < newest.Clock && e.micros() > newest.micros()+1_000_000 {
				all, life = append(all, life), nil
			}
		}
		life = append(life, e)
	}
	all = append(all, life)
	for _, life := range all {
		slices.SortFunc(life, byClock)
	}
	return all
}

// executions sorts the events of one life of a process. received are all task-received of the task, also
// those of others.
func executions(p process, life, received []*wire) (runs []*run, discarded []*wire) {
	for _, e := range life {
		if e.is("received") || len(runs) == 0 {
			runs = append(runs, &run{process: p, attempt: e.Retries, events: []*wire{e}})
			continue
		}
		on := runs[len(runs)-1]
		switch {
		case e.is("revoked") && on.waits():
			discarded = append(discarded, e)
			continue
		case e.is("started", "retried"):
			// A worker may be behind with its reports: they are of the earliest attempt that is still out. A
			// delivery that was taken back before it started is not, nor one whose next attempt was missed.
			var earliest *run
			for _, r := range runs {
				started, again, next := anyIs(r.events, "started"), false, r.attempt >= runs[len(runs)-1].attempt
				for _, o := range received {
					again = again || o.Retries == r.attempt && o.micros() > r.events[0].micros()
					next = next || o.Retries == r.attempt+1
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
	return runs, discarded
}

// adopt gives custom events of pool children to what had begun last on their host, or else would begin first.
func adopt(runs []*run, children, received []*wire) []*run {
	for _, e := range children {
		var on *run
		slices.SortFunc(runs, older)
		for _, r := range runs {
			if r.process.host == e.Hostname && (on == nil || r.begun <= e.micros() && (on.begun > e.micros() || on.begun <= r.begun)) {
				on = r
			}
		}
		if on == nil {
			on = &run{process: process{e.Hostname, e.PID}, begun: e.micros(), attempt: attemptAt(received, e.micros())}
			runs = append(runs, on)
		}
		on.events = append(on.events, e)
	}
	return runs
}

func attemptAt(received []*wire, micros int64) (attempt int64) {
	for _, e := range received {
		if e.micros() <= micros {
			attempt = max(attempt, e.Retries)
		}
	}
	return attempt
}

// byRank lists subjects from the one that decides the state of an execution to the weakest.
var byRank = []string{"succeeded", "failed", "retried", "revoked", "rejected", "custom", "started", "received"}

const custom = 5

func (e *wire) rank() int {
	if i := slices.IndexFunc(byRank, func(s string) bool { return e.is(s) }); i >= 0 {
		return i
	}
	return custom
}

func (e *wire) state() state.State {
	subject := strings.TrimPrefix(e.Type, "task-")
	if s, ok := map[string]state.State{
		"succeeded": state.Success, "failed": state.Failure, "retried": state.Retry, "revoked": state.Revoked,
		"rejected": state.Rejected, "started": state.Started, "received": state.Received,
	}[subject]; ok {
		return s
	}
	return state.State(strings.ToUpper(subject))
}

// execution is what the run comes to: the strongest event has the first word, weaker ones fill what is empty.
func (r *run) execution() state.Execution {
	x := state.Execution{Attempt: r.attempt, Worker: r.process.host, PID: r.process.pid, Inferred: !anyIs(r.events, "received")}
	slices.SortStableFunc(r.events, func(a, b *wire) int {
		order := cmp.Compare(b.rank(), a.rank())
		if a.rank() == custom || a.is("revoked") { // perhaps of several processes
			return cmp.Or(order, byTime(a, b))
		}
		return order
	})
	for _, e := range r.events {
		if e.is("succeeded") && e.Result == nil && e.Runtime == nil && anyIs(r.events, "revoked") {
			continue // gevent says so of what it has terminated
		}
		x.State = e.state()
		if e.Result != nil {
			x.Result = e.Result
		}
		if e.Exception != nil {
			x.Exception = e.Exception
		}
		times := map[state.State]*int64{
			state.Received: &x.ReceivedAt, state.Started: &x.StartedAt, state.Success: &x.SucceededAt, state.Failure: &x.FailedAt,
			state.Retry: &x.RetriedAt, state.Revoked: &x.RevokedAt, state.Rejected: &x.RejectedAt,
		}
		if at := times[x.State]; at != nil {
			*at = e.micros()
		}
	}
	return x
}

// reference is the task that the events make, with the fields that are compared.
func reference(id string, events []*wire) state.Task {
	runs, sent := refold(events)
	t := state.Task{ID: id, State: state.Pending}
	attempt := int64(math.MaxInt64)
	if last := len(runs) - 1; last >= 0 {
		attempt = runs[last].attempt
		for _, r := range runs {
			t.Executions = append(t.Executions, r.execution())
		}
		x := &t.Executions[last]
		t.State, t.Worker, t.Retries, t.Times, t.Result, t.Exception = x.State, &x.Worker, &x.Attempt, x.Times, x.Result, x.Exception
	}
	// What the publisher decided, as the newest attempt known has it, and a worker rather than a client. Of the
	// clients, the one counts that published the attempt shown, or the nearest, rather before than after it.
	slices.SortFunc(sent, func(a, b *wire) int {
		return cmp.Or(-cmp.Compare(max(a.Retries, attempt), max(b.Retries, attempt)), cmp.Compare(a.Retries, b.Retries), byTime(a, b))
	})
	var known []*wire
	if last := len(sent) - 1; last >= 0 {
		known = append(known, sent[last])
		if len(runs) == 0 {
			t.Retries = &sent[last].Retries
		}
	}
	names := slices.Clone(known)
	for _, r := range runs {
		for _, e := range r.events {
			if e.is("received") {
				known, names = append(known, e), append(names, e)
			}
		}
	}
	slices.SortStableFunc(known, func(a, b *wire) int {
		return cmp.Compare(min(a.Retries, attempt), min(b.Retries, attempt))
	})
	for i := range known {
		keep(&t.Name, names[i].Name)
		keep(&t.Args, known[i].Args)
		keep(&t.RootID, known[i].RootID)
		if p := known[i].ParentID; p != nil && *p != id { // a retry calls itself its parent
			keep(&t.ParentID, p)
		}
	}
	return t
}

func keep(dst **string, v *string) {
	if v != nil {
		*dst = v
	}
}
