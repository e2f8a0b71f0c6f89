package main_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// scene is a Celery cluster of two workers, the dashboard that watches it, and its open page Tasks.
type scene struct {
	*cluster
	*dashboard
	browser context.Context
	page    *tab
	tap     *tap
	fastest *fastest
}

// prompt is how soon after an event an open page shows it when the machine has time. BenchmarkEventToBrowser measures more.
const prompt = time.Second

// fastest is the shortest of several times, on a machine that may be busy during most of them.
type fastest struct {
	mu sync.Mutex
	d  time.Duration
}

func (f *fastest) add(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.d == 0 || d < f.d {
		f.d = d
	}
}

// shows waits until a page shows a state in an element, and measures how soon after the event that is. Its timestamp
// would not do: workers hold events back for a moment.
func (s scene) shows(t *testing.T, page *tab, element, word string, e event) {
	t.Helper()
	seen := page.sees(t, element, word)
	s.fastest.add(seen.Sub(s.tap.published(t, e)))
}

// lists is shows for the row of a task on the page Tasks.
func (s scene) lists(t *testing.T, id, word, kind string) {
	t.Helper()
	s.shows(t, s.page, "t-"+id, word, event{Type: kind, UUID: id})
}

// delayed publishes a task with a countdown, lets act do something with it while it waits, and returns it once it is in the
// state that act names. Where the time was too short for that, another task gets more.
func (s scene) delayed(t *testing.T, act func(received task) (state string)) task {
	t.Helper()
	for countdown := 3; ; countdown *= 3 {
		id := s.do(t, clientCall{Call: "add", Args: []any{1, 1}, Options: map[string]any{"countdown": countdown}})[0]
		got := s.until(t, id, func(got task) error {
			if got.State == "PENDING" {
				return fmt.Errorf("task %s is %s", id, got.State)
			}
			return nil
		})
		if got.State == "RECEIVED" {
			state := act(got)
			got = s.until(t, id, func(got task) error {
				if got.State != state && got.State != "SUCCESS" {
					return fmt.Errorf("task %s is %s, want %s", id, got.State, state)
				}
				return nil
			})
			if got.State == state {
				return got
			}
		}
		if countdown > 60 {
			t.Fatalf("task %s is %s after a countdown of %d s", id, got.State, countdown)
		}
	}
}
