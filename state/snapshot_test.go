package state_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/history"
	"github.com/umbelhq/umbel/state"
)

func TestSnapshotRestoresEverything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		want := fold(t, state.Causal, history.New(seed, wild()).Events)
		var b bytes.Buffer
		if err := want.Snapshot(&b); err != nil {
			t.Fatal(err)
		}
		got := state.New(state.Options{})
		if err := got.Restore(&b); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tasks(want), tasks(got)); diff != "" {
			t.Fatalf("seed %d: tasks (-want +restored):\n%s", seed, diff)
		}
		if diff := cmp.Diff(want.Workers(), got.Workers()); diff != "" {
			t.Fatalf("seed %d: workers (-want +restored):\n%s", seed, diff)
		}
		if want.Clock() != got.Clock() {
			t.Fatalf("seed %d: receiver clock %d restored as %d", seed, want.Clock(), got.Clock())
		}
	}
}

func TestRestoreRefusesWhatIsNoSnapshot(t *testing.T) {
	t.Parallel()
	if err := state.New(state.Options{}).Restore(strings.NewReader("no snapshot")); err == nil {
		t.Error("restored from text")
	}
}

// odd is a cluster of tasks whose events are unusual: huge numbers, cut text, no names, foreign ids.
func odd(rules state.Rules) *state.Cluster {
	const parent = "0c2b5de3-3b06-4b55-8f2c-111111111111"
	c := state.New(state.Options{Rules: rules, MaxText: 1})
	long := ev(state.TaskFailed, "long", "w1", 10, 1)
	long.Traceback, long.Present = strings.Repeat("x", 100_000), long.Present|state.FieldTraceback
	nameless := ev(state.TaskSent, "nameless", "gen1@web", 1, 1)
	nameless.Name, nameless.Queue, nameless.Present = "", "q", nameless.Present&^state.FieldName|state.FieldQueue
	child := ev(state.TaskReceived, "Kind Nr. 1", "w1", 10, 2)
	child.ParentID, child.RootID, child.Present = parent, parent, child.Present|state.FieldParentID|state.FieldRootID
	again := retry(ev(state.TaskReceived, "Kind Nr. 1", "w1", 10, 3), 1)
	again.ParentID, again.RootID, again.Present = again.ID, parent, again.Present|state.FieldParentID|state.FieldRootID
	custom := ev(state.TaskCustom, "custom", "w1", 11, 4)
	custom.Subject = "half-way"
	apply(c, long, nameless, child, again, custom,
		retry(ev(state.TaskSent, "patient", "gen1@web", 1, 1), 70_000), retry(ev(state.TaskSent, "negative", "gen1@web", 1, 1), -3),
		ev(state.TaskReceived, parent, "w1", 10, 5))
	return c
}

func TestSnapshotRestoresTheUnusual(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string]state.Rules{"causal": state.Causal, "celery": state.Celery} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := odd(rules)
			for range 2 { // what a snapshot of a restored cluster restores
				got := restored(t, want, state.Options{Rules: rules})
				if diff := cmp.Diff(tasks(want), tasks(got)); diff != "" {
					t.Errorf("tasks (-want +restored):\n%s", diff)
				}
				want = got
			}
		})
	}
}

// TestSnapshotRestoresWhatLostItsText fills the text of a small cluster over and over.
func TestSnapshotRestoresWhatLostItsText(t *testing.T) {
	t.Parallel()
	want := odd(state.Causal)
	for i := range 40 {
		filler := ev(state.TaskSucceeded, fmt.Sprint("filler", i), "w1", 10, float64(i+10))
		filler.Result, filler.Present = strings.Repeat("x", 64<<10), filler.Present|state.FieldResult
		apply(want, filler)
	}
	if got := mustTask(t, want, "Kind Nr. 1"); !got.Truncated {
		t.Fatal("nothing was dropped")
	}
	got := restored(t, want, state.Options{})
	if diff := cmp.Diff(tasks(want), tasks(got)); diff != "" {
		t.Errorf("tasks (-want +restored):\n%s", diff)
	}
}

func restored(t *testing.T, c *state.Cluster, o state.Options) *state.Cluster {
	t.Helper()
	var b bytes.Buffer
	if err := c.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	got := state.New(o)
	if err := got.Restore(&b); err != nil {
		t.Fatal(err)
	}
	return got
}
