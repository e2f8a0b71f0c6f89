package duplicates

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/umbelhq/umbel/state"
)

// margin is how far apart, in µs, two times of different clocks must be for their order to be certain, if both clocks
// were compared with the local one.
const margin = 1_000_000

// Judge returns the verdicts on tasks of one call, newest pair first: on each run with the one that it repeats. Tasks that
// waited, or ran after others had failed, repeat nothing.
func Judge(tasks []state.Task, o Options) []Pair {
	j := judge{Options: o}
	for i := range tasks {
		j.own(&tasks[i])
	}
	j.between(tasks)
	slices.SortStableFunc(j.pairs, func(a, b Pair) int { return cmp.Compare(b.Second.begin(), a.Second.begin()) })
	return j.pairs
}

// judge is one call of Judge.
type judge struct {
	Options

	pairs []Pair
}

// begin is when a run began, or when the first thing about it was known.
func (r *Run) begin() int64 { return cmp.Or(r.StartedAt, r.ReceivedAt, r.SentAt, r.EndedAt) }

// own judges the runs of one task.
func (j *judge) own(t *state.Task) {
	for i := 1; i < len(t.Sends); i++ {
		if a, b := t.Sends[i-1], t.Sends[i]; a.Attempt == b.Attempt {
			j.resend(t, a, b)
		}
	}
	for i := 1; i < len(t.Executions); i++ {
		a, b := &t.Executions[i-1], &t.Executions[i]
		switch {
		case a.Replaced:
		case a.Attempt == b.Attempt && begun(a):
			j.redelivery(t, a, b)
		case a.Attempt < b.Attempt:
			j.retry(t, a, b)
		}
	}
}

func (j *judge) resend(t *state.Task, a, b state.Sent) {
	run := func(s state.Sent) Run {
		return Run{TaskID: t.ID, Attempt: s.Attempt, SentAt: s.At, Client: s.Client, State: t.State}
	}
	p := Pair{Verdict: Resend, Proved: true, First: run(a), Second: run(b)}
	p.fact(FactSent, t, a.At, "%s sent it.", a.Client)
	p.fact(FactSent, t, b.At, "%s sent it again under the same id, %s later.", b.Client, span(b.At-a.At))
	j.pairs = append(j.pairs, p)
}

// begun reports whether an execution was more than received.
func begun(e *state.Execution) bool { return e.StartedAt != 0 || ended(e) != 0 }

// ended is when an execution ended or was retried, 0 if that is unknown.
func ended(e *state.Execution) int64 {
	return cmp.Or(e.SucceededAt, e.FailedAt, e.RevokedAt, e.RejectedAt, e.RetriedAt)
}

func runOf(t *state.Task, e *state.Execution) Run {
	return Run{
		TaskID: t.ID, Attempt: e.Attempt, Worker: e.Worker, PID: e.PID, State: e.State,
		ReceivedAt: e.ReceivedAt, StartedAt: e.StartedAt, EndedAt: ended(e),
	}
}

// redelivery judges an attempt that was received again after it had begun.
func (j *judge) redelivery(t *state.Task, a, b *state.Execution) {
	resent := slices.ContainsFunc(t.Sends, func(s state.Sent) bool { return s.Attempt == b.Attempt })
	p := Pair{Verdict: Redelivery, Proved: !resent, First: runOf(t, a), Second: runOf(t, b)}
	p.times(t, &p.First)
	p.fact(FactRedelivered, t, b.ReceivedAt, "%s received the same attempt again.", worker(b.Worker))
	if resent {
		p.fact(FactSent, t, 0, "The attempt was also sent more than once: this may have been another message.")
	}
	p.times(t, &p.Second)
	switch {
	case p.First.EndedAt != 0:
	case a.Worker == b.Worker && a.PID != 0 && b.PID != 0 && a.PID != b.PID:
		p.fact(FactWorkerLost, t, 0, "Process %d of %s is gone: process %d took its place.", a.PID, worker(a.Worker), b.PID)
	default:
		p.fact(FactNoEnd, t, 0, "%s never reported the end of the first run.", worker(a.Worker))
	}
	j.acksLate(&p, t, a.Worker)
	if p.First.EndedAt != 0 && a.SucceededAt != 0 {
		p.WastedSeconds = length(&p.Second)
	}
	j.pairs = append(j.pairs, p)
}

func (j *judge) retry(t *state.Task, a, b *state.Execution) {
	p := Pair{Verdict: Retry, Proved: true, First: runOf(t, a), Second: runOf(t, b)}
	p.times(t, &p.First)
	p.fact(FactAttempt, t, b.ReceivedAt, "%s received attempt %d.", worker(b.Worker), b.Attempt+1)
	j.pairs = append(j.pairs, p)
}

func (j *judge) acksLate(p *Pair, t *state.Task, name string) {
	if j.AcksLate == nil || t.Name == nil {
		return
	}
	switch late, ok := j.AcksLate(name, *t.Name); {
	case ok && late:
		p.fact(FactAcksLate, t, 0, "%s acknowledges the task after it has run, so a run that does not end is delivered again.", worker(name))
	case ok:
		p.fact(FactAcksLate, t, 0, "%s acknowledges the task before it runs.", worker(name))
	}
}

// timed is a task that ran, by the local clock where that of its worker was compared with it.
type timed struct {
	Span

	task     *state.Task
	run      Run
	compared bool // the clock was compared
}

// between judges the tasks with each other.
func (j *judge) between(tasks []state.Task) {
	var ran, skipped []timed
	for i := range tasks {
		t := &tasks[i]
		switch r := j.timed(t); {
		case t.OwnDuplicates()&state.Skipped != 0:
			skipped = append(skipped, r)
		case r.Started != 0:
			ran = append(ran, r)
		}
	}
	byStart := func(a, b timed) int {
		return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.task.ID, b.task.ID))
	}
	slices.SortFunc(ran, byStart)
	for i := range ran {
		j.repeated(ran[:i], &ran[i])
	}
	for i := range skipped {
		j.skipped(ran, &skipped[i])
	}
}

// timed returns when a task ran.
func (j *judge) timed(t *state.Task) timed {
	r := timed{Span: SpanOf(t), task: t, run: Run{TaskID: t.ID, State: t.State, StartedAt: t.StartedAt, ReceivedAt: t.ReceivedAt}}
	if n := len(t.Executions); n > 0 {
		e := &t.Executions[n-1]
		r.run = runOf(t, e)
	}
	if t.Worker != nil {
		r.run.Worker = *t.Worker
	}
	r.run.StartedAt = cmp.Or(r.Started, r.run.StartedAt)
	if j.Offset == nil || r.run.Worker == "" {
		return r
	}
	var offset int64
	if offset, r.compared = j.Offset(r.run.Worker); r.compared && r.Started != 0 {
		r.Started -= offset
		if r.Ended != math.MaxInt64 {
			r.Ended -= offset
		}
	}
	return r
}

// repeated judges a task with the latest of those that started before it which it repeats: one that was running, else one
// that had succeeded.
func (j *judge) repeated(before []timed, b *timed) {
	for _, verdict := range []Verdict{Overlapping, Rerun} {
		for i := len(before) - 1; i >= 0; i-- {
			a := &before[i]
			ofA, ofB := Compare(a.Span, b.Span)
			if (ofA|ofB)&verdict.Mark() == 0 || ofB&verdict.Mark() == 0 {
				continue
			}
			if verdict == Overlapping {
				j.overlapping(a, b)
			} else {
				j.rerun(a, b)
			}
			return
		}
	}
}

func (j *judge) overlapping(a, b *timed) {
	p := Pair{Verdict: Overlapping, First: a.run, Second: b.run}
	end := min(a.Ended, b.Ended)
	running := end == math.MaxInt64
	if running {
		end = max(j.Now, b.Started)
	}
	shared := end - b.Started
	p.WastedSeconds = float64(shared) / 1e6
	p.Proved = a.Ended != math.MaxInt64 && certain(a, b, shared)
	p.times(a.task, &p.First)
	p.times(b.task, &p.Second)
	if running {
		p.fact(FactOverlap, b.task, 0, "Neither has reported an end: they have run side by side for %s.", span(shared))
	} else {
		p.fact(FactOverlap, b.task, 0, "They ran side by side for %s.", span(shared))
	}
	j.clocks(&p, a, b)
	j.pairs = append(j.pairs, p)
}

func (j *judge) rerun(a, b *timed) {
	p := Pair{Verdict: Rerun, First: a.run, Second: b.run, Proved: certain(a, b, b.Started-a.Ended)}
	if b.Ended != math.MaxInt64 {
		p.WastedSeconds = float64(b.Ended-b.Started) / 1e6
	}
	p.times(a.task, &p.First)
	p.times(b.task, &p.Second)
	j.clocks(&p, a, b)
	j.pairs = append(j.pairs, p)
}

// certain reports whether two tasks surely ran as their times say, which differ by that many µs.
func certain(a, b *timed, by int64) bool {
	if a.run.Worker != "" && a.run.Worker == b.run.Worker {
		return by > 0
	}
	return a.compared && b.compared && by > margin
}

// clocks says how well the clocks of two workers agree.
func (j *judge) clocks(p *Pair, a, b *timed) {
	switch {
	case a.run.Worker != "" && a.run.Worker == b.run.Worker:
		p.fact(FactClocks, b.task, 0, "Both times are by the clock of %s.", worker(a.run.Worker))
	case a.compared && b.compared:
		p.fact(FactClocks, b.task, 0, "The clocks of %s and %s were compared by their heartbeats, to about %s.",
			worker(a.run.Worker), worker(b.run.Worker), span(margin))
	default:
		p.fact(FactClocks, b.task, 0, "The clocks of %s and %s were not compared: their times may not agree.",
			worker(a.run.Worker), worker(b.run.Worker))
	}
}

// skipped judges a task that a lock has skipped, with the latest that had started before it ended.
func (j *judge) skipped(ran []timed, b *timed) {
	reason, _ := state.SkipReason(b.task.Result)
	p := Pair{Verdict: Skipped, Proved: true, Second: b.run}
	for i := len(ran) - 1; i >= 0; i-- {
		if a := &ran[i]; b.run.EndedAt == 0 || a.run.StartedAt <= b.run.EndedAt {
			p.First = a.run
			p.times(a.task, &p.First)
			break
		}
	}
	p.fact(FactSkipReason, b.task, b.run.EndedAt, "Its result says that it was skipped: %s.", reason)
	j.pairs = append(j.pairs, p)
}

// times adds when a run started and ended.
func (p *Pair) times(t *state.Task, r *Run) {
	if r.StartedAt != 0 {
		p.fact(FactStarted, t, r.StartedAt, "%s started it.", worker(r.Worker))
	} else if r.ReceivedAt != 0 {
		p.fact(FactReceived, t, r.ReceivedAt, "%s received it.", worker(r.Worker))
	}
	if r.EndedAt != 0 {
		p.fact(FactEnded, t, r.EndedAt, "It ended as %s.", r.State)
	}
}

func (p *Pair) fact(kind FactKind, t *state.Task, at int64, format string, args ...any) {
	p.Evidence = append(p.Evidence, Fact{Kind: kind, Text: fmt.Sprintf(format, args...), At: at, Task: t.ID})
}

// worker returns the name of a worker for a sentence.
func worker(name string) string { return cmp.Or(name, "A worker") }

// length is how many seconds a run took, 0 if unknown.
func length(r *Run) float64 {
	if r.StartedAt == 0 || r.EndedAt < r.StartedAt {
		return 0
	}
	return float64(r.EndedAt-r.StartedAt) / 1e6
}

// span writes µs for people.
func span(micros int64) string {
	d := time.Duration(micros) * time.Microsecond
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Millisecond).String()
	}
}
