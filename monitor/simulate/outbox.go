package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
)

const (
	outboxTask     = "mail.send_receipt"
	outboxQueue    = "mail"
	outboxMaxRetry = 3
	outboxBackoff  = 10 * time.Second // doubles with every retry
	outboxCycle    = 10 * time.Minute
	outboxStops    = 3 * time.Minute // into a cycle; the relay is started again at outboxStarts
	outboxStarts   = 7 * time.Minute
	outboxLimit    = 10_000 // dead letters
)

// Outbox is the outbox of the shop, in memory: a part of the receipts goes through it. One row of forty cannot be sent and
// becomes a dead letter, and in every ten minutes the relay stops for four. It is an outboxwatch.Source whose dead letters
// can be changed, and safe for concurrent use.
type Outbox struct {
	mu      sync.Mutex
	rng     *rand.Rand
	started time.Time
	now     func() time.Time
	last    int64
	rows    []outboxwatch.Row // by id
	dead    []outboxwatch.DeadLetter
}

// NewOutbox returns an outbox with two dead letters.
func NewOutbox(seed uint64, now func() time.Time) *Outbox {
	o := &Outbox{rng: rand.New(rand.NewPCG(seed, 37)), started: now(), now: now}
	for i := range 2 {
		r := o.enqueue(o.started.Add(-time.Duration(70-i) * time.Minute))
		r.Retries = outboxMaxRetry
		o.bury(r, r.CreatedAt.Add(2*time.Minute))
	}
	o.rows = nil
	return o
}

// Run enqueues and sends receipts until ctx ends. deliver puts a message into a queue.
func (o *Outbox) Run(ctx context.Context, deliver func(ctx context.Context, queue string, m broker.Publishing) bool) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		for _, m := range o.step(o.now()) {
			deliver(ctx, outboxQueue, m)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// step does what happens in a second, and returns the messages that the relay sends.
func (o *Outbox) step(now time.Time) (sent []broker.Publishing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rng.IntN(2) == 0 {
		o.enqueue(now)
	}
	if at := now.Sub(o.started) % outboxCycle; at >= outboxStops && at < outboxStarts {
		return nil
	}
	kept := o.rows[:0]
	for _, r := range o.rows {
		switch state := outboxwatch.StateOf(r, now, time.Minute); {
		case state == outboxwatch.InFlight && r.ID%40 != 0:
			sent = append(sent, outboxMessage(r))
			continue
		case state == outboxwatch.InFlight && r.Retries >= outboxMaxRetry-1:
			o.bury(r, now)
			continue
		case state == outboxwatch.InFlight:
			r.RetryAfter, r.Retries = now.Add(outboxBackoff<<r.Retries), r.Retries+1
		case state.Ready():
			r.UpdatedAt, r.RetryAfter = now, time.Time{}
		}
		kept = append(kept, r)
	}
	o.rows = kept
	return sent
}

// enqueue commits a row.
func (o *Outbox) enqueue(at time.Time) outboxwatch.Row {
	o.last++
	id := fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", o.rng.Uint32(), o.rng.Uint32()>>16, o.rng.Uint32()>>20, o.rng.Uint32()>>20, o.rng.Uint64()>>16)
	args := json.RawMessage(fmt.Sprintf(`[%d]`, 48_000+o.last))
	kwargs := json.RawMessage(`{"to":"***","template":"receipt"}`)
	options := json.RawMessage(`{"queue":"mail"}`)
	r := outboxwatch.Row{
		ID: o.last, TaskID: id, TaskName: outboxTask, CreatedAt: at, SchemaVersion: outboxwatch.MaxSchemaVersion,
		Payload: outboxwatch.Payload{
			Args: args, Kwargs: kwargs, Options: options, RedactedKwargs: true, ArgsSize: len(args), KwargsSize: len(kwargs), OptionsSize: len(options),
		},
	}
	o.rows = append(o.rows, r)
	return r
}

// bury makes a row a dead letter.
func (o *Outbox) bury(r outboxwatch.Row, at time.Time) {
	o.dead = append(o.dead, outboxwatch.DeadLetter{
		ID: r.ID, TaskID: r.TaskID, TaskName: r.TaskName, CreatedAt: r.CreatedAt, DeadAt: at, Retries: r.Retries, Reason: "max retries exceeded",
		SchemaVersion: r.SchemaVersion, Payload: r.Payload,
	})
	if len(o.dead) > outboxLimit {
		o.dead = slices.Delete(o.dead, 0, 1)
	}
}

func outboxMessage(r outboxwatch.Row) broker.Publishing {
	return broker.Publishing{Headers: map[string]any{
		"task": r.TaskName, "id": r.TaskID, "root_id": r.TaskID,
		"argsrepr": "(" + strings.Trim(string(r.Args), "[]") + ",)", "kwargsrepr": "{'to': '***', 'template': 'receipt'}",
	}}
}

// Name returns the name of the outbox.
func (*Outbox) Name() string { return "shop" }

// String returns an address for people.
func (*Outbox) String() string { return "memory://shop" }

// Close does nothing.
func (*Outbox) Close() error { return nil }

// Stats sums up the outbox.
func (o *Outbox) Stats(context.Context) (outboxwatch.Stats, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	s := outboxwatch.Stats{Now: now, States: map[outboxwatch.State]history.Count{}, Server: "A simulated database", Retries: history.Count{Exact: true}}
	for _, state := range outboxwatch.States() {
		s.States[state] = history.Count{Exact: true}
	}
	for _, r := range o.rows {
		state := outboxwatch.StateOf(r, now, 5*time.Minute)
		c := s.States[state]
		c.N++
		s.States[state] = c
		s.Retries.N += r.Retries
		if r.UpdatedAt.After(s.LastTaken) {
			s.LastTaken = r.UpdatedAt
		}
		if state.Ready() && s.FirstReady == 0 {
			s.FirstReady, s.OldestReady, s.ReadySince = r.ID, r.CreatedAt, r.CreatedAt
		}
	}
	if s.Retries.N > 0 {
		s.TopFailing = []outboxwatch.NameCount{{Name: outboxTask, N: s.Retries.N}}
	}
	if s.DeadLetters = (history.Count{N: len(o.dead), Exact: true}); len(o.dead) > 0 {
		s.OldestDead = o.dead[0].DeadAt
		s.Reasons = []outboxwatch.NameCount{{Name: "max retries exceeded", N: len(o.dead)}}
		s.DeadNames = []outboxwatch.NameCount{{Name: outboxTask, N: len(o.dead)}}
	}
	return s, nil
}

// Rows returns a page of the outbox.
func (o *Outbox) Rows(_ context.Context, r outboxwatch.RowRequest) (page outboxwatch.RowPage, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	after := outboxCursor(r.After)
	for _, row := range o.rows {
		row.State = outboxwatch.StateOf(row, o.now(), 5*time.Minute)
		if row.ID <= after || r.State != "" && row.State != r.State || !named(r.Name, row.TaskName) {
			continue
		}
		if len(page.Rows) == r.Limit {
			page.Next = strconv.FormatInt(page.Rows[r.Limit-1].ID, 10)
			break
		}
		page.Rows = append(page.Rows, row)
	}
	return page, nil
}

// DeadLetters returns a page of the dead letters, newest first.
func (o *Outbox) DeadLetters(_ context.Context, r outboxwatch.DeadLetterRequest) (page outboxwatch.DeadLetterPage, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := outboxCursor(r.After)
	for _, d := range slices.Backward(o.dead) {
		if before != 0 && d.ID >= before || r.IDs != nil && !slices.Contains(r.IDs, d.ID) || !named(r.Name, d.TaskName) {
			continue
		}
		if len(page.DeadLetters) == r.Limit {
			page.Next = strconv.FormatInt(page.DeadLetters[r.Limit-1].ID, 10)
			break
		}
		page.DeadLetters = append(page.DeadLetters, d)
	}
	return page, nil
}

// ByTask returns the rows and dead letters of tasks.
func (o *Outbox) ByTask(_ context.Context, ids []string) (rows []outboxwatch.Row, dead []outboxwatch.DeadLetter, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.rows {
		if slices.Contains(ids, r.TaskID) {
			r.State = outboxwatch.StateOf(r, o.now(), 5*time.Minute)
			rows = append(rows, r)
		}
	}
	for _, d := range o.dead {
		if slices.Contains(ids, d.TaskID) {
			dead = append(dead, d)
		}
	}
	return rows, dead, nil
}

// Requeue moves dead letters into the outbox.
func (o *Outbox) Requeue(_ context.Context, letters []outboxwatch.Letter) (c outboxwatch.Change, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.take(letters, &c, func(d outboxwatch.DeadLetter) {
		o.last++
		o.rows = append(o.rows, outboxwatch.Row{
			ID: o.last, TaskID: d.TaskID, TaskName: d.TaskName, CreatedAt: o.now(), SchemaVersion: d.SchemaVersion, Payload: d.Payload,
		})
	})
	return c, nil
}

// Purge removes dead letters.
func (o *Outbox) Purge(_ context.Context, letters []outboxwatch.Letter) (c outboxwatch.Change, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.take(letters, &c, func(outboxwatch.DeadLetter) {})
	return c, nil
}

// take removes dead letters and calls f for each.
func (o *Outbox) take(letters []outboxwatch.Letter, c *outboxwatch.Change, f func(outboxwatch.DeadLetter)) {
	o.dead = slices.DeleteFunc(o.dead, func(d outboxwatch.DeadLetter) bool {
		letter := outboxwatch.Letter{ID: d.ID, TaskID: d.TaskID}
		if !slices.Contains(letters, letter) {
			return false
		}
		c.Done = append(c.Done, letter)
		f(d)
		return true
	})
}

func outboxCursor(text string) (id int64) {
	_, _ = fmt.Sscan(text, &id)
	return id
}

// named reports whether a name is the wanted one, or begins with what is before its *.
func named(wanted, name string) bool {
	prefix, ok := strings.CutSuffix(wanted, "*")
	return wanted == "" || ok && strings.HasPrefix(name, prefix) || wanted == name
}
