package state_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/simulate"
	"github.com/umbelhq/umbel/state"
)

// TestKnownEventsAreDescribedAsNewOnes applies events whose tasks were saved since, as after a crash: what they are counted by must be
// the same.
func TestKnownEventsAreDescribedAsNewOnes(t *testing.T) {
	t.Parallel()
	c, again := state.New(state.Options{Track: true}), state.New(state.Options{})
	var journal []byte
	var want []state.Change
	var decoder celery.Decoder
	for i, body := range simulate.Typical(3000, 1) {
		decoder.Decode(body, int64(i+1), func(e *state.Event) {
			if ch := c.Apply(e); ch.New && e.Kind.Task() {
				journal = state.AppendEvent(journal, e, ch.Clock)
				want = append(want, ch)
			}
		})
	}
	for _, u := range c.TakeUnsaved(c.Unsaved()) {
		if err := again.Load(u.View.ID, u.Events); err != nil {
			t.Fatal(err)
		}
	}
	var got []state.Change
	if err := again.Replay(journal, nil, func(_ *state.Event, ch state.Change) { got = append(got, ch) }); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		want[i].New, want[i].Unstarted = false, state.Unstarted{}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
		t.Errorf("%d changes (-new +known):\n%s", len(got), diff)
	}
}
