package state_test

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/state"
)

// byRank lists subjects from the one that decides the state of an execution to the weakest.
var byRank = []string{"succeeded", "failed", "retried", "revoked", "rejected", "custom", "started", "received"}

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
