package state_test

import (
	"cmp"
	"encoding/json"
	"fmt"
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
	generation                    int64
	Timestamp                     float64
	Name, Args, Result, Exception *string
	Runtime                       *float64
	RootID                        *string `json:"root_id"`
	ParentID                      *string `json:"parent_id"`
}

// message is by how much the attempts of one that replaced the task are greater.
const message = 100

func (e *wire) attempt() int64 { return e.generation*message + e.Retries }

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

// execution is one attempt. Its attempt counts 100 for each time that the task had been replaced.
type execution struct {
	attempt int64
	process process
	begun   int64 // timestamp of the first event of its own process
	events  []*wire
}

type process struct {
	host string
	pid  int64
}

func (r *execution) ended() bool {
	return anyIs(r.events, "succeeded", "failed", "retried", "revoked", "rejected")
}

// waits reports whether the last word on the run is that it will be tried again.
func (r *execution) waits() bool {
	return anyIs(r.events, "retried") && !anyIs(r.events, "succeeded", "failed")
}

// older orders executions: by attempt, by the timestamp of their first event, by process.
func older(a, b *execution) int {
	return cmp.Or(cmp.Compare(a.attempt, b.attempt), cmp.Compare(a.begun, b.begun),
		cmp.Compare(a.process.host, b.process.host), cmp.Compare(a.process.pid, b.process.pid))
}

// refold sorts the events of one task, in any order and any number of copies, into its executions, oldest
// first, and the task-sent events beside them.
func refold(events []*wire) (executions []*execution, sent []*wire) {
	seen := make(map[string]bool)
	events = slices.Clone(events)
	replacements(events)
	processes := make(map[process][]*wire)
	var received, children, unattributed []*wire
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
		for _, incarnation := range incarnations(events) {
			// Pool children send nothing but custom events; whoever discards a revoked task says nothing else of it.
			if !slices.ContainsFunc(incarnation, func(e *wire) bool { return e.rank() != custom && !e.is("revoked") }) {
				unattributed = append(unattributed, incarnation...)
				continue
			}
			opened, discarded := splitIncarnation(p, incarnation, received)
			executions, unattributed = append(executions, opened...), append(unattributed, discarded...)
		}
	}
	// An execution whose task-received was not seen is of the highest attempt that had begun by then.
	for _, r := range executions {
		r.begun = slices.MinFunc(r.events, byTime).micros()
		if !anyIs(r.events, "received") {
			r.attempt = attemptAt(received, r.begun)
		}
	}
	slices.SortFunc(unattributed, byTime)
	children = slices.DeleteFunc(slices.Clone(unattributed), func(e *wire) bool { return e.is("revoked") })
	revoked := slices.DeleteFunc(unattributed, func(e *wire) bool { return !e.is("revoked") })
	executions = adopt(executions, children, received)
	for _, e := range revoked {
		// It ends the newest attempt, or discards the one that a retry announced and nobody took up.
		slices.SortFunc(executions, older)
		r := &execution{process: process{e.Hostname, e.PID}, begun: e.micros()}
		switch last := len(executions) - 1; {
		case last < 0:
			for _, s := range sent {
				r.attempt = max(r.attempt, s.Retries)
			}
		case executions[last].waits():
			r.attempt = executions[last].attempt + 1
		default:
			executions[last].events = append(executions[last].events, e)
			continue
		}
		r.events = []*wire{e}
		executions = append(executions, r)
	}
	slices.SortFunc(executions, older)
	return executions, sent
}

// byPlace orders events of all processes.
func byPlace(a, b *wire) int {
	return cmp.Or(cmp.Compare(a.micros(), b.micros()), cmp.Compare(a.Hostname, b.Hostname), cmp.Compare(a.PID, b.PID), byClock(a, b))
}

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

// adopt gives custom events of pool children to what had begun last on their host, or else would begin first.
func adopt(executions []*execution, children, received []*wire) []*execution {
	for _, e := range children {
		var on *execution
		slices.SortFunc(executions, older)
		for _, r := range executions {
			if r.process.host == e.Hostname && (on == nil || r.begun <= e.micros() && (on.begun > e.micros() || on.begun <= r.begun)) {
				on = r
			}
		}
		if on == nil {
			on = &execution{process: process{e.Hostname, e.PID}, begun: e.micros(), attempt: attemptAt(received, e.micros())}
			executions = append(executions, on)
		}
		on.events = append(on.events, e)
	}
	return executions
}

func attemptAt(received []*wire, micros int64) (attempt int64) {
	for _, e := range received {
		if e.micros() <= micros {
			attempt = max(attempt, e.attempt())
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
func (r *execution) execution() state.Execution {
	x := state.Execution{Attempt: r.attempt % message, Worker: r.process.host, PID: r.process.pid, Inferred: !anyIs(r.events, "received")}
	slices.SortStableFunc(r.events, func(a, b *wire) int {
		order := cmp.Compare(b.rank(), a.rank())
		if a.rank() == custom || a.is("revoked") { // perhaps of several processes
			return cmp.Or(order, byTime(a, b))
		}
		return order
	})
	for _, e := range r.events {
		if e.is("received") {
			x.Name = e.Name
		}
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
	executions, sent := refold(events)
	t := state.Task{ID: id, State: state.Pending}
	attempt, last := int64(math.MaxInt64), len(executions)-1
	var received []*wire // of the message shown
	var opened, first *wire
	if last >= 0 {
		attempt = executions[last].attempt % message
		opened, first = opens(executions, executions[last].attempt/message), opens(executions, 0)
		for i, r := range executions {
			t.Executions = append(t.Executions, r.execution())
			t.Executions[i].Replaced = !r.ended() && (i < last && executions[i+1].attempt/message > r.attempt/message ||
				i == last && isReplaced(r, executions, sent))
			for _, e := range r.events {
				if e.is("received") && e.generation == executions[last].attempt/message {
					received = append(received, e)
				}
			}
		}
		x := &t.Executions[last]
		t.State, t.Worker, t.Retries, t.Times, t.Result, t.Exception = x.State, &x.Worker, &x.Attempt, x.Times, x.Result, x.Exception
	}
	// What the publisher decided, as the newest attempt known has it, and a worker rather than a client. Of the
	// clients, the one counts that published the attempt shown, or the nearest, rather before than after it.
	replaced := opened != nil && opened.generation > 0
	fits := func(s *wire) bool {
		return last < 0 || s.Retries > 0 || (s.class() == own) == (replaced && opened.class() == own)
	}
	before := func(s *wire) bool { return !replaced || s.Retries > 0 || s.micros() <= opened.micros() }
	slices.SortFunc(sent, func(a, b *wire) int {
		order := cmp.Or(truth(fits(a), fits(b)))
		if a.Retries == 0 && b.Retries == 0 {
			order = cmp.Or(order, truth(before(a), before(b)))
		}
		return cmp.Or(order, -cmp.Compare(max(a.Retries, attempt), max(b.Retries, attempt)), cmp.Compare(a.Retries, b.Retries), byTime(a, b))
	})
	var known []*wire
	if i := len(sent) - 1; i >= 0 {
		keep(&t.Name, sent[i].Name)
		if last < 0 {
			t.Retries = &sent[i].Retries
		}
		if fits(sent[i]) {
			known = append(known, sent[i])
		}
	}
	for _, r := range executions {
		for _, e := range r.events {
			if e.is("received") {
				keep(&t.Name, e.Name)
			}
		}
	}
	known = append(known, received...)
	slices.SortStableFunc(known, func(a, b *wire) int {
		return cmp.Compare(min(a.Retries, attempt), min(b.Retries, attempt))
	})
	for _, e := range known {
		keep(&t.Args, e.Args)
		keep(&t.RootID, e.RootID)
		if p := e.ParentID; p != nil && *p != id { // a retry calls itself its parent
			keep(&t.ParentID, p)
		}
	}
	if replaced && first != nil {
		t.ParentID = first.ParentID
	}
	return t
}

func truth(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// opens returns the task-received that came first of a message.
func opens(executions []*execution, generation int64) (first *wire) {
	for _, r := range executions {
		for _, e := range r.events {
			if e.is("received") && e.Retries == 0 && e.generation == generation && (first == nil || byPlace(e, first) < 0) {
				first = e
			}
		}
	}
	return first
}

// isReplaced reports whether a message that replaced the task was sent after the run began, and not received.
func isReplaced(r *execution, executions []*execution, sent []*wire) bool {
	received := make(map[int64]bool)
	for _, r := range executions {
		if o := opens(executions, r.attempt/message); r.attempt >= message && o != nil && o.class() == own {
			received[r.attempt/message] = true
		}
	}
	n, after := 0, false
	for _, s := range sent {
		if s.Retries == 0 && s.class() == own {
			n++
			after = after || s.micros() > r.begun
		}
	}
	return n > len(received) && after
}

func keep(dst **string, v *string) {
	if v != nil {
		*dst = v
	}
}
