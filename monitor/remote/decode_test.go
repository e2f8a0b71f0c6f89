package remote_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/remote"
)

// inspected is what an Inspector makes of replies.
func inspected(t *testing.T, values map[string]string) remote.Inspection {
	t.Helper()
	var got remote.Inspection
	in(t, func(t *testing.T) {
		f := newFleet(t)
		all := idle()
		maps.Copy(all, values)
		f.add(t, "w", tells(all))
		got = inspector(t, f).Inspect(t.Context(), "w")
	})
	for method, text := range got.Errors {
		t.Errorf("%s: %s", method, text)
	}
	return got
}

func TestStats(t *testing.T) {
	t.Parallel()
	raw := func(s string) map[string]json.RawMessage {
		var m map[string]json.RawMessage
		if err := json.Unmarshal([]byte(s), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for name, test := range map[string]struct {
		value string
		want  remote.Stats
	}{
		"prefork": {
			`{"total":{"wapp.add":5,"wapp.api_key":1},"pid":16724,"clock":"249","uptime":177,
				"pool":{"implementation":"celery.concurrency.prefork:TaskPool","max-concurrency":2,"processes":[17676,17761,17762],
				"max-tasks-per-child":"N/A","put-guarded-by-semaphore":false,"timeouts":[0,30.5],"writes":{"total":21}},
				"autoscaler":{"max":3,"min":2,"current":2,"qty":0},"prefetch_count":10,
				"broker":{"hostname":"127.0.0.1","alternates":["amqp://u:hunter2@h//"]},"rusage":{"utime":0.7}}`,
			remote.Stats{
				PID: 16724, Clock: 249, Uptime: 177 * time.Second, Total: map[string]int64{"wapp.add": 5, "wapp.api_key": 1}, PrefetchCount: new(int64(10)),
				Pool: remote.Pool{
					Implementation: "celery.concurrency.prefork:TaskPool", Kind: "prefork", MaxConcurrency: new(int64(2)),
					Processes: []int64{17676, 17761, 17762}, Slots: new(int64(3)), MaxTasksPerChild: "N/A", HardLimit: new(30.5), Writes: raw(`{"total":21}`),
				},
				Autoscaler: &remote.Autoscaler{Min: 2, Max: 3, Current: 2},
				Broker:     raw(`{"hostname":"127.0.0.1","alternates":["amqp://u:********@h//"]}`), RUsage: raw(`{"utime":0.7}`),
			},
		},
		"threads": {
			`{"pool":{"implementation":"celery.concurrency.thread:TaskPool","max-concurrency":3,"threads":1}}`,
			remote.Stats{Total: map[string]int64{}, Pool: remote.Pool{
				Implementation: "celery.concurrency.thread:TaskPool", Kind: "threads", MaxConcurrency: new(int64(3)), Slots: new(int64(3)),
			}},
		},
		"solo": {
			`{"pid":7,"pool":{"implementation":"celery.concurrency.solo:TaskPool","max-concurrency":1,"processes":[7],"max-tasks-per-child":null,"timeouts":[]}}`,
			remote.Stats{PID: 7, Total: map[string]int64{}, Pool: remote.Pool{
				Implementation: "celery.concurrency.solo:TaskPool", Kind: "solo", MaxConcurrency: new(int64(1)), Processes: []int64{7}, Slots: new(int64(1)),
			}},
		},
		"gevent": {
			`{"pool":{"implementation":"celery.concurrency.gevent:TaskPool","max-concurrency":100},"rusage":"N/A","prefetch_count":"N/A"}`,
			remote.Stats{Total: map[string]int64{}, Pool: remote.Pool{
				Implementation: "celery.concurrency.gevent:TaskPool", Kind: "gevent", MaxConcurrency: new(int64(100)), Slots: new(int64(100)),
			}},
		},
		"recycled children": {
			`{"pool":{"max-tasks-per-child":100,"writes":"N/A"}}`,
			remote.Stats{Total: map[string]int64{}, Pool: remote.Pool{MaxTasksPerChild: "100"}},
		},
		"nothing known": {
			`{"pool":"N/A","total":null,"clock":null,"uptime":"N/A","autoscaler":null,"broker":null}`, remote.Stats{Total: map[string]int64{}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := inspected(t, map[string]string{"stats": test.value}).Stats
			if got == nil {
				t.Fatal("no stats")
			}
			got.Raw = nil
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Errorf("stats (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTasksThatWorkersHold(t *testing.T) {
	t.Parallel()
	const full = `{"id":"735cacb6","name":"shadow","args":"(8, 'x')","kwargs":"{}","type":"wapp.slow","hostname":"w1@vm",
		"time_start":1795222306.1649446,"acknowledged":true,
		"delivery_info":{"exchange":"","routing_key":"celery","priority":5,"redelivered":false},"worker_pid":17761}`
	got := inspected(t, map[string]string{
		"active":    `[` + full + `,{"name":"no id"},7]`,
		"reserved":  `[{"id":"1","type":"t","args":[8,{"a":null}],"kwargs":{"b":true},"time_start":null,"acknowledged":false,"delivery_info":{"redelivered":null},"worker_pid":null}]`,
		"scheduled": `[{"eta":"2026-11-21T00:52:46.160286+00:00","priority":6,"request":` + full + `},{"eta":null,"request":{"id":"2"}},{"eta":"2026-11-21T02:00:00+02:00","request":{"id":"3"}}]`,
		"revoked":   `["a",null,"b"]`,
	})
	slow := remote.TaskInfo{
		ID: "735cacb6", Name: "shadow", Type: "wapp.slow", Args: "(8, 'x')", Kwargs: "{}",
		StartedAt: time.UnixMicro(1795222306164945).UTC(), PID: new(int64(17761)), Acknowledged: true, Queue: "celery",
		Priority: new(int64(5)), Redelivered: new(false),
	}
	if diff := cmp.Diff([]remote.TaskInfo{slow}, got.Active); diff != "" {
		t.Errorf("active (-want +got):\n%s", diff)
	}
	want := []remote.TaskInfo{{ID: "1", Name: "t", Type: "t", Args: "(8, {'a': None})", Kwargs: "{'b': True}"}}
	if diff := cmp.Diff(want, got.Reserved); diff != "" {
		t.Errorf("reserved (-want +got):\n%s", diff)
	}
	scheduled := []remote.ScheduledTask{
		{ETA: time.Date(2026, 11, 21, 0, 52, 46, 160286000, time.UTC), Task: slow},
		{Task: remote.TaskInfo{ID: "2"}},
		{ETA: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), Task: remote.TaskInfo{ID: "3"}},
	}
	if diff := cmp.Diff(scheduled, got.Scheduled); diff != "" {
		t.Errorf("scheduled (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, got.Revoked); diff != "" {
		t.Errorf("revoked (-want +got):\n%s", diff)
	}
}

func TestRegisteredAndQueues(t *testing.T) {
	t.Parallel()
	got := inspected(t, map[string]string{
		"registered": `["a","b [serializer=json max_retries=3]","c [rate_limit=10/m queue=my queue]","odd [","d []"]`,
		"active_queues": `[{"name":"celery","exchange":{"name":"ex","type":"direct"},"routing_key":"rk","queue_arguments":{"x-max-priority":9},
			"durable":true,"max_priority":null},{"name":"bare","exchange":null,"bindings":[]},{"exchange":null}]`,
		"conf":  `{"task_queues":null,"worker_concurrency":2}`,
		"clock": `{"clock":"259"}`,
	})
	want := []remote.RegisteredTask{
		{Name: "a"},
		{Name: "b", Info: map[string]string{"serializer": "json", "max_retries": "3"}},
		{Name: "c", Info: map[string]string{"rate_limit": "10/m", "queue": "my queue"}},
		{Name: "odd ["},
		{Name: "d", Info: map[string]string{}},
	}
	if diff := cmp.Diff(want, got.Registered); diff != "" {
		t.Errorf("registered (-want +got):\n%s", diff)
	}
	queues := []remote.ConsumedQueue{
		{
			Name: "celery", Exchange: "ex", ExchangeType: "direct", RoutingKey: "rk", Durable: new(true),
			Arguments: map[string]json.RawMessage{"x-max-priority": json.RawMessage("9")}, MaxPriority: new(int64(9)),
		},
		{Name: "bare"},
	}
	if diff := cmp.Diff(queues, got.Queues); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]json.RawMessage{"task_queues": json.RawMessage("null"), "worker_concurrency": json.RawMessage("2")}, got.Conf); diff != "" {
		t.Errorf("conf (-want +got):\n%s", diff)
	}
	if *got.Clock != 259 {
		t.Errorf("clock = %d, want 259", *got.Clock)
	}
}

func TestInspectionIsBounded(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		many := func(n int, item string) string { return "[" + strings.Repeat(item+",", n-1) + item + "]" }
		long := strings.Repeat("ä", 35_000)
		task := `{"id":"1","name":"` + long + `","args":"` + long + `","kwargs":[` + strings.Repeat(`"x",`, 20_000) + `1]}`
		f.add(t, "w", tells(map[string]string{
			"stats": `{"pid":1,"x":"` + long + `"}`, "active": many(3, task), "reserved": many(3_000, `{"id":"1"}`),
			"scheduled": many(3_000, `{"eta":null,"request":{"id":"1"}}`), "revoked": many(5_000, `"1"`),
			"registered": many(20_001, `"t"`), "active_queues": many(20_001, `{"name":"q"}`), "conf": `{"a":"` + long + `"}`, "clock": `{"clock":1}`,
		}))
		i := inspector(t, f)
		got := i.Inspect(t.Context(), "w")
		if len(got.Errors) != 0 {
			t.Fatalf("errors = %v", got.Errors)
		}
		if n := []int{len(got.Active), len(got.Reserved), len(got.Scheduled), len(got.Revoked), len(got.Registered), len(got.Queues)}; !slices.Equal(n, []int{3, 1000, 1000, 1000, 20_000, 20_000}) {
			t.Errorf("lengths = %v", n)
		}
		want := map[string]int{"active": 3, "reserved": 3_000, "scheduled": 3_000, "revoked": 5_000, "registered": 20_001, "active_queues": 20_001}
		if diff := cmp.Diff(want, got.Totals); diff != "" {
			t.Errorf("totals (-want +got):\n%s", diff)
		}
		a := got.Active[0]
		if len(a.Args) > 4100 || len(a.Kwargs) > 4100 || len(a.Name) > 1100 || !strings.HasSuffix(a.Args, "…") {
			t.Errorf("texts of %d, %d, %d bytes are kept", len(a.Args), len(a.Kwargs), len(a.Name))
		}
		if len(got.Stats.Raw) > 70_000 || len(got.Conf["a"]) > 70_000 || !json.Valid(got.Stats.Raw) {
			t.Error("long JSON is kept")
		}
	})
}

// FuzzInspection has a worker reply every request with the same text.
func FuzzInspection(f *testing.F) {
	for _, s := range []string{
		`[]`, `{}`, `null`, `"N/A"`, `[{"id":"1","delivery_info":null,"time_start":"x"}]`, `{"pool":"N/A","broker":[],"total":null,"uptime":-1}`,
		`["a [b=c d]","[",""]`, `[{"eta":"x","request":[]}]`, `{"clock":"9e99"}`, `{"pool":{"processes":[null,"1"],"timeouts":[1]}}`, `{"error":"x"}`,
		`{"ok":1}`, `[{"name":"q","exchange":null,"queue_arguments":[]}]`,
	} {
		f.Add(s)
	}
	broker := inproc.New(inproc.Options{})
	value := ""
	var clock time.Time
	client, err := remote.New(remote.Options{Broker: broker})
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = client.Run(ctx) })
	f.Cleanup(func() {
		cancel()
		running.Wait()
	})
	fleet := &fleet{Broker: broker}
	defer broker.Listen(fleet.listener("w", func(request) []answer { return []answer{{value: value}} }))()
	f.Fuzz(func(t *testing.T, s string) {
		value = s
		clock = clock.Add(time.Minute)
		i, err := remote.NewInspector(remote.InspectorOptions{Client: client, Now: func() time.Time { return clock }})
		if err != nil {
			t.Fatal(err)
		}
		for !client.Connected() {
			<-time.After(ms)
		}
		got := i.Inspect(t.Context(), "w")
		if _, err := json.Marshal(got); err != nil {
			t.Fatalf("inspection of %q: %v", s, err)
		}
		if len(got.Errors)+len(got.Times) != len(idle()) {
			t.Fatalf("inspection of %q has %d errors and %d parts: %v", s, len(got.Errors), len(got.Times), got.Errors)
		}
	})
}
