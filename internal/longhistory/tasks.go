// Package longhistory writes histories of millions of tasks, always the same ones, to measure what grows with a history.
package longhistory

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/uuidtext"
	"github.com/umbelhq/umbel/state"
)

const (
	start  = 1_767_603_600_000_000 // when the first task is sent, µs
	span   = 500_000_000_000       // from the first to the last, µs: 5.8 days, however many there are
	after  = 500_000_000           // from the last task until Now, µs
	late   = 200_000               // tasks that begin before one that takes long ends
	active = 500                   // the last tasks, which have not ended
)

// Now is shortly after the last task.
func Now() time.Time { return time.UnixMicro(start + span + after) }

// Tasks are as many tasks, of 40 names on 16 workers: 1 in 50 has failed, 1 in 200 was retried, 1 in 5 has a parent, 1 in 100
// repeats the call of another, and 1 in 1,000 takes long.
type Tasks int

// Micros is when task i is sent.
func (n Tasks) Micros(i int) int64 { return start + int64(i)*(span/int64(n)) }

// ID is the id of task i.
func (Tasks) ID(i int) string {
	var b [16]byte
	rng := rand.New(rand.NewPCG(uint64(i), 3))
	binary.LittleEndian.PutUint64(b[:], rng.Uint64())
	binary.LittleEndian.PutUint64(b[8:], rng.Uint64())
	text := uuidtext.Format(b)
	return string(text[:])
}

// Order is a number in the arguments of task i, which only tasks of the same call have.
func (Tasks) Order(i int) string { return fmt.Sprintf("%08x", uint32(caller(i))*2654435761) }

// Name is the name of task i.
func (n Tasks) Name(i int) string { return name(call(i).IntN(40)) }

func name(n int) string {
	return fmt.Sprintf("%s.%s_%d", []string{"billing", "mail", "search", "reports"}[n%4], []string{"charge", "send", "index", "export"}[n/10], n)
}

// caller returns the task whose call task i repeats, or i.
func caller(i int) int {
	if i%100 == 3 {
		return i - i%1000
	}
	return i
}

// call returns what chooses the call of task i.
func call(i int) *rand.Rand { return rand.New(rand.NewPCG(uint64(caller(i)), 1)) }

// Events returns the events of task i in order. One that takes long has no end: LateEnd is it.
func (n Tasks) Events(i int) []*state.Event {
	events := n.events(i)
	if takesLong(i) || i >= int(n)-active {
		return events[:3]
	}
	return events
}

func takesLong(i int) bool { return i%1000 == 7 }

// LateEnd returns the event that ends a task that takes long at about the time when task i is sent, nil if none ends then.
func (n Tasks) LateEnd(i int) *state.Event {
	if i < late || !takesLong(i-late) {
		return nil
	}
	e := n.events(i - late)[3]
	e.Micros, e.ReceivedMicros = n.Micros(i), n.Micros(i)+1_000
	return e
}

func (n Tasks) events(i int) []*state.Event {
	c, rng := call(i), rand.New(rand.NewPCG(uint64(i), 2))
	k := c.IntN(40)
	worker, at, id := fmt.Sprintf("celery@web-%d", k%8*2+rng.IntN(2)), n.Micros(i), n.ID(i)
	wait, run := int64(rng.ExpFloat64()*200_000), rng.ExpFloat64()*0.3
	sent := &state.Event{
		Kind: state.TaskSent, Hostname: fmt.Sprintf("gen%d@api-%d", 100+k%4, k%4), Micros: at, Queue: []string{"default", "high", "low", "mail"}[k%4],
		RoutingKey: "default",
		Present:    state.FieldQueue | state.FieldExchange | state.FieldRoutingKey,
	}
	received := &state.Event{
		Kind: state.TaskReceived, Hostname: worker, PID: 7, Micros: at + 2_000,
		Args:   fmt.Sprintf("('%s', %d)", n.Order(i), c.IntN(100_000)),
		Kwargs: fmt.Sprintf("{'customer': %d, 'amount': %d.%02d, 'currency': '%s'}", c.IntN(100_000), c.IntN(500), c.IntN(100), []string{"eur", "usd", "chf"}[c.IntN(3)]),
		RootID: id, Present: state.FieldArgs | state.FieldKwargs | state.FieldRootID | state.FieldRetries,
	}
	if i%5 == 4 {
		received.RootID, received.ParentID = n.ID(i-i%5), n.ID(i-1)
		received.Present |= state.FieldParentID
	}
	if i%200 == 13 {
		received.Retries = int64(1 + i%3)
	}
	began := &state.Event{Kind: state.TaskStarted, Hostname: worker, PID: 7, Micros: at + 2_000 + wait}
	events := []*state.Event{sent, received, began, ended(i, rng, worker, began.Micros, run)}
	for _, e := range events {
		e.ID, e.Name, e.ReceivedMicros = id, name(k), e.Micros+1_000
		e.Present |= state.FieldName | state.FieldTimestamp | state.FieldPID
	}
	return events
}

// ended returns the event that ends task i after a run of so many seconds.
func ended(i int, rng *rand.Rand, worker string, began int64, run float64) *state.Event {
	e := &state.Event{Kind: state.TaskSucceeded, Hostname: worker, PID: 7, Micros: began + int64(run*1e6)}
	if i%50 != 11 {
		e.Runtime, e.Result, e.Present = run, fmt.Sprintf("{'status': 'ok', 'rows': %d}", rng.IntN(1000)), state.FieldResult|state.FieldRuntime
		return e
	}
	e.Kind, e.Present = state.TaskFailed, state.FieldException|state.FieldTraceback
	e.Exception = fmt.Sprintf("PaymentError('order %d is closed')", rng.IntN(100_000))
	e.Traceback = "Traceback (most recent call last):\n" + strings.Repeat("  File \"/app/shop/billing/gateway.py\", line 40, in charge\n    return self.post(order)\n", 6)
	return e
}
