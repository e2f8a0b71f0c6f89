package queues_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/queues"
)

func TestRestore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		oldest := time.Now().Add(-2 * time.Hour)
		b := &fakeBroker{info: broker.Info{Kind: "Redis", VisibilityTimeout: new(90 * time.Minute)}}
		b.set(broker.Queue{Name: "mail", Ready: new(int64(0)), OldestUnacked: &oldest})
		w := watch(t, b, queues.Options{
			HoldsETA:          func(_ context.Context, after time.Time) bool { return after.Equal(time.Now().Add(90 * time.Minute)) },
			ConsumersComplete: func() bool { return true },
		})
		synctest.Wait()
		s := w.Snapshot()
		q := only(t, s)
		if want := oldest.Add(90 * time.Minute); q.RedeliveredAt == nil || !q.RedeliveredAt.Equal(want) {
			t.Errorf("restore = %v, want %v", q.RedeliveredAt, want)
		}
		expectWarnings(t, s.Warnings, "hold tasks for longer than the visibility timeout of 1 h 30 min")
		expectWarnings(t, q.Warnings, "No worker reports consuming from it.", "longer than the visibility timeout of 1 h 30 min")
	})
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		queue    broker.Queue
		known    map[string][]string
		complete bool
		want     []string
	}{
		"consumed": {queue: broker.Queue{Ready: new(int64(1)), Consumers: new(int64(1))}},
		"consumed, workers say": {
			queue: broker.Queue{Ready: new(int64(1))}, known: map[string][]string{"mail": {"w1"}},
		},
		"nobody": {queue: broker.Queue{Consumers: new(int64(0))}, want: []string{"It has no consumer."}},
		"nobody, one waits": {
			queue: broker.Queue{Ready: new(int64(1)), Consumers: new(int64(0))},
			want:  []string{"It has no consumer, and 1 message waits."},
		},
		"nobody, many wait": {
			queue: broker.Queue{Ready: new(int64(7)), Consumers: new(int64(0))},
			want:  []string{"and 7 messages wait."},
		},
		"unknown": {
			queue: broker.Queue{Ready: new(int64(7))}, want: []string{"Its consumers are unknown"},
		},
		"no worker says so": {
			queue: broker.Queue{Ready: new(int64(7))}, complete: true,
			want: []string{"No worker reports consuming from it, and 7 messages wait."},
		},
		"missing": {
			queue: broker.Queue{Missing: true}, known: map[string][]string{"mail": {"w1"}},
			want: []string{"no queue of this name"},
		},
		"unreadable":              {queue: broker.Queue{Error: "it belongs to one connection alone"}},
		"hidden without consumer": {queue: broker.Queue{Name: "w1.celery.pidbox", Consumers: new(int64(0))}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if test.queue.Name == "" {
					test.queue.Name = "mail"
				}
				b := &fakeBroker{}
				b.set(test.queue)
				w := watch(t, b, queues.Options{
					Consumers:         func() map[string][]string { return test.known },
					ConsumersComplete: func() bool { return test.complete },
				})
				synctest.Wait()
				expectWarnings(t, only(t, w.Snapshot()).Warnings, test.want...)
			})
		})
	}
}

func expectWarnings(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("warnings = %q, want %q", got, want)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("warning = %q, want one with %q", got[i], want[i])
		}
	}
}

func TestHidden(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"celery": false, "mail": false, "w1@host.celery.pidbox": true, "a1.reply.celery.pidbox": true,
		"celeryev.1d0f57b0-8c1f-4a3e-9a52-0c1c2d3e4f50": true, "celery_delayed_27": true, "bcast.x": true,
		"1d0f57b0-8c1f-4a3e-9a52-0c1c2d3e4f50": true, "1d0f57b0-8c1f-4a3e-9a52-0c1c2d3e4f5g": false,
		"1d0f57b0x8c1f-4a3e-9a52-0c1c2d3e4f50": false, "umbel.tasks": false, "umbel.abcdefghijklmnopqrstuvwxyz": true,
		"umbel.reply.abcdefghijklmnopqrstuvw234": true, "umbel.ABCDEFGHIJKLMNOPQRSTUVWXYZ": false, "amq.gen-x": true, "": false,
	} {
		if got := queues.Hidden(name); got != want {
			t.Errorf("hidden %q = %t, want %t", name, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		b := &fakeBroker{}
		b.set(broker.Queue{Name: "events-of-ours"})
		w := watch(t, b, queues.Options{Hidden: []string{"events-of-ours"}})
		synctest.Wait()
		if !only(t, w.Snapshot()).Hidden {
			t.Error("a queue that is to be hidden is not")
		}
	})
}
