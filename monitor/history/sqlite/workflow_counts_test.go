package sqlite_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/state"
)

// drawEvent draws an event of one of few tasks, each of which may have any root.
func drawEvent(t *rapid.T, prefix string, clock int64) *state.Event {
	id := rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf("%s-6f61-4a64-9e1f-%012x", prefix, rapid.IntRange(0, 7).Draw(t, "task"))
	})
	e := &state.Event{
		Kind: rapid.SampledFrom([]state.Kind{
			state.TaskSent, state.TaskReceived, state.TaskStarted, state.TaskSucceeded, state.TaskFailed, state.TaskRetried, state.TaskRevoked,
		}).Draw(t, "kind"),
		ID: id.Draw(t, "id"), Hostname: "celery@a", PID: 7, Clock: clock, Present: state.FieldClock | state.FieldPID | state.FieldTimestamp,
	}
	e.Micros = (1_790_000_000 + rapid.Int64Range(0, 7200).Draw(t, "second")) * 1_000_000
	e.ReceivedMicros = e.Micros
	if rapid.Bool().Draw(t, "named") {
		e.Name, e.Present = rapid.SampledFrom([]string{"pay", "mail"}).Draw(t, "name"), e.Present|state.FieldName
	}
	if rapid.Bool().Draw(t, "rooted") {
		e.RootID, e.Present = id.Draw(t, "root"), e.Present|state.FieldRootID
	}
	return e
}

// The table of workflows is a recount of the tasks after any writes, moves to other roots, and removals.
func TestWorkflowsAreARecount(t *testing.T) {
	t.Parallel()
	d, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlite.Memory, Rules: history.RetentionRules{Succeeded: time.Hour, Failed: 2 * time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, d)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		prefix := fmt.Sprintf("%08x", n) // of tasks that are not there yet
		c := state.New(state.Options{Track: true})
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			c.Apply(drawEvent(t, prefix, int64(i+1)))
			if rapid.IntRange(0, 3).Draw(t, "save") == 0 {
				save(t, d, c, rapid.IntRange(1, 8).Draw(t, "tasks"))
			}
			if rapid.IntRange(0, 7).Draw(t, "prune") == 0 {
				now := time.Unix(1_790_000_000+rapid.Int64Range(0, 14_400).Draw(t, "now"), 0)
				if err := d.Prune(context.Background(), now, func(history.Pruned) {}); err != nil {
					t.Fatal(err)
				}
				recount(t, d)
			}
		}
		save(t, d, c, 100)
	})
}

// recount compares the table with a recount.
func recount(t *rapid.T, d *sqlite.DB) {
	kept, recounted, err := d.WorkflowRows(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(recounted, kept); diff != "" {
		t.Fatalf("workflows (-recounted +kept):\n%s", diff)
	}
	narrow, err := d.NarrowWorkflows(context.Background())
	if len(narrow) > 0 || err != nil {
		t.Fatalf("workflows %v begin after a task of theirs or end before one: %v", narrow, err)
	}
}

// save writes some tasks that are not saved, and recounts.
func save(t *rapid.T, d *sqlite.DB, c *state.Cluster, most int) {
	var b history.Batch
	for _, u := range c.TakeUnsaved(most) {
		b.Tasks = append(b.Tasks, history.Task(u))
	}
	w, err := d.Write(context.Background(), b)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Saved(true, w.Existing); err != nil {
		t.Fatal(err)
	}
	recount(t, d)
}
