package outboxwatch_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/outboxwatch"
)

// table is an outbox in memory. Its clock is the test's.
type table struct {
	outboxwatch.Source

	mu   sync.Mutex
	rows []outboxwatch.Row
	dead []outboxwatch.DeadLetter
}

func (*table) Name() string   { return "shop" }
func (*table) String() string { return "sqlite:////shop.db" }
func (*table) Close() error   { return nil }

func (*table) Stats(context.Context) (outboxwatch.Stats, error) {
	return outboxwatch.Stats{Now: time.Now()}, nil
}

// set replaces what is in the tables.
func (o *table) set(rows []outboxwatch.Row, dead ...outboxwatch.DeadLetter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rows, o.dead = rows, dead
}

func (o *table) Rows(context.Context, outboxwatch.RowRequest) (page outboxwatch.RowPage, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	page.Rows = slices.Clone(o.rows)
	for i := range page.Rows {
		page.Rows[i].State = outboxwatch.StateOf(page.Rows[i], time.Now(), 5*time.Minute)
	}
	return page, nil
}

func (o *table) DeadLetters(context.Context, outboxwatch.DeadLetterRequest) (outboxwatch.DeadLetterPage, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return outboxwatch.DeadLetterPage{DeadLetters: slices.Clone(o.dead)}, nil
}

func (o *table) ByTask(ctx context.Context, ids []string) ([]outboxwatch.Row, []outboxwatch.DeadLetter, error) {
	page, _ := o.Rows(ctx, outboxwatch.RowRequest{})
	dead, _ := o.DeadLetters(ctx, outboxwatch.DeadLetterRequest{})
	rows := slices.DeleteFunc(page.Rows, func(r outboxwatch.Row) bool { return !slices.Contains(ids, r.TaskID) })
	return rows, slices.DeleteFunc(dead.DeadLetters, func(d outboxwatch.DeadLetter) bool { return !slices.Contains(ids, d.TaskID) }), nil
}

// TestTraceFollowsATask takes a row through all that a relay may do to it.
func TestTraceFollowsATask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &table{}
		w, err := outboxwatch.New(outboxwatch.Options{Sources: []outboxwatch.Source{o}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { _ = w.Run(ctx) })
		defer run.Wait()
		defer cancel()

		start := time.Now()
		row := outboxwatch.Row{ID: 1, TaskID: "a", TaskName: "shop.pay", CreatedAt: start, SchemaVersion: 1}
		expect := func(want ...outboxwatch.Stage) {
			t.Helper()
			<-time.After(6 * time.Second) // of the bubble: the next reading
			synctest.Wait()
			for _, s := range outboxwatch.Stages() {
				got := len(w.Traces(s, 10)) == 1
				if got != slices.Contains(want, s) {
					t.Errorf("after %v: task is %s = %v", time.Since(start), s, got)
				}
			}
		}
		o.set([]outboxwatch.Row{row})
		expect("pending")
		<-time.After(outboxwatch.StoppedAfter)
		expect("pending", outboxwatch.Unsent)

		row.UpdatedAt = time.Now()
		o.set([]outboxwatch.Row{row})
		expect("in_flight")
		<-time.After(5 * time.Minute)
		expect("stale", outboxwatch.Unsent)
		row.UpdatedAt = time.Now() // the relay had crashed, and takes it again
		o.set([]outboxwatch.Row{row})
		expect("in_flight", outboxwatch.Resent)

		row.UpdatedAt, row.RetryAfter, row.Retries = time.Now(), time.Now().Add(time.Hour), 1
		o.set([]outboxwatch.Row{row})
		expect("deferred", outboxwatch.Resent)
		o.set(nil, outboxwatch.DeadLetter{ID: 1, TaskID: "a", TaskName: "shop.pay", CreatedAt: start, DeadAt: time.Now(), Reason: "max retries exceeded"})
		expect(outboxwatch.Dead, outboxwatch.Resent)

		requeued := outboxwatch.Row{ID: 2, TaskID: "a", TaskName: "shop.pay", CreatedAt: time.Now(), SchemaVersion: 1}
		o.set([]outboxwatch.Row{requeued})
		expect("pending")
		o.set(nil)
		expect(outboxwatch.Sent)
		<-time.After(outboxwatch.ReceiveAfter)
		expect(outboxwatch.Sent, outboxwatch.Unreceived)
		trace, ok := w.Trace("a")
		if !ok || trace.Outbox != "shop" || !trace.SentBy.After(trace.SeenAt) || !trace.CommittedAt.Equal(requeued.CreatedAt) {
			t.Errorf("trace = %+v", trace)
		}
	})
}

// TestFailureIsNoResend takes a row that failed again, as a relay does when its retry is due.
func TestFailureIsNoResend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &table{}
		w, err := outboxwatch.New(outboxwatch.Options{Sources: []outboxwatch.Source{o}})
		if err != nil {
			t.Fatal(err)
		}
		row := outboxwatch.Row{ID: 1, TaskID: "a", CreatedAt: time.Now(), UpdatedAt: time.Now(), SchemaVersion: 1}
		for range 3 {
			o.set([]outboxwatch.Row{row})
			w.Look(t.Context(), "a")
			<-time.After(time.Minute)
			row.UpdatedAt, row.RetryAfter = time.Now(), time.Now().Add(time.Minute)
			row.Retries++
			o.set([]outboxwatch.Row{row})
			w.Look(t.Context(), "a")
			<-time.After(time.Minute)
			row.UpdatedAt = time.Now() // taken again: the package leaves retry_after as it is
		}
		if trace, ok := w.Trace("a"); !ok || trace.Resent || trace.Retries != 3 {
			t.Errorf("trace = %+v, want no resend", trace)
		}
	})
}
