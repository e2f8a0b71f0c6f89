package clock_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/clock"
)

func TestLamport(t *testing.T) {
	t.Parallel()
	var l clock.Lamport
	for _, step := range []struct {
		name string
		do   func() int64
		want int64
	}{
		{"tick from zero", l.Tick, 1},
		{"witness ahead", func() int64 { return l.Witness(10) }, 11},
		{"witness behind", func() int64 { return l.Witness(3) }, 12},
		{"witness equal", func() int64 { return l.Witness(12) }, 13},
		{"witness negative", func() int64 { return l.Witness(-5) }, 14},
		{"witness beyond the maximum", func() int64 { return l.Witness(math.MaxInt64) }, clock.Max + 1},
		{"tick after that", l.Tick, clock.Max + 2},
	} {
		if got := step.do(); got != step.want || l.Value() != got {
			t.Errorf("%s = %d (value %d), want %d", step.name, got, l.Value(), step.want)
		}
	}
}

func TestLamportIsSharedSafely(t *testing.T) {
	t.Parallel()
	var l clock.Lamport
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 1000 {
				if i%2 == 0 {
					l.Tick()
				} else {
					l.Witness(int64(g * i))
				}
				l.Value()
			}
		})
	}
	wg.Wait()
	if l.Value() < 8000 {
		t.Errorf("8,000 steps left the clock at %d", l.Value())
	}
}

func TestValid(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]bool{0: false, -1: false, 1: true, clock.Max: true, clock.Max + 1: false, math.MaxInt64: false, math.MinInt64: false} {
		if got := clock.Valid(n); got != want {
			t.Errorf("Valid(%d) = %v, want %v", n, got, want)
		}
	}
}

// TestStampsAreTotallyOrdered sorts what kombu's timetuple cannot: its A(0, t=5), B(10, t=3), C(5, t=7) is a cycle.
func TestStampsAreTotallyOrdered(t *testing.T) {
	t.Parallel()
	stamp := rapid.Custom(func(t *rapid.T) clock.Stamp {
		return clock.Stamp{
			Clock: rapid.Int64Range(0, 4).Draw(t, "clock"), Micros: rapid.Int64Range(0, 3).Draw(t, "micros"),
			Origin: rapid.SampledFrom([]string{"", "a.1", "a.2", "b.1"}).Draw(t, "origin"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := stamp.Draw(t, "a"), stamp.Draw(t, "b"), stamp.Draw(t, "c")
		if a.Compare(b) != -b.Compare(a) {
			t.Fatal("not antisymmetric")
		}
		if (a.Compare(b) == 0) != (a == b) {
			t.Fatal("equal without being the same")
		}
		if a.Compare(b) <= 0 && b.Compare(c) <= 0 && a.Compare(c) > 0 {
			t.Fatal("not transitive")
		}
	})
}

func TestReceiverRules(t *testing.T) {
	t.Parallel()
	w1, w2 := clock.Process{Hostname: "w1", PID: 1}, clock.Process{Hostname: "w2", PID: 2}
	var r clock.Receiver
	for _, step := range []struct {
		name        string
		do          func() int64
		want, value int64
	}{
		{"a client before everything", r.Client, 1, 2},
		{"a client again", r.Client, 1, 3},
		{"no clock", func() int64 { return r.Repair(w1, 0, 0) }, 4, 4},
		{"a new lane ahead", func() int64 { return r.Repair(w1, 100, 1) }, 100, 101},
		{"a new lane behind is lifted to the receiver", func() int64 { return r.Repair(w2, 7, 1) }, 101, 102},
		{"the lift lasts", func() int64 { return r.Repair(w2, 9, 2) }, 103, 104},
		{"the first lane falls behind and is lifted", func() int64 { return r.Repair(w1, 101, 2) }, 104, 105},
		{"a late event keeps the lift of its time", func() int64 { return r.Repair(w2, 8, 1) }, 102, 106},
		{"the same event again", func() int64 { return r.Repair(w2, 8, 1) }, 102, 107},
		{"an absurd clock is none", func() int64 { return r.Repair(w2, clock.Max+1, 3) }, 108, 108},
	} {
		if got := step.do(); got != step.want || r.Value() != step.value {
			t.Errorf("%s = %d (receiver %d), want %d (%d)", step.name, got, r.Value(), step.want, step.value)
		}
	}
}

// TestRepairedClocksRiseInsideAProcess draws lanes with rising clocks and lets their events arrive in any order, each
// about once or twice.
func TestRepairedClocksRiseInsideAProcess(t *testing.T) {
	t.Parallel()
	type event struct {
		lane   int
		raw    int64
		micros int64
	}
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var events []event
		for process := range 1 + rng.IntN(4) {
			raw, micros := int64(rng.IntN(1000)), int64(1e15)+int64(rng.IntN(1000))
			for range rng.IntN(40) {
				raw += 1 + int64(rng.IntN(20))
				micros += int64(rng.IntN(3_000_000))
				events = append(events, event{process, raw, micros})
			}
		}
		events = append(events, events[:len(events)/10]...)
		rng.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		var r clock.Receiver
		got := make(map[event]int64)
		for _, e := range events {
			l := r.Repair(clock.Process{Hostname: "w", PID: int64(e.lane)}, e.raw, e.micros)
			if l < 1 {
				t.Fatalf("seed %d: repaired clock %d", seed, l)
			}
			if old, ok := got[e]; ok && old != l {
				t.Fatalf("seed %d: %+v repaired as %d, then as %d", seed, e, old, l)
			}
			got[e] = l
			if rng.IntN(4) == 0 {
				r.Client()
			}
		}
		sorted := slices.SortedFunc(func(yield func(event) bool) {
			for e := range got {
				if !yield(e) {
					return
				}
			}
		}, func(a, b event) int { return int(a.raw - b.raw) })
		last := map[int]event{}
		for _, e := range sorted {
			if before, ok := last[e.lane]; ok && got[before] >= got[e] {
				t.Fatalf("seed %d: raw %d → %d repaired as %d → %d", seed, before.raw, e.raw, got[before], got[e])
			}
			last[e.lane] = e
		}
	}
}

func TestARestartUnderTheSamePidBeginsAnew(t *testing.T) {
	t.Parallel()
	process := clock.Process{Hostname: "w", PID: 1}
	const second = 1_000_000
	var r clock.Receiver
	old := r.Repair(process, 5000, 100*second)
	again := r.Repair(process, 3, 160*second)
	if again <= old {
		t.Errorf("after a restart the clock is repaired to %d, not above %d", again, old)
	}
	if next := r.Repair(process, 4, 161*second); next <= again {
		t.Errorf("the next clock is repaired to %d, not above %d", next, again)
	}
	if late := r.Repair(process, 4999, 99*second); late >= old {
		t.Errorf("a late event of the old process is repaired to %d, not below %d", late, old)
	}
}

// TestAClockThatStandsStill has a sender that is no Celery worker and always says 1. Its events rise as time goes on.
func TestAClockThatStandsStill(t *testing.T) {
	t.Parallel()
	still, other := clock.Process{Hostname: "w1", PID: 1}, clock.Process{Hostname: "w2", PID: 2}
	var r clock.Receiver
	last := int64(0)
	for second := range int64(100) {
		l := r.Repair(still, 1, second*1_000_000)
		if l <= last {
			t.Fatalf("second %d: repaired to %d, not above %d", second, l, last)
		}
		if again := r.Repair(still, 1, second*1_000_000); again != l {
			t.Fatalf("second %d: repaired to %d, then to %d", second, l, again)
		}
		last = r.Repair(other, 10*(second+1), second*1_000_000)
	}
}

func TestProcessesAreBounded(t *testing.T) {
	t.Parallel()
	r := clock.Receiver{MaxProcesses: 100}
	steady := clock.Process{Hostname: "steady", PID: 1}
	var last int64
	for i := range 10_000 {
		r.Repair(clock.Process{Hostname: fmt.Sprint("pod-", i), PID: 1}, 1, 1)
		l := r.Repair(steady, int64(i+1), int64(i+1))
		if l <= last {
			t.Fatalf("step %d: the steady lane fell from %d to %d", i, last, l)
		}
		last = l
	}
	if n := r.Processes(); n > 100 {
		t.Errorf("%d lanes held, want at most 100", n)
	}
}

func TestRestoredReceiverGoesOn(t *testing.T) {
	t.Parallel()
	var r clock.Receiver
	r.Restore(500)
	if l := r.Repair(clock.Process{Hostname: "w"}, 3, 1); l < 500 {
		t.Errorf("repaired to %d after a restart at 500", l)
	}
}

// FuzzWitness feeds raw clocks of any size: readings stay positive and rise.
func FuzzWitness(f *testing.F) {
	f.Add(int64(1), int64(2), int64(math.MaxInt64))
	f.Add(clock.Max, int64(2), clock.Max)
	f.Add(int64(math.MinInt64), int64(0), int64(-1))
	f.Fuzz(func(t *testing.T, a, b, c int64) {
		var r clock.Receiver
		last := r.Value()
		for i, raw := range []int64{a, b, c, b, a} {
			if l := r.Repair(clock.Process{Hostname: "w", PID: int64(i % 2)}, raw, int64(i)*10_000_000); l < 1 {
				t.Fatalf("clock %d repaired as %d", raw, l)
			}
			if r.Value() <= last {
				t.Fatalf("receiver went from %d to %d at %d", last, r.Value(), raw)
			}
			last = r.Value()
		}
	})
}
