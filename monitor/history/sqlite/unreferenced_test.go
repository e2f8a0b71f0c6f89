package sqlite_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// sentBy is a batch with a task that a client has sent.
func sentBy(t *testing.T, id, client string) history.Batch {
	t.Helper()
	c := state.New(state.Options{Track: true})
	c.Apply(&state.Event{
		Kind: state.TaskSent, ID: id, Hostname: client, Name: "shop.pay", Queue: "celery", Micros: time.Now().UnixMicro(),
		Present: state.FieldName | state.FieldQueue,
	})
	u := c.TakeUnsaved(1)[0]
	return history.Batch{Tasks: []history.Task{{View: u.View, Events: u.Events}}}
}

// TestSymbolsThatNothingUsesGo has tasks of clients that come and go while symbols are swept.
func TestSymbolsThatNothingUsesGo(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	defer closed(t, d)
	const clients = 40
	write := func(i int) {
		if _, err := d.Write(t.Context(), sentBy(t, fmt.Sprint("task-", i), fmt.Sprint("gen", i%clients, "@web"))); err != nil {
			t.Error(err)
		}
		d.Remove(t, fmt.Sprint("task-", i-5))
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 5 * clients {
			write(i)
		}
	})
	for range 20 {
		if err := d.SweepSymbols(t.Context()); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	if n := d.Dangling(t); n != 0 {
		t.Errorf("%d tasks have a client that has no symbol", n)
	}
	before := d.Symbols(t)
	if err := d.SweepSymbols(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Five clients, each of which is an origin too; a name, a queue and a state.
	if n := d.Symbols(t); n != 5+3 {
		t.Errorf("%d symbols are left of %d, want those of five tasks", n, before)
	}
	write(5 * clients) // by a client whose symbol has gone
	if n := d.Dangling(t); n != 0 {
		t.Errorf("%d tasks have a client that has no symbol, after it came back", n)
	}
}
