package loss_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/loss"
)

const second = 1_000_000

func started(clock int64) *state.Event {
	return &state.Event{Kind: state.TaskStarted, Hostname: "celery@a", PID: 7, Clock: clock, Micros: clock * second, ReceivedMicros: clock * second}
}

func heartbeat(clock, processed, active int64) *state.Event {
	e := started(clock)
	e.Kind, e.Processed, e.Active = state.WorkerHeartbeat, processed, active
	e.Present = state.FieldProcessed | state.FieldActive | state.FieldClock
	return e
}

func online(clock, processed int64) *state.Event {
	e := heartbeat(clock, processed, 0)
	e.Kind = state.WorkerOnline
	return e
}

// forced is what the heartbeat control command makes a worker send.
func forced(clock int64) *state.Event {
	e := heartbeat(clock, 0, 0)
	e.Present, e.Freq, e.FreqIsInt = state.FieldFreq|state.FieldClock, 5, true
	return e
}

func elsewhere(e *state.Event) *state.Event {
	e.Hostname = "celery@b"
	return e
}

func TestGaps(t *testing.T) {
	t.Parallel()
	gap := func(missing, after, before int64) loss.Gap {
		return loss.Gap{
			Worker: "celery@a", PID: 7, Missing: missing, After: after, Before: before, AfterMicros: after * second, BeforeMicros: before * second,
		}
	}
	for name, c := range map[string]struct {
		events []*state.Event
		want   []loss.Gap
	}{
		"nothing is missing": {
			[]*state.Event{started(1), heartbeat(2, 1, 0), started(3), heartbeat(5, 2, 0), started(6), heartbeat(7, 3, 0)}, []loss.Gap{},
		},
		"three are": {
			[]*state.Event{started(1), heartbeat(2, 1, 0), started(4), heartbeat(9, 5, 0), started(10), heartbeat(11, 6, 0)}, []loss.Gap{gap(3, 2, 9)},
		},
		"the newest heartbeat may have overtaken events": {
			[]*state.Event{started(1), heartbeat(2, 1, 0), heartbeat(9, 5, 0), started(10)}, []loss.Gap{},
		},
		"late events take the claim back": {
			[]*state.Event{
				started(1), heartbeat(2, 1, 0), started(4), heartbeat(9, 5, 0), started(10), heartbeat(11, 6, 0), started(5), started(7),
			}, []loss.Gap{gap(1, 2, 9)},
		},
		"an event of a running task may follow the heartbeat that counts it": {
			[]*state.Event{started(1), heartbeat(2, 1, 0), heartbeat(6, 2, 3), started(7), heartbeat(9, 2, 0), started(10), heartbeat(11, 3, 0)}, []loss.Gap{},
		},
		"forced heartbeats count nothing": {
			[]*state.Event{started(1), heartbeat(2, 1, 0), forced(4), started(5), heartbeat(6, 2, 0), forced(8), started(9), heartbeat(10, 3, 0)}, []loss.Gap{},
		},
		"task events were off before the first": {
			[]*state.Event{heartbeat(2, 1, 0), heartbeat(9, 5, 0), started(10), heartbeat(11, 6, 0), started(12), heartbeat(13, 7, 0)}, []loss.Gap{},
		},
		"task events may be off after the last": {
			[]*state.Event{started(1), heartbeat(2, 1, 0), heartbeat(9, 5, 0), heartbeat(15, 9, 0)}, []loss.Gap{},
		},
		"an event takes a number of the clock": { // tasks with send_events = False
			[]*state.Event{started(1), heartbeat(2, 1, 0), started(3), heartbeat(4, 90, 0), started(5), heartbeat(6, 190, 0)}, []loss.Gap{},
		},
		"a restart counts from 0": {
			[]*state.Event{
				started(21), heartbeat(22, 8, 0), started(23), heartbeat(24, 9, 0),
				online(30, 0), started(31), heartbeat(32, 1, 0), heartbeat(38, 3, 0), started(39), heartbeat(40, 4, 0),
			}, []loss.Gap{gap(2, 32, 38)},
		},
		"two processes share a name and pid": {
			[]*state.Event{started(1), heartbeat(2, 5, 0), heartbeat(20, 900, 0), started(21), heartbeat(22, 6, 0), started(23), heartbeat(30, 901, 0), started(31), heartbeat(40, 7, 0)}, []loss.Gap{},
		},
		"workers count for themselves": {
			[]*state.Event{
				started(1), heartbeat(2, 1, 0), elsewhere(started(4)), elsewhere(started(5)), heartbeat(9, 3, 0), started(10), heartbeat(11, 4, 0),
			}, []loss.Gap{gap(2, 2, 9)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d loss.Detector
			for _, e := range c.events {
				d.Add(e, state.Change{New: true})
			}
			if diff := cmp.Diff(c.want, d.Gaps()); diff != "" {
				t.Errorf("gaps (-want +got):\n%s", diff)
			}
			sum := int64(0)
			for _, g := range c.want {
				sum += g.Missing
			}
			if got := d.Missing(); got != sum {
				t.Errorf("missing = %d, want %d", got, sum)
			}
		})
	}
}

// lossy makes a process lose two of three events for n heartbeats, each 4 clocks after the one before.
func lossy(d *loss.Detector, worker string, n int64) {
	for i := range n {
		for _, e := range []*state.Event{started(4*i + 1), heartbeat(4*i+4, 3*i+1, 0)} {
			e.Hostname = worker
			d.Add(e, state.Change{New: true})
		}
	}
}

func TestGapsOfAProcessAreBounded(t *testing.T) {
	t.Parallel()
	var d loss.Detector
	lossy(&d, "celery@a", 1000)
	if got, want := d.Missing(), int64(2*998); got != want {
		t.Errorf("missing = %d, want %d", got, want)
	}
	if got := len(d.Gaps()); got > 40 {
		t.Errorf("%d gaps are kept", got)
	}
}

func TestProcessesAreBounded(t *testing.T) {
	t.Parallel()
	var d loss.Detector
	for i := range 7_000 {
		lossy(&d, "celery@"+strconv.Itoa(i), 3)
	}
	before := d.Missing()
	if before > 2*6_000 {
		t.Errorf("%d processes are kept", before/2)
	}
	gaps := d.Gaps()
	if got := len(gaps); got != 200 {
		t.Fatalf("%d gaps are listed, want 200", got)
	}
	d.Forget(gaps[0].Worker)
	if got, want := d.Missing(), before-2; got != want {
		t.Errorf("missing after a worker was forgotten = %d, want %d", got, want)
	}
}

func TestAnEndWithoutAStart(t *testing.T) {
	t.Parallel()
	c, d := state.New(state.Options{}), &loss.Detector{}
	add := func(kind state.Kind, clock int64) {
		e := started(clock)
		e.Kind, e.ID = kind, "a"
		d.Add(e, c.Apply(e))
	}
	add(state.TaskReceived, 2)
	add(state.TaskSucceeded, 5)
	want := []loss.Gap{{Worker: "celery@a", PID: 7, Missing: 1, After: 2, Before: 5, AfterMicros: 2 * second, BeforeMicros: 5 * second, Task: "a"}}
	if diff := cmp.Diff(want, d.Gaps()); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
	add(state.TaskStarted, 3)
	if got := d.Missing(); got != 0 {
		t.Errorf("missing = %d after it came, want 0", got)
	}
}

func TestWhatWasNotSavedIsNotLoaded(t *testing.T) {
	t.Parallel()
	var d loss.Detector
	lossy(&d, "celery@a", 40)
	saved := d.Save("celery@a")
	for n := range len(saved) - 1 {
		var next loss.Detector
		b, err := json.Marshal(map[string]any{"Name": "celery@a", "Losses": saved[:n+1]})
		if err != nil {
			t.Fatal(err)
		}
		if err := next.LoadWorker(b); err == nil && n > 0 {
			t.Errorf("%d of %d bytes were loaded", n+1, len(saved))
		}
	}
}
