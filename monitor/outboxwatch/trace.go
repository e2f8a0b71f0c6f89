package outboxwatch

import (
	"context"
	"slices"
	"time"
)

// Stage is how far a task has come on its way through an outbox: the state of its row, or one of these.
type Stage string

// Stages of tasks without a row.
const (
	Sent Stage = "sent" // the relay has deleted the row, as it does once the broker has the message
	Dead Stage = "dead" // the relay has given it up
)

// Stages of tasks that need attention, beside the stage that they are in.
const (
	Unsent     Stage = "unsent"     // committed, and ready for the relay for StoppedAfter at least
	Unreceived Stage = "unreceived" // sent ReceiveAfter ago or earlier; whether a worker has it, events tell
	Resent     Stage = "resent"     // taken again although an earlier attempt may have sent it
)

// ReceiveAfter is how long a task may have been sent before it counts as Unreceived.
const ReceiveAfter = time.Minute

// Stages returns all stages in the order of a task's way.
func Stages() []Stage {
	return []Stage{
		Stage(Pending), Stage(InFlight), Stage(Stale), Stage(Deferred), Stage(Due), Stage(OtherSchema), Dead, Sent, Unsent, Unreceived, Resent,
	}
}

// Trace is what is known of a task in an outbox. Times are by the clock of its database, zero if unknown.
type Trace struct {
	Outbox   string
	TaskID   string
	TaskName string
	Stage    Stage

	CommittedAt time.Time   // created_at of the row
	Claims      []time.Time // when a relay took it, as far as that was seen: the last MaxClaims, oldest first
	Retries     int
	RetryAfter  time.Time // of a row whose sending failed
	SentBy      time.Time // when its row was first missed: it was sent before, and after SeenAt
	SeenAt      time.Time // when the row was last read
	DeadAt      time.Time
	Reason      string // of a dead letter
	// Resent reports that a relay has taken the row again after the stale timeout, without a failure in between: what it
	// did before may have sent the message, and so may this.
	Resent bool

	row, letter int64 // ids, 0 if there is none
	number      uint64
}

// MaxClaims is how many claims of one task are remembered.
const MaxClaims = 8

const (
	maxTraces   = 20_000 // of one outbox
	tracedPages = 4      // of rows read each time
)

// Is reports whether the task is at a stage as of now, or needs that attention. Unreceived is of what was sent alone.
func (t *Trace) Is(s Stage, now time.Time) bool {
	switch s {
	case Unsent:
		ready := State(t.Stage).Ready()
		since := t.CommittedAt
		if t.RetryAfter.After(since) {
			since = t.RetryAfter
		}
		return ready && now.Sub(since) >= StoppedAfter
	case Unreceived:
		return t.Stage == Sent && now.Sub(t.SentBy) >= ReceiveAfter
	case Resent:
		return t.Resent
	default:
		return t.Stage == s
	}
}

// traces are the tasks seen in one outbox. It is not safe for concurrent use.
type traces struct {
	byTask map[string]*Trace
	last   uint64 // number of the trace that changed last
}

// get returns the trace of a task, a new one if there is none.
func (t *traces) get(id string) *Trace {
	if t.byTask == nil {
		t.byTask = make(map[string]*Trace)
	}
	e := t.byTask[id]
	if e == nil {
		e = &Trace{TaskID: id}
		t.byTask[id] = e
		t.bound()
	}
	t.last++
	e.number = t.last
	return e
}

// bound forgets a tenth, those that changed longest ago, if there are too many.
func (t *traces) bound() {
	if len(t.byTask) <= maxTraces {
		return
	}
	numbers := make([]uint64, 0, len(t.byTask))
	for _, e := range t.byTask {
		numbers = append(numbers, e.number)
	}
	slices.Sort(numbers)
	limit := numbers[len(numbers)/10]
	for id, e := range t.byTask {
		if e.number < limit {
			delete(t.byTask, id)
		}
	}
}

// see notes a row as it was read at a time.
func (t *traces) see(outbox string, r *Row, now time.Time) {
	e := t.get(r.TaskID)
	if e.row != r.ID { // a new row, perhaps of a dead letter that was requeued
		*e = Trace{TaskID: r.TaskID, number: e.number, row: r.ID}
	}
	claimed := e.lastClaim()
	if !r.UpdatedAt.IsZero() && r.RetryAfter.IsZero() && r.UpdatedAt.After(claimed) {
		if len(e.Claims) > 0 {
			e.Resent = true
		}
		e.Claims = append(e.Claims, r.UpdatedAt)
		e.Claims = e.Claims[max(0, len(e.Claims)-MaxClaims):]
	}
	e.Outbox, e.TaskName, e.Stage, e.CommittedAt = outbox, r.TaskName, Stage(r.State), r.CreatedAt
	e.Retries, e.RetryAfter, e.SeenAt = r.Retries, r.RetryAfter, now
}

// lastClaim is when a relay last took the row, zero if it has failed since.
func (t *Trace) lastClaim() time.Time {
	if len(t.Claims) == 0 {
		return time.Time{}
	}
	return t.Claims[len(t.Claims)-1]
}

// bury notes a dead letter.
func (t *traces) bury(outbox string, d *DeadLetter) {
	e := t.get(d.TaskID)
	e.Outbox, e.TaskName, e.Stage, e.CommittedAt = outbox, d.TaskName, Dead, d.CreatedAt
	e.Retries, e.DeadAt, e.Reason, e.RetryAfter, e.letter, e.row = d.Retries, d.DeadAt, d.Reason, time.Time{}, d.ID, 0
}

// miss notes that a task has neither row nor dead letter any longer.
func (t *traces) miss(id string, now time.Time) {
	e := t.byTask[id]
	switch {
	case e == nil:
	case e.row != 0:
		e.Stage, e.SentBy, e.row, e.RetryAfter = Sent, now, 0, time.Time{}
		t.last++
		e.number = t.last
	case e.letter != 0: // removed
		delete(t.byTask, id)
	}
}

// trace follows the tasks of the rows that the relay takes first and of the newest dead letters, and looks for those that it
// has followed and does not find there.
func (w *Watcher) trace(ctx context.Context, i int, now time.Time) error {
	source := w.sources[i]
	var rows []Row
	r := RowRequest{Limit: MaxPage}
	for range tracedPages {
		page, err := source.Rows(ctx, r)
		if err != nil {
			return err
		}
		rows = append(rows, page.Rows...)
		if r.After = page.Next; r.After == "" {
			break
		}
	}
	dead, err := source.DeadLetters(ctx, DeadLetterRequest{Limit: MaxPage})
	if err != nil {
		return err
	}
	missing := w.traceFound(i, rows, r.After == "", dead, now)
	for part := range slices.Chunk(missing, MaxByTask) {
		rows, dead, err := source.ByTask(ctx, part)
		if err != nil {
			return err
		}
		w.traceLookedUp(i, part, rows, dead, now)
	}
	return nil
}

// traceFound notes what was read and returns the tasks that should have been among it and were not. whole reports that all
// rows were read.
func (w *Watcher) traceFound(i int, rows []Row, whole bool, dead DeadLetterPage, now time.Time) (missing []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &w.traced[i]
	found := make(map[string]bool, len(rows)+len(dead.DeadLetters))
	for n := range dead.DeadLetters {
		found[dead.DeadLetters[n].TaskID] = true
		t.bury(w.sources[i].Name(), &dead.DeadLetters[n])
	}
	for n := range rows {
		found[rows[n].TaskID] = true
		t.see(w.sources[i].Name(), &rows[n], now)
	}
	last := int64(0)
	if len(rows) > 0 {
		last = rows[len(rows)-1].ID
	}
	for id, e := range t.byTask {
		row := e.row != 0 && (whole || e.row <= last)
		letter := e.letter != 0 && e.row == 0 && e.Stage == Dead
		if !found[id] && (row || letter) {
			missing = append(missing, id)
		}
	}
	return missing
}

// traceLookedUp notes what was found of tasks.
func (w *Watcher) traceLookedUp(i int, tasks []string, rows []Row, dead []DeadLetter, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &w.traced[i]
	found := make(map[string]bool, len(tasks))
	for n := range dead {
		found[dead[n].TaskID] = true
		t.bury(w.sources[i].Name(), &dead[n])
	}
	for n := range rows {
		found[rows[n].TaskID] = true
		t.see(w.sources[i].Name(), &rows[n], now)
	}
	for _, id := range tasks {
		if !found[id] {
			t.miss(id, now)
		}
	}
}

// Trace returns what is known of a task in any outbox, false if none of the rows read was its. It reads no database.
func (w *Watcher) Trace(id string) (Trace, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.traced {
		if e := w.traced[i].byTask[id]; e != nil {
			found := *e
			found.Claims = slices.Clone(e.Claims)
			return found, true
		}
	}
	return Trace{}, false
}

// Attention is why a task in an outbox needs attention.
type Attention struct {
	Unsent, Unreceived, Resent bool // whether the stage of that name is the task's
}

// Attention returns why a task needs attention, by the clock of its outbox's database. Events tell whether a worker has a
// task that counts as unreceived.
func (w *Watcher) Attention(t *Trace) Attention {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.state {
		if w.state[i].Name == t.Outbox {
			now := w.state[i].Stats.Now
			return Attention{t.Is(Unsent, now), t.Is(Unreceived, now), t.Resent}
		}
	}
	return Attention{}
}

// Traces returns the tasks at a stage, or all if it is empty, newest change first, at most limit.
func (w *Watcher) Traces(s Stage, limit int) []Trace {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []Trace
	for i := range w.traced {
		now := w.state[i].Stats.Now
		for _, e := range w.traced[i].byTask {
			if s == "" || e.Is(s, now) {
				list = append(list, *e)
			}
		}
	}
	slices.SortFunc(list, func(a, b Trace) int { return int(int64(b.number) - int64(a.number)) })
	return list[:min(len(list), limit)]
}

const (
	lookupAge     = 2 * time.Second // how long what was looked up of one task is not looked up again
	lookupTimeout = time.Second     // for all outboxes
)

// Look reads what the outboxes have of a task now, and returns its Trace, false if it was never seen in any. It leaves out
// outboxes that could not be read the last time, and those that have not answered within a second.
func (w *Watcher) Look(ctx context.Context, id string) (Trace, bool) {
	if w.looks(id) {
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		over := make(chan struct{})
		go func() { // a driver may not return when ctx ends
			defer close(over)
			w.lookUp(ctx, id)
		}()
		select {
		case <-over:
		case <-ctx.Done():
		}
	}
	return w.Trace(id)
}

func (w *Watcher) lookUp(ctx context.Context, id string) {
	for i, o := range w.Snapshot() {
		if o.Err != nil || ctx.Err() != nil {
			continue
		}
		rows, dead, err := w.sources[i].ByTask(ctx, []string{id})
		if err == nil {
			w.traceLookedUp(i, []string{id}, rows, dead, o.Stats.Now)
		}
	}
}

// looks reports whether a task is to be looked up, and remembers that.
func (w *Watcher) looks(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if at, ok := w.lookedUp[id]; ok && now.Sub(at).Abs() < lookupAge {
		return false
	}
	if w.lookedUp == nil || len(w.lookedUp) >= maxTraces/10 {
		w.lookedUp = make(map[string]time.Time)
	}
	w.lookedUp[id] = now
	return true
}
