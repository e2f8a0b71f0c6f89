package state_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/state"
)

// posted makes a task-sent or task-received of task a, of that name, by that parent.
func posted(kind state.Kind, name, parent, host string, attempt int64, second float64) state.Event {
	e := retry(ev(kind, "a", host, 10, second), attempt)
	e.Name, e.ParentID = name, parent
	e.Present |= state.FieldName | state.FieldParentID
	if parent == "" {
		e.Null |= state.FieldParentID
	}
	return e
}

// outline writes down a task: its state and name, then its executions.
func outline(t state.Task) string {
	words := []string{string(t.State)}
	if t.Name != nil {
		words = append(words, *t.Name)
	}
	for _, e := range t.Executions {
		name := "?"
		if e.Name != nil {
			name = *e.Name
		}
		word := fmt.Sprintf("%s.%d:%s", name, e.Attempt, e.State)
		if e.Replaced {
			word += "!"
		}
		words = append(words, word)
	}
	if t.Redelivered {
		words = append(words, "redelivered")
	}
	return strings.Join(words, " ")
}

func TestAReplacedTaskShowsBothRuns(t *testing.T) {
	t.Parallel()
	sent := func(name, parent string, attempt int64, second float64) state.Event {
		return posted(state.TaskSent, name, parent, "gen@x", attempt, second)
	}
	received := func(name, parent string, attempt int64, second float64) state.Event {
		return posted(state.TaskReceived, name, parent, "w1", attempt, second)
	}
	started := func(second float64) state.Event { return ev(state.TaskStarted, "a", "w1", 10, second) }
	retried := func(second float64) state.Event { return ev(state.TaskRetried, "a", "w1", 10, second) }
	succeeded := func(second float64) state.Event { return ev(state.TaskSucceeded, "a", "w1", 10, second) }
	for name, tc := range map[string]struct {
		events []state.Event
		want   string
	}{
		"by a task": {
			[]state.Event{sent("x", "", 0, 1), received("x", "", 0, 2), started(3), sent("y", "a", 0, 4), received("y", "a", 0, 5), started(6), succeeded(7)},
			"SUCCESS y x.0:STARTED! y.0:SUCCESS",
		},
		"without task-sent": {
			[]state.Event{received("x", "", 0, 2), started(3), received("y", "a", 0, 5), started(6), succeeded(7)},
			"SUCCESS y x.0:STARTED! y.0:SUCCESS",
		},
		"reported after its replacement was received": {
			[]state.Event{received("x", "", 0, 2), received("y", "a", 0, 3), started(4), started(5), succeeded(6)},
			"SUCCESS y x.0:STARTED! y.0:SUCCESS",
		},
		"by a chain": {
			[]state.Event{received("x", "", 0, 2), started(3), received("z", "b", 0, 5)},
			"RECEIVED z x.0:STARTED! z.0:RECEIVED",
		},
		"by the last of a chain, of a child": {
			[]state.Event{received("x", "p", 0, 2), started(3), received("z", "b", 0, 5)},
			"RECEIVED z x.0:STARTED! z.0:RECEIVED",
		},
		"after a retry": {
			[]state.Event{received("x", "", 0, 2), started(3), received("x", "a", 1, 4), retried(5), started(6), received("y", "a", 0, 7), started(8)},
			"STARTED y x.0:RETRY x.1:STARTED! y.0:STARTED",
		},
		"and tried again": {
			[]state.Event{received("x", "", 0, 2), started(3), received("y", "a", 0, 5), started(6), retried(7), received("y", "a", 1, 8)},
			"RECEIVED y x.0:STARTED! y.0:RETRY y.1:RECEIVED",
		},
		"by itself, again and again": {
			[]state.Event{received("x", "", 0, 2), started(3), received("x", "a", 0, 5), started(6), received("x", "a", 0, 8), started(9), succeeded(10)},
			"SUCCESS x x.0:STARTED! x.0:STARTED! x.0:SUCCESS",
		},
		"and delivered again": {
			[]state.Event{
				received("x", "", 0, 2), started(3), sent("y", "a", 0, 4), received("y", "a", 0, 5), started(6),
				posted(state.TaskReceived, "y", "a", "w2", 0, 60),
			},
			"RECEIVED y x.0:STARTED! y.0:STARTED y.0:RECEIVED redelivered",
		},
		"and nobody has received it": {
			[]state.Event{sent("x", "", 0, 1), received("x", "", 0, 2), started(3), sent("y", "a", 0, 4)},
			"STARTED x x.0:STARTED!",
		},
		"under another name than it was sent": {
			[]state.Event{sent("x", "", 0, 1), received("shadow", "", 0, 2), started(3), succeeded(4)},
			"SUCCESS shadow shadow.0:SUCCESS",
		},
		"no: delivered again": {
			[]state.Event{received("x", "", 0, 2), started(3), posted(state.TaskReceived, "x", "", "w2", 0, 60)},
			"RECEIVED x x.0:STARTED x.0:RECEIVED redelivered",
		},
		"no: tried again": {
			[]state.Event{sent("x", "", 0, 1), received("x", "", 0, 2), started(3), sent("x", "a", 1, 4), received("x", "a", 1, 5), retried(6)},
			"RECEIVED x x.0:RETRY x.1:RECEIVED",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := apply(state.New(state.Options{Track: true}), tc.events...)
			if got := outline(mustTask(t, c, "a")); got != tc.want {
				t.Errorf("in order: %s, want %s", got, tc.want)
			}
			backwards := slices.Clone(tc.events)
			slices.Reverse(backwards)
			if got := outline(mustTask(t, apply(state.New(state.Options{}), backwards...), "a")); got != tc.want {
				t.Errorf("backwards: %s, want %s", got, tc.want)
			}
			saved, _, err := state.DecodeTask("a", c.TakeUnsaved(1)[0].Events)
			if err != nil {
				t.Fatal(err)
			}
			if got := outline(saved); got != tc.want {
				t.Errorf("saved: %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAReplacedTaskIsFoundByBothNames(t *testing.T) {
	t.Parallel()
	c := apply(state.New(state.Options{}), posted(state.TaskReceived, "x", "", "w1", 0, 1), ev(state.TaskStarted, "a", "w1", 10, 2))
	if n := c.Tasks(state.Query{Names: []string{"x"}}).Total; n == nil || *n != 1 {
		t.Errorf("%v tasks called x before it was replaced, want 1", n)
	}
	apply(c, posted(state.TaskReceived, "y", "a", "w1", 0, 3))
	for name, want := range map[string]int{"x": 1, "y": 1, "z": 0} {
		if got := c.Tasks(state.Query{Names: []string{name}}); len(got.Tasks) != want || got.Total != nil && *got.Total != want {
			t.Errorf("found %d tasks called %s, want %d", len(got.Tasks), name, want)
		}
	}
	if got := mustTask(t, c, "a"); got.ParentID != nil || got.Orphaned {
		t.Errorf("parent %v, orphaned %v, want neither", got.ParentID, got.Orphaned)
	}
}
