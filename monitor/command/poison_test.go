package command_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/state"
)

// poisons is how many messages a worker is fed.
const poisons = 400

func TestEndToEndNoMessageKillsAWorkerOnRabbitMQ(t *testing.T) {
	t.Parallel()
	feeds(t, "RabbitMQ")
}

func TestEndToEndNoMessageKillsAWorkerOnRedis(t *testing.T) {
	t.Parallel()
	feeds(t, "Redis")
}

// feeds gives a real worker whatever Publishing lets through, and sees that it lives on and runs what can be run.
func feeds(t *testing.T, kind string) {
	t.Helper()
	c := clusterOn(t, kind)
	p := c.work(t, "fed@test", "-P", "prefork", "-c", "1", "-Q", "celery")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	refused, runs := 0, make(map[string]celery.Message)
	for i := range poisons {
		m := strange(r, i)
		out, err := m.Publishing(time.Now())
		if err != nil {
			refused++
			continue
		}
		if err := c.Client.Publish(t.Context(), "celery", out); err != nil {
			t.Fatalf("publish %+v: %v", m, err)
		}
		if m.Name == "tasks.echo" && m.ETA.IsZero() && m.Expires.IsZero() && m.SoftLimit == nil && m.HardLimit == nil {
			runs[m.ID] = m
		}
	}
	if refused > poisons/2 || len(runs) < poisons/20 {
		t.Fatalf("%d of %d messages were refused and %d must succeed: that tests nothing", refused, poisons, len(runs))
	}
	t.Logf("%d messages were refused, %d must succeed", refused, len(runs))
	for id, m := range runs {
		got := c.task(t, id, state.Success, state.Failure)
		if got.State != state.Success && !strings.Contains(*got.Exception, "multiple values for argument 'self'") {
			t.Errorf("the worker has not run %s %s %s: %s", id, m.Args, m.Kwargs, *got.Exception)
		}
	}
	c.told(t)
	c.task(t, c.publish(t, command.TaskRequest{Name: "tasks.echo"}), state.Success)
	if !p.alive() || p.says("Unrecoverable error") {
		t.Error("the worker is dead")
	}
	if got := c.control(t, "ping", nil, "fed@test"); got["fed@test"] != "pong" {
		t.Errorf("ping is answered with %v", got)
	}
}

// strange is a message as nobody sends it.
func strange(r *rand.Rand, n int) celery.Message {
	pick := func(choices ...string) string { return choices[r.IntN(len(choices))] }
	m := celery.Message{
		ID:   fmt.Sprintf("%s%d", pick("id-", "ü ", "{}[]", "'\"\\", "../", "%s%d", strings.Repeat("x", 240)), n),
		Name: pick("tasks.echo", "tasks.echo", "tasks.echo", "tasks.boom", "tasks.none", "celery.backend_cleanup", "ü", "a b", "__init__", "%s", "{0}"),
		Args: json.RawMessage(oddArray(r)), Kwargs: json.RawMessage(oddObject(r, false)),
	}
	if r.IntN(3) == 0 {
		m.RootID, m.ParentID, m.GroupID = pick("", "root", "☃"), pick("", "parent"), pick("", "group", "%d")
		m.Shadow, m.Origin, m.Retries = pick("", "shown", "%(x)s"), pick("", "gen1@host", "@"), r.IntN(1<<31)
	}
	now := time.Now()
	switch r.IntN(12) {
	case 0:
		m.ETA = now.Add(time.Duration(r.Int64N(int64(9 * 365 * 24 * time.Hour))))
	case 1:
		m.ETA = time.Unix(r.Int64N(now.Unix()), r.Int64N(1e9)).In(time.FixedZone("", r.IntN(86_000)-43_000))
	case 2:
		m.Expires = now.Add(time.Duration(r.Int64N(int64(9 * 365 * 24 * time.Hour))))
	case 3:
		m.SoftLimit = new(0.001 + r.Float64()*1e6)
	case 4:
		m.HardLimit = new(1 + r.Float64()*999_998)
	case 5:
		m.Priority = new(uint8(r.IntN(10)))
	case 6:
		m.Headers = map[string]any{
			pick("custom", "x-death", "method", "ü", "meth", "stamp", "request", "self", "queue"): []any{nil, int64(1), "a", map[string]any{"k": 1.5}}[r.IntN(4)],
			"stamped_headers": []any{"stamp"}, "stamps": map[string]any{"stamp": []any{"a", "b"}}, "group_index": int64(r.IntN(9)),
			"ignore_result": r.IntN(2) == 0, "replaced_task_nesting": int64(r.IntN(3)),
		}
	case 7:
		m.Embed = json.RawMessage(pick(
			`{}`, `{"callbacks": [], "errbacks": null}`, `{"callbacks": [{"task": "tasks.echo", "args": [1], "kwargs": {}, "options": {}}]}`,
			`{"chain": [{"task": "tasks.none"}], "chord": null}`, `{"errbacks": [{"task": "tasks.echo"}]}`, `{"callbacks": [{"task": ""}]}`,
			`{"chord": {"task": "tasks.echo", "args": [], "kwargs": {}, "options": {}, "chord_size": 1}}`, `{"chain": [{"task": "tasks.echo", "options": 5}]}`,
		))
	}
	if m.Embed != nil {
		m.Name = "tasks.echo"  // it may fail after it has run
		m.SoftLimit = new(1e3) // and so need not succeed
	}
	return m
}

// oddArray is a JSON array that a worker may stumble over.
func oddArray(r *rand.Rand) string {
	list := make([]string, r.IntN(4))
	for i := range list {
		list[i] = oddValue(r, 3)
	}
	return "[" + strings.Join(list, ",") + "]"
}

// oddObject is a JSON object; wrapped ones look like what Kombu turns into another value.
func oddObject(r *rand.Rand, wrapped bool) string {
	if wrapped {
		return fmt.Sprintf(`{"__type__": %s, "__value__": %s}`, oddText(r), oddValue(r, 0))
	}
	keys := []string{"a", "self", "task", "args", "__type__", "", "ü", "0", "\\u0000", "class", "%s"}
	r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	var members []string
	for _, key := range keys[:r.IntN(3)] {
		members = append(members, fmt.Sprintf(`"%s": %s`, key, oddValue(r, 2)))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func oddValue(r *rand.Rand, depth int) string {
	choices := []func() string{
		func() string { return oddText(r) },
		func() string {
			return []string{"0", "-0", "1e308", "-1e-400", "1E+2", "null", "true", "18446744073709551616", strings.Repeat("9", 4_300), "1e400"}[r.IntN(10)]
		},
	}
	if depth > 0 {
		choices = append(choices,
			func() string { return oddArray(r) },
			func() string { return oddObject(r, r.IntN(10) == 0) },
			func() string {
				n := r.IntN(66)
				return strings.Repeat("[", n) + strings.Repeat("]", n) + strings.Repeat("1", 1-min(n, 1))
			},
			func() string { n := r.IntN(62); return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) },
			func() string {
				return []string{
					`{"__type__": "datetime", "__value__": "2026-02-29T00:00:00"}`, `{"__type__": "datetime", "__value__": "2024-02-29T23:59:59.999999-23:59"}`,
					`{"__type__": "date", "__value__": "9999-12-31"}`, `{"__type__": "time", "__value__": "23:59:59"}`, `{"__type__": "time", "__value__": "24:00"}`,
					`{"__type__": "decimal", "__value__": "1E+400"}`, `{"__type__": "decimal", "__value__": "sNaN"}`, `{"__type__": "decimal", "__value__": "1_0"}`,
					`{"__type__": "base64", "__value__": "AA=="}`, `{"__type__": "base64", "__value__": "ü"}`, `{"__type__": "bytes", "__value__": "\u0000"}`,
					`{"__type__": "uuid", "__value__": {"hex": "0123456789abcdef0123456789ABCDEF"}}`,
				}[r.IntN(12)]
			},
		)
	}
	return choices[r.IntN(len(choices))]()
}

func oddText(r *rand.Rand) string {
	return []string{
		`""`, `"\u0000"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\uffff"`, `"'\\\""`, `"%s %(a)s {0}"`, `"\u2028"`, `"bytes"`, `"` + strings.Repeat("long ", 2_000) + `"`,
	}[r.IntN(10)]
}
