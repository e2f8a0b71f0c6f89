package remote_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/remote"
)

func TestEndToEndWorkersOnRabbitMQ(t *testing.T) { workersAnswer(t, onRabbitMQ(t)) }

func TestEndToEndWorkersOnRedis(t *testing.T) { workersAnswer(t, onRedis(t)) }

// workersAnswer is one story: three workers come, are asked and changed, and go.
func workersAnswer(t *testing.T, s *site) {
	t.Helper()
	nodes := []string{"fork@test", "solo@test", "threads@test"}
	s.spawn(t, "fork@test", "", "-P", "prefork", "-c", "2", "-E")
	solo := s.spawn(t, "solo@test", "", "-P", "solo")
	threads := s.spawn(t, "threads@test", "", "-P", "threads", "-c", "2")
	s.ready(t, nodes...)
	i, err := remote.NewInspector(remote.InspectorOptions{Client: s.client, Alive: func() []string { return nodes }})
	if err != nil {
		t.Fatalf("new inspector: %v", err)
	}
	s.start(t, i.Run)

	pingsReturnAtOnce(t, s, nodes)
	topologyIsKnown(t, i, nodes)
	heldTasksAreShown(t, s, i)
	poolsDiffer(t, i)
	everyMethodIsUnderstood(t, s)
	solo.kill()
	deadIsNamed(t, i, "solo@test")

	v, err := s.client.Send(t.Context(), remote.Request{Method: "shutdown", Destination: []string{"threads@test"}, Timeout: time.Millisecond})
	if err != nil {
		t.Fatalf("send shutdown: %v", err)
	}
	v.Wait(t.Context())
	select {
	case <-threads.exited:
	case <-time.After(timeout):
		t.Errorf("threads@test did not end within %v of shutdown", timeout)
	}
	s.spawn(t, "pickle@test", "APP_SERIALIZER=pickle", "-P", "solo")
	s.spawn(t, "auto@test", "", "-P", "prefork", "--autoscale", "2,1")
	s.ready(t, "pickle@test", "auto@test")
	pickleIsUndecodable(t, s, i)
	poolIsScaled(t, s, i)
}

// pingsReturnAtOnce is the goal: within 300 ms of the last reply, and not at the timeout.
func pingsReturnAtOnce(t *testing.T, s *site, nodes []string) {
	t.Helper()
	const timeout = 10 * time.Second
	var lags []time.Duration // from the last reply to the return
	var slowest time.Duration
	for n := range 21 {
		q := remote.Request{Method: "ping", Expect: nodes, Timeout: timeout}
		if n%2 == 1 {
			q.Expect, q.Destination = nil, nodes
		}
		a, err := s.client.Call(t.Context(), q)
		returned := time.Now()
		if err != nil || len(a.Items) != len(nodes) || len(a.Missing) != 0 {
			t.Fatalf("ping: %+v, error %v, want %d replies", a, err, len(nodes))
		}
		var last time.Time
		for _, r := range a.Items {
			if r.OK != "pong" {
				t.Errorf("%s answers %+v, want pong", r.Node, r)
			}
			if r.At.After(last) {
				last = r.At
			}
		}
		lags, slowest = append(lags, returned.Sub(last)), max(slowest, a.Elapsed)
	}
	slices.Sort(lags)
	t.Logf("%d pings of %d workers returned %v after the last reply, at most %v; all of it took at most %v",
		len(lags), len(nodes), lags[len(lags)/2], lags[len(lags)-1], slowest)
	if lag := lags[len(lags)/2]; lag > 300*ms || slowest >= timeout {
		t.Errorf("pings returned %v after the last reply and %v after they were sent, want at most 300ms and less than %v", lag, slowest, timeout)
	}
}

func topologyIsKnown(t *testing.T, i *remote.Inspector, nodes []string) {
	t.Helper()
	got := i.Topology(t.Context())
	if len(got.Missing) != 0 {
		t.Errorf("missing = %v, want nobody", got.Missing)
	}
	for _, task := range []string{"app.hold", "celery.chord"} {
		if diff := cmp.Diff(nodes, got.Tasks[task]); diff != "" {
			t.Errorf("workers that have %s (-want +got):\n%s", task, diff)
		}
	}
	want := map[string][]string{"fork": nodes[:1], "solo": nodes[1:2], "threads": nodes[2:]}
	if diff := cmp.Diff(want, got.Queues); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
}

// heldTasksAreShown has a pool of two with tasks that run, wait for a process, wait for their time, and are revoked.
func heldTasksAreShown(t *testing.T, s *site, i *remote.Inspector) {
	t.Helper()
	gate := filepath.Join(t.TempDir(), "open")
	args, err := json.Marshal([]any{gate, "ä", 1})
	if err != nil {
		t.Fatal(err)
	}
	publish := func(m celery.Message) {
		t.Helper()
		m.Name, m.Args, m.Kwargs = "app.hold", args, json.RawMessage(`{"b":null}`)
		p, err := m.Publishing(time.Now())
		if err == nil {
			err = s.client.Publish(t.Context(), "fork", p)
		}
		if err != nil {
			t.Fatalf("publish: %v", err)
		}
	}
	eta := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	publish(celery.Message{ID: "later", ETA: eta})
	for _, id := range []string{"one", "two", "three"} {
		publish(celery.Message{ID: id})
	}
	if got := s.ask(t, "revoke", map[string]any{"task_id": "unwanted"}, "fork@test"); got.Items[0].OK == "" {
		t.Errorf("revoke answers %+v", got.Items[0])
	}
	var got remote.Inspection
	s.await(t, "inspection with four tasks", func() bool {
		got = i.Cached("fork@test")
		return len(got.Active) == 2 && len(got.Reserved) == 1 && len(got.Scheduled) == 1 && len(got.Revoked) == 1
	})
	if len(got.Errors) != 0 {
		t.Errorf("errors = %v", got.Errors)
	}
	repr := "('" + gate + "', 'ä', 1)"
	for _, r := range append(got.Active[:2:2], got.Reserved[0], got.Scheduled[0].Task) {
		if r.Name != "app.hold" || r.Type != "app.hold" || r.Args != repr || r.Kwargs != "{'b': None}" || r.Queue != "fork" {
			t.Errorf("task = %+v, want app.hold%s of queue fork", r, repr)
		}
	}
	for _, r := range got.Active {
		if r.PID == nil || time.Since(r.StartedAt) > timeout || r.StartedAt.After(time.Now().Add(time.Second)) || !r.Acknowledged {
			t.Errorf("active task = %+v, want a process and a start just now", r)
		}
	}
	if !got.Scheduled[0].ETA.Equal(eta) || got.Scheduled[0].Task.ID != "later" {
		t.Errorf("scheduled = %+v, want later at %v", got.Scheduled[0], eta)
	}
	found := s.ask(t, "query_task", map[string]any{"ids": []string{"one", "nobody"}}, "fork@test").Items[0]
	if !strings.Contains(string(found.Value), `"one"`) || strings.Contains(string(found.Value), "nobody") {
		t.Errorf("query_task tells %s", found.Value)
	}
	ended := s.ask(t, "terminate", map[string]any{"task_id": []string{"one", "two", "three", "later"}, "signal": "SIGKILL"}, "fork@test")
	if ok := ended.Items[0].OK; !strings.HasPrefix(ok, "terminate: ") {
		t.Errorf("terminate answers %+v", ended.Items[0])
	}
}

func poolsDiffer(t *testing.T, i *remote.Inspector) {
	t.Helper()
	<-time.After(remote.MaxAge) // for what has changed since
	for node, want := range map[string]struct {
		kind             string
		slots, processes int
	}{"fork@test": {"prefork", 2, 2}, "solo@test": {"solo", 1, 1}, "threads@test": {"threads", 2, 0}} {
		got := i.Inspect(t.Context(), node)
		if len(got.Errors) != 0 || got.Stats == nil {
			t.Errorf("%s: errors %v, stats %v", node, got.Errors, got.Stats)
			continue
		}
		p := got.Stats.Pool
		if p.Kind != want.kind || p.Slots == nil || int(*p.Slots) != want.slots || len(p.Processes) != want.processes {
			t.Errorf("%s: pool = %+v, want %+v", node, p, want)
		}
		if got.Stats.PID == 0 || got.Stats.Clock == 0 || got.Clock == nil || got.Stats.PrefetchCount == nil || got.Stats.RUsage["utime"] == nil {
			t.Errorf("%s: stats = %+v, clock %v", node, got.Stats, got.Clock)
		}
		if r := got.Registered; len(r) != 2 || r[0].Name != "app.hold" || r[0].Info["rate_limit"] != "100/s" || r[0].Info["soft_time_limit"] != "50" {
			t.Errorf("%s: registered = %+v", node, r)
		}
		if q := got.Queues; len(q) != 1 || q[0].Name+"@test" != node || q[0].ExchangeType != "direct" || q[0].RoutingKey != q[0].Name {
			t.Errorf("%s: queues = %+v", node, q)
		}
		if string(got.Conf["my_own_token"]) != `"********"` || string(got.Conf["worker_pool_restarts"]) != "true" {
			t.Errorf("%s: conf = %s", node, got.Conf)
		}
		report := i.Report(t.Context(), node).Report
		if !strings.Contains(report, "software -> celery:") {
			t.Errorf("%s: report = %q", node, report)
		}
		for what, text := range map[string]string{"stats": string(got.Stats.Raw), "report": report} {
			if strings.Contains(text, "guest@") || strings.Contains(text, "hunter2") {
				t.Errorf("%s: a password is in the %s: %s", node, what, text)
			}
		}
	}
}

// everyMethodIsUnderstood sends what Check lets pass of every method, and wants no TypeError.
func everyMethodIsUnderstood(t *testing.T, s *site) {
	t.Helper()
	const fork = "fork@test"
	tests := map[string][]struct {
		node, args string
		want       string // part of ok, of error after !, or of the value
	}{
		"ping":          {{fork, `{}`, "pong"}},
		"stats":         {{fork, `{}`, `"pool"`}},
		"active":        {{fork, `{"safe":true}`, "["}},
		"reserved":      {{fork, `{}`, "["}},
		"scheduled":     {{fork, `{}`, "["}},
		"revoked":       {{fork, `{}`, "unwanted"}},
		"registered":    {{fork, `{"taskinfoitems":["rate_limit"],"builtins":true}`, `"app.hold [rate_limit=100/s]"`}},
		"active_queues": {{fork, `{}`, `"routing_key": "fork"`}},
		"conf":          {{fork, `{"with_defaults":true}`, `"task_default_queue":"celery"`}},
		"report":        {{fork, `{}`, "software -> celery"}},
		"query_task":    {{fork, `{"ids":["nobody"]}`, `{}`}},
		"clock":         {{fork, `{}`, `{"clock":`}},
		"memsample":     {{fork, `{}`, ""}},
		"revoke": {
			{fork, `{"task_id":["a","b"]}`, "flagged as revoked"},
			{fork, `{"task_id":"a","terminate":true,"signal":"SIGUSR1"}`, "terminate: tasks unknown"},
		},
		"terminate": {{fork, `{"task_id":"a"}`, "terminate: tasks unknown"}},
		"revoke_by_stamped_headers": {
			{fork, `{"headers":{"k":"v","l":["a","b"]}}`, "flagged as revoked, but not terminated"},
			{fork, `{"headers":{"k":["v"]},"terminate":true,"signal":"SIGTERM"}`, "were not terminated"},
		},
		"rate_limit": {
			{fork, `{"task_name":"app.hold","rate_limit":"10/m"}`, "new rate limit set successfully"},
			{fork, `{"task_name":"app.hold","rate_limit":2.5}`, "new rate limit set successfully"},
			{fork, `{"task_name":"app.hold","rate_limit":"0"}`, "rate limit disabled successfully"},
			{fork, `{"task_name":"nobody","rate_limit":1}`, "!unknown task"},
		},
		"time_limit": {
			{fork, `{"task_name":"app.hold","soft":10,"hard":20.5}`, "time limits set successfully"},
			{fork, `{"task_name":"app.hold","soft":null,"hard":null}`, "time limits set successfully"},
		},
		"disable_events": {{fork, `{}`, "task events already disabled"}},
		"enable_events":  {{"solo@test", `{}`, "task events enabled"}, {fork, `{}`, "task events already enabled"}},
		"heartbeat":      {{fork, `{}`, "null"}},
		"pool_grow":      {{fork, `{}`, "pool will grow"}, {fork, `{"n":1}`, "pool will grow"}, {"threads@test", `{"n":1}`, "!AttributeError"}},
		"pool_shrink":    {{fork, `{"n":2}`, "pool will shrink"}},
		"autoscale":      {{fork, `{"max":3,"min":1}`, "!Autoscale not enabled"}},
		"add_consumer": {
			{fork, `{"queue":"extra"}`, "add consumer extra"},
			{fork, `{"queue":"topical","exchange":"topics","exchange_type":"topic","routing_key":"a.#"}`, "add consumer topical"},
		},
		"cancel_consumer": {{fork, `{"queue":"extra"}`, "no longer consuming from extra"}},
		"pool_restart":    {{fork, `{"modules":["app"]}`, "reload started"}},
	}
	for _, m := range remote.Methods() {
		if m.NoReply || m.Steps { // steps are other methods, in an order
			continue
		}
		if len(tests[m.Name]) == 0 {
			t.Errorf("%s is not tried", m.Name)
		}
		for _, test := range tests[m.Name] {
			a := s.ask(t, m.Name, object(t, test.args), test.node)
			if len(a.Items) != 1 {
				t.Errorf("%s%s: no reply from %s", m.Name, test.args, test.node)
				continue
			}
			r := a.Items[0]
			got, wanted := r.OK, test.want
			switch {
			case strings.HasPrefix(test.want, "!"):
				got, wanted = r.Error, test.want[1:]
			case r.OK == "":
				got = string(r.Value)
			}
			if !strings.Contains(got, wanted) || strings.Contains(r.Error, "TypeError") {
				t.Errorf("%s%s answers ok %q, error %q, value %.300s, want %s", m.Name, test.args, r.OK, r.Error, r.Value, test.want)
			}
		}
	}
	s.ready(t, fork, "solo@test", "threads@test")
}

// deadIsNamed wants no success from a worker that was killed.
func deadIsNamed(t *testing.T, i *remote.Inspector, node string) {
	t.Helper()
	<-time.After(remote.MaxAge)
	start := time.Now()
	got := i.Inspect(t.Context(), node)
	if want := "no reply from " + node + " in 2 s"; !strings.HasPrefix(got.Errors["stats"], want) || len(got.Errors) != len(idle()) {
		t.Errorf("errors = %v, want %s", got.Errors, want)
	}
	if took := time.Since(start); took < time.Second || got.Stats == nil {
		t.Errorf("after %v stats = %v, want those of before after 2 s", took, got.Stats)
	}
	if missing := i.Topology(t.Context()).Missing; len(missing) != 1 || missing[0] != node {
		t.Errorf("missing = %v, want %s", missing, node)
	}
}

func pickleIsUndecodable(t *testing.T, s *site, i *remote.Inspector) {
	t.Helper()
	const want = "reply is a pickle (application/x-python-serialize): set accept_content and task_serializer to json"
	a, err := s.client.Call(t.Context(), remote.Request{Method: "ping", Expect: []string{"pickle@test", "fork@test", "auto@test"}})
	if err != nil || len(a.Items) != 3 || len(a.Missing) != 0 {
		t.Fatalf("ping: %+v, error %v, want three replies", a, err)
	}
	for _, r := range a.Items {
		if pickled := r.Node == "pickle@test"; pickled != (r.Undecodable == want) || pickled == (r.OK == "pong") {
			t.Errorf("reply = %+v", r)
		}
	}
	if got := i.Inspect(t.Context(), "pickle@test").Errors["stats"]; got != want {
		t.Errorf("error = %q, want %q", got, want)
	}
}

// poolIsScaled tries what only a pool with autoscaling does.
func poolIsScaled(t *testing.T, s *site, i *remote.Inspector) {
	t.Helper()
	if got := s.ask(t, "autoscale", map[string]any{"max": 3, "min": 2}, "auto@test").Items[0]; got.OK != "autoscale now max=3 min=2" {
		t.Errorf("autoscale answers %+v", got)
	}
	if got := s.ask(t, "pool_grow", map[string]any{"n": 1}, "auto@test").Items[0]; !strings.Contains(got.Error, "not supported with autoscale") {
		t.Errorf("pool_grow answers %+v", got)
	}
	got := i.Inspect(t.Context(), "auto@test").Stats
	if got == nil || got.Autoscaler == nil || got.Autoscaler.Max != 3 || got.Autoscaler.Min != 2 {
		t.Errorf("stats = %+v, want an autoscaler from 2 to 3", got)
	}
}
