package historytest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// epoch is when the events of the suite begin, µs.
const epoch = 1_790_000_000_000_000

// event returns an event that a worker sends in the given second.
func event(kind state.Kind, id string, second int) state.Event {
	return state.Event{
		Kind: kind, ID: id, Hostname: "celery@shop", PID: 7, Clock: int64(second) + 1, Present: state.FieldClock,
		Micros: epoch + int64(second)*1e6, ReceivedMicros: epoch + int64(second)*1e6,
	}
}

// succeed returns the events of a task that succeeds in the given second.
func succeed(id string, second int) []state.Event {
	end := event(state.TaskSucceeded, id, second)
	end.Result, end.Runtime = "'done'", 1.5
	end.Present |= state.FieldResult | state.FieldRuntime
	return []state.Event{event(state.TaskStarted, id, second-1), end}
}

// fold returns the tasks that events make, in the order of their first events, as a monitor saves them.
func (c storeTest) fold(events ...state.Event) []history.Task {
	c.Helper()
	cluster := state.New(state.Options{Track: true})
	for i := range events {
		cluster.Apply(&events[i])
	}
	unsaved := cluster.TakeUnsaved(cluster.Unsaved())
	tasks := make([]history.Task, len(unsaved))
	for i, u := range unsaved {
		tasks[i] = history.Task(u)
	}
	return tasks
}

// stored marks tasks as stored already.
func stored(tasks []history.Task) []history.Task {
	tasks = slices.Clone(tasks)
	for i := range tasks {
		tasks[i].Stored = true
	}
	return tasks
}

// uuid returns a UUID that ends in n.
func uuid(n int) string {
	tail := strconv.Itoa(n)
	return "3f0bd0a5-94b4-4d6c-8f0e-" + strings.Repeat("0", 12-len(tail)) + tail
}

// hostile are ids and texts that a store must give back as they are.
func hostile() map[string]string {
	return map[string]string{
		"empty":              "",
		"space":              " ",
		"NUL":                "a\x00b",
		"NUL first":          "\x00",
		"16 bytes":           "sixteen bytes it",
		"UUID":               uuid(1),
		"upper-case UUID":    strings.ToUpper(uuid(2)),
		"UUID without lines": strings.ReplaceAll(uuid(3), "-", ""),
		"almost a UUID":      uuid(4)[:35] + "g",
		"number":             "42",
		"number with zeros":  "0042.0",
		"hexadecimal":        "0x2A",
		"SQL":                `'; DROP TABLE tasks; --`,
		"wildcards":          `%_*?[a]`,
		"long":               strings.Repeat("long ", 2_000),
		"other script":       "задача-任務-🌱",
		"no UTF-8":           "\xff\xfe\x80",
	}
}
