package queues_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/queues"
)

// fifo is a queue of which it is known when each message came.
type fifo struct {
	waiting   []time.Time
	published int64
	delivered int64
}

func (f *fifo) put(at time.Time) {
	f.waiting = append(f.waiting, at)
	f.published++
}

func (f *fifo) take() {
	if len(f.waiting) > 0 {
		f.waiting = f.waiting[1:]
		f.delivered++
	}
}

// told is what a broker tells of f, as far as it tells.
func (f *fifo) told(published, delivered bool) broker.Queue {
	q := broker.Queue{Name: "mail", Ready: new(int64(len(f.waiting)))}
	if published {
		q.Published = new(f.published)
	}
	if delivered {
		q.Delivered = new(f.delivered)
	}
	return q
}

// TestAgeBoundsHold lets messages come and go at random and compares what is told of the next one with when it came.
func TestAgeBoundsHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var (
			every     = time.Duration(rapid.IntRange(1, 40).Draw(r, "seconds between looks")) * time.Second
			published = rapid.Bool().Draw(r, "published is told")
			delivered = rapid.Bool().Draw(r, "delivered is told")
			phases    = rapid.SliceOfN(rapid.Custom(func(r *rapid.T) [3]int {
				return [3]int{
					rapid.IntRange(1, 120).Draw(r, "seconds"), rapid.IntRange(0, 3).Draw(r, "in"), rapid.IntRange(0, 3).Draw(r, "out"),
				}
			}), 1, 12).Draw(r, "phases")
		)
		synctest.Test(t, func(t *testing.T) {
			f, b := &fifo{}, &fakeBroker{}
			f.put(time.Now())
			b.set(f.told(published, delivered))
			w := watch(t, b, queues.Options{Every: every})
			for _, phase := range phases {
				for range phase[0] {
					w.Snapshot()
					pass(time.Second)
					for range phase[1] {
						f.put(time.Now())
					}
					for range phase[2] {
						f.take()
					}
					b.set(f.told(published, delivered))
				}
			}
			before := len(b.looks())
			for len(b.looks()) == before {
				w.Snapshot()
				pass(time.Second)
			}
			expectAge(r, w.Snapshot(), f, published || delivered)
		})
	})
}

// expectAge compares a snapshot with the queue, which has not changed since.
func expectAge(r *rapid.T, s queues.Snapshot, f *fifo, counted bool) {
	q := s.Queues[0]
	if len(f.waiting) == 0 {
		if q.Age != nil || q.AgeAtLeast != nil || q.AgeAtMost != nil {
			r.Fatalf("an empty queue has an age: %v, %v to %v", q.Age, q.AgeAtLeast, q.AgeAtMost)
		}
		return
	}
	age := s.At.Sub(f.waiting[0])
	if q.AgeAtMost != nil && *q.AgeAtMost < age {
		r.Fatalf("age is at most %v, but %v", *q.AgeAtMost, age)
	}
	if q.AgeAtLeast != nil && *q.AgeAtLeast > age {
		r.Fatalf("age is at least %v, but %v", *q.AgeAtLeast, age)
	}
	if counted != (q.AgeAtLeast != nil) {
		r.Fatalf("age is at least %v, with totals known %t", q.AgeAtLeast, counted)
	}
	if q.Age != nil && (*q.Age > *q.AgeAtMost || *q.Age < *q.AgeAtLeast) {
		r.Fatalf("age of %v is outside %v to %v", *q.Age, *q.AgeAtLeast, *q.AgeAtMost)
	}
}

// TestAgeOfAStalledQueueRises has a worker stop.
func TestAgeOfAStalledQueueRises(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, b := &fifo{}, &fakeBroker{}
		b.set(f.told(true, true))
		w := watch(t, b, queues.Options{})
		pass(time.Second)
		for range 300 {
			f.put(time.Now())
			b.set(f.told(true, true))
			w.Snapshot()
			pass(time.Second)
		}
		q := only(t, w.Snapshot())
		if q.Age == nil || *q.Age < 290*time.Second || *q.Age > 300*time.Second {
			t.Errorf("age after 5 minutes without a worker = %v, want 5 min", q.Age)
		}
		for range 150 { // the older half goes
			f.take()
		}
		b.set(f.told(true, true))
		pass(5 * time.Second)
		q = only(t, w.Snapshot())
		// Looks older than two minutes are 30 s apart, so that is how much the guess may be wrong.
		if want := time.Since(f.waiting[0]); q.Age == nil || *q.Age < want-30*time.Second || *q.Age > want+30*time.Second {
			t.Errorf("age once half of it is done = %v, want about %v", q.Age, want)
		}
	})
}

func TestAgeOfAMessageThatCameBeforeTheFirstPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &fakeBroker{}
		b.set(broker.Queue{Name: "mail", Ready: new(int64(5)), Published: new(int64(5))})
		w := watch(t, b, queues.Options{})
		for range 60 {
			w.Snapshot()
			pass(time.Second)
		}
		q := only(t, w.Snapshot())
		if q.Age != nil || q.AgeAtMost != nil || q.AgeAtLeast == nil || *q.AgeAtLeast < 40*time.Second {
			t.Errorf("age = %v, at least %v, at most %v, want at least 40 s", q.Age, q.AgeAtLeast, q.AgeAtMost)
		}
	})
}

func TestPrioritiesMakeAgesUncertain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*broker.Queue){
		"RabbitMQ": func(q *broker.Queue) { q.MaxPriority = new(int64(9)) },
		"Redis": func(q *broker.Queue) {
			q.Steps = []broker.Step{{Priority: 0, Ready: 2}, {Priority: 3}, {Priority: 6, Ready: 3}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := &fakeBroker{}
				b.set(broker.Queue{Name: "mail", Ready: new(int64(0)), Published: new(int64(0))})
				w := watch(t, b, queues.Options{})
				w.Snapshot()
				pass(5 * time.Second)
				q := broker.Queue{Name: "mail", Ready: new(int64(5)), Published: new(int64(5))}
				change(&q)
				b.set(q)
				pass(6 * time.Second)
				got := only(t, w.Snapshot())
				if got.Age != nil || got.AgeAtLeast != nil || got.AgeAtMost == nil {
					t.Errorf("age = %v, at least %v, at most %v, want at most only", got.Age, got.AgeAtLeast, got.AgeAtMost)
				}
			})
		})
	}
}
