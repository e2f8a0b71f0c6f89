package rollup_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
)

// noon is 2026-11-21 12:00 UTC in minutes.
const noon = 1_795_262_400 / 60

// event is of a kind and a moment, seconds after noon, received then.
func event(kind state.Kind, second int64) *state.Event {
	at := (noon*60 + second) * 1_000_000
	return &state.Event{Kind: kind, Micros: at, ReceivedMicros: at}
}

func charge(worker string) state.Change {
	return state.Change{New: true, First: true, Name: "charge", Worker: worker, Queue: "billing"}
}

func TestRecorderCountsByMinuteAndNames(t *testing.T) {
	t.Parallel()
	var r rollup.Recorder
	a, b := charge("celery@a"), charge("celery@b")
	r.Add(event(state.TaskReceived, 0), a)
	r.Add(event(state.TaskReceived, 59), a)
	r.Add(event(state.TaskReceived, 59), b)
	waited := a
	waited.WaitMicros = 500
	r.Add(event(state.TaskStarted, 61), waited)
	ran := event(state.TaskSucceeded, 62)
	ran.Runtime, ran.Present = 1.5, state.FieldRuntime
	r.Add(ran, a)
	r.Add(event(state.TaskFailed, 63), a)
	r.Add(event(state.TaskRetried, 64), a)
	known := a
	known.New = false
	r.Add(event(state.TaskFailed, 65), known)
	r.Add(event(state.TaskSent, 65), a)
	r.MarkObserved(time.Unix(noon*60+180, 0))
	r.MarkObserved(time.Unix(noon*60+181, 0))
	want := []history.Rollup{
		{At: noon, Name: "charge", Worker: "celery@a", Queue: "billing", Received: 2},
		{At: noon, Name: "charge", Worker: "celery@b", Queue: "billing", Received: 1},
		{
			At: noon + 1, Name: "charge", Worker: "celery@a", Queue: "billing", Succeeded: 1, Failed: 1, Retried: 1,
			Wait: of(500).Encode(), Run: of(1_500_000).Encode(),
		},
		{At: noon + 3},
	}
	if !r.Changed() {
		t.Error("nothing changed")
	}
	if diff := cmp.Diff(want, r.Take()); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
	if r.Changed() {
		t.Error("changed after it was taken")
	}
	if got := r.Take(); got != nil {
		t.Errorf("taken again = %v, want nothing", got)
	}
}

// What comes late for a minute that was taken is told alone: the store adds it.
func TestRecorderTellsWhatIsNew(t *testing.T) {
	t.Parallel()
	var r rollup.Recorder
	var got []int64
	for range 10 { // the cell has left memory by the end
		r.Add(event(state.TaskReceived, 0), charge("celery@a"))
		for _, m := range r.Take() {
			got = append(got, m.Received)
		}
		r.MarkObserved(time.Unix(noon*60+600*int64(len(got)), 0))
		for _, m := range r.Take() {
			got = append(got, m.Received)
		}
	}
	want := []int64{1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
}

// An event of the journal is counted though its task was stored with it; one that came again is not.
func TestReplayCountsWhatWasNew(t *testing.T) {
	t.Parallel()
	var r rollup.Recorder
	known := charge("celery@a")
	known.New = false
	r.Replay(event(state.TaskReceived, 0), known)
	r.Add(event(state.TaskReceived, 0), known)
	if got := r.Take(); len(got) != 1 || got[0].Received != 1 {
		t.Errorf("taken = %v, want one event", got)
	}
}

func TestRecorderDoubtsClocks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ahead time.Duration // of the sender's clock
		want  []int64
	}{
		"a little ahead": {59 * time.Second, []int64{noon}},
		"far ahead":      {time.Hour, []int64{noon}},
		"an hour late":   {-time.Hour, []int64{noon - 60}},
		"too late":       {-8 * 24 * time.Hour, nil},
	} {
		var r rollup.Recorder
		e := event(state.TaskReceived, 0)
		e.Micros += tt.ahead.Microseconds()
		r.Add(e, charge("celery@a"))
		var got []int64
		for _, m := range r.Take() {
			got = append(got, m.At)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: minutes (-want +got):\n%s", name, diff)
		}
	}
}

func TestRecorderIsBounded(t *testing.T) {
	t.Parallel()
	const n = 5_000
	var r rollup.Recorder
	for i := range n {
		r.Add(event(state.TaskReceived, 0), state.Change{New: true, First: true, Name: fmt.Sprint("n", i), Worker: "w"})
	}
	cells, total := r.Take(), int64(0)
	for _, m := range cells {
		total += m.Received
	}
	if total != n {
		t.Errorf("received = %d, want %d", total, n)
	}
	if len(cells) > 1_000 {
		t.Errorf("%d cells of one minute", len(cells))
	}
	rest := cells[0]
	if want := (history.Rollup{At: noon, Name: rollup.Other, Worker: rollup.Other, Queue: rollup.Other, Received: rest.Received}); rest.Received < 1000 || !cmp.Equal(rest, want) {
		t.Errorf("the rest is %v, want most of them under %s", rest, rollup.Other)
	}
}

func BenchmarkAdd(b *testing.B) {
	var r rollup.Recorder
	changes := make([]state.Change, 64)
	for i := range changes {
		changes[i] = state.Change{New: true, First: true, Name: fmt.Sprint("app.tasks.number_", i%16), Worker: fmt.Sprint("celery@worker-", i%4), Queue: "celery", WaitMicros: int64(i) * 1000}
	}
	kinds := []state.Kind{state.TaskReceived, state.TaskStarted, state.TaskSucceeded}
	e := event(state.TaskReceived, 0)
	e.Present = state.FieldRuntime
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e.Kind, e.Runtime = kinds[i%3], float64(i%1000)/1000
		r.Add(e, changes[i*7%64])
	}
}
