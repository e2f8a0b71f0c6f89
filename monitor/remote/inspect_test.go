package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/remote"
)

// tells is a worker that replies each method with what the map has for it, and others not at all.
func tells(values map[string]string) worker {
	return func(r request) []answer {
		if v, ok := values[r.Method]; ok {
			return []answer{{value: v, after: ms}}
		}
		return nil
	}
}

// idle is what a worker with nothing to do replies.
func idle() map[string]string {
	return map[string]string{
		"stats": `{"pid":1}`, "active": `[]`, "reserved": `[]`, "scheduled": `[]`, "revoked": `[]`, "registered": `["tasks.add"]`,
		"active_queues": `[{"name":"celery"}]`, "conf": `{}`, "clock": `{"clock":7}`,
	}
}

// inspector is one whose client and itself run, on a fleet whose workers are alive.
func inspector(t *testing.T, f *fleet, alive ...string) *remote.Inspector {
	t.Helper()
	c := newClient(t, f)
	run(t, c.Run)
	i, err := remote.NewInspector(remote.InspectorOptions{Client: c, Alive: func() []string { return alive }})
	if err != nil {
		t.Fatalf("new inspector: %v", err)
	}
	run(t, i.Run)
	return i
}

// heardOf counts requests by method.
func heardOf(f *fleet) map[string]int {
	n := make(map[string]int)
	for _, r := range f.requests() {
		n[r.Method]++
	}
	return n
}

// rounds wants every request of a round so many times.
func rounds(n int) map[string]int {
	want := make(map[string]int)
	for method := range idle() {
		want[method] = n
	}
	return want
}

func TestInspectionIsSharedByAllWhoWatch(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", tells(idle()))
		i := inspector(t, f)
		if got := i.Cached("w1"); !got.At.IsZero() || got.Node != "w1" {
			t.Errorf("first look = %+v, want nothing known yet", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 21*time.Second)
		defer cancel()
		var viewers sync.WaitGroup
		for range 50 {
			viewers.Go(func() {
				for tick := time.NewTicker(200 * ms); ctx.Err() == nil; {
					i.Cached("w1")
					i.Inspect(ctx, "w1")
					select {
					case <-tick.C:
					case <-ctx.Done():
						tick.Stop()
					}
				}
			})
		}
		viewers.Wait()
		if diff := cmp.Diff(rounds(5), heardOf(f)); diff != "" { // at 0, 5, 10, 15 and 20 s
			t.Errorf("requests in 21 s (-want +got):\n%s", diff)
		}
		for _, r := range f.requests() {
			if diff := cmp.Diff([]string{"w1"}, r.Destination); diff != "" {
				t.Errorf("destination of %s (-want +got):\n%s", r.Method, diff)
			}
		}
	})
}

func TestNodeIsAskedWhileSomebodyWatches(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", tells(idle()))
		i := inspector(t, f)
		changed := i.Changed()
		start := time.Now()
		i.Cached("w1")
		<-changed
		got := i.Cached("w1")
		if !got.At.Equal(start.Add(ms)) || got.Refreshing || len(got.Errors) != 0 || got.Stats == nil || got.Stats.PID != 1 {
			t.Errorf("inspection = %+v, want one of %v", got, start.Add(ms))
		}
		<-time.After(time.Minute)
		if diff := cmp.Diff(rounds(4), heardOf(f)); diff != "" { // at 0, 5, 10 and 15 s, with the last look at 1 ms
			t.Errorf("requests after nobody looked for a minute (-want +got):\n%s", diff)
		}
		if got := i.Cached("w1"); got.Stats == nil {
			t.Error("what was known a minute ago is gone")
		}
		<-time.After(15 * time.Minute)
		if got := i.Cached("w1"); got.Stats != nil {
			t.Error("what nobody asked for in 15 minutes is still kept")
		}
	})
}

func TestNodeIsAskedAgainHoweverItWasAskedFirst(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", tells(idle()))
		i := inspector(t, f, "w1")
		i.Inspect(t.Context(), "w1")
		i.Topology(t.Context())
		for range 3 { // as a page that is rendered when something has changed
			changed := i.Changed()
			i.Cached("w1")
			i.CachedTopology()
			select {
			case <-changed:
			case <-time.After(6 * time.Second):
				t.Fatal("nothing new within 6 s")
			}
		}
		var asking sync.WaitGroup
		<-time.After(remote.MaxAge - 2*ms)
		asking.Go(func() { i.Inspect(t.Context(), "w1") })
		i.Cached("w1") // while somebody else asks
		asking.Wait()
		n := heardOf(f)["conf"]
		<-time.After(6 * time.Second)
		if got := heardOf(f)["conf"]; got <= n {
			t.Error("what was wanted while it was asked for is not asked for again")
		}
	})
}

func TestAskWaitsForOneRound(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", tells(idle()))
		i := inspector(t, f)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if got := i.Inspect(t.Context(), "w1"); got.Clock == nil || *got.Clock != 7 {
					t.Errorf("inspection = %+v, want a clock of 7", got)
				}
			})
		}
		all.Wait()
		i.Inspect(t.Context(), "w1")
		if diff := cmp.Diff(rounds(1), heardOf(f)); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		<-time.After(remote.MaxAge)
		i.Inspect(t.Context(), "w1")
		if diff := cmp.Diff(rounds(2), heardOf(f)); diff != "" {
			t.Errorf("requests 5 s later (-want +got):\n%s", diff)
		}
	})
}

func TestAskEndsWithItsContext(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", mute)
		i := inspector(t, f)
		i.Cached("w1")
		synctest.Wait() // Run asks
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		start := time.Now()
		if got := i.Inspect(ctx, "w1"); !got.Refreshing || time.Since(start) != 100*ms {
			t.Errorf("inspection = %+v after %v, want one that goes on after 100ms", got, time.Since(start))
		}
	})
}

func TestWhatFailsKeepsTheOlderValue(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		values := idle()
		f.add(t, "celery@w2", func(r request) []answer { return tells(values)(r) })
		i := inspector(t, f)
		start := time.Now()
		i.Inspect(t.Context(), "celery@w2")
		<-time.After(remote.MaxAge)
		values = map[string]string{
			"clock": `{"clock":9}`, "conf": `{"error":"RuntimeError('redis://:hunter2@h')"}`, "active": `"busy"`, "reserved": `null`,
		}
		got := i.Inspect(t.Context(), "celery@w2")
		const silence = "no answer from celery@w2 in 2 s"
		want := map[string]string{
			"stats": silence, "scheduled": silence, "revoked": silence, "registered": silence, "active_queues": silence,
			"conf":   "RuntimeError('redis://:********@h')",
			"active": "answer to active is not understood", "reserved": "answer to reserved is not understood",
		}
		if diff := cmp.Diff(want, got.Errors); diff != "" {
			t.Errorf("errors (-want +got):\n%s", diff)
		}
		if got.Stats == nil || len(got.Registered) != 1 || *got.Clock != 9 {
			t.Errorf("inspection = %+v, want the older values and the new clock", got)
		}
		if !got.Times["stats"].Equal(start.Add(ms)) || !got.Times["clock"].Equal(got.At) || !got.At.After(start.Add(remote.MaxAge)) {
			t.Errorf("times = %v at %v, want those of the answers", got.Times, got.At)
		}
		<-time.After(remote.MaxAge)
		values = idle()
		if got := i.Inspect(t.Context(), "celery@w2"); len(got.Errors) != 0 {
			t.Errorf("errors = %v, want none once all is well", got.Errors)
		}
	})
}

func TestSoloWorkersAreExcused(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		values := idle()
		values["stats"] = `{"pool":{"implementation":"celery.concurrency.solo:TaskPool"}}`
		for _, node := range []string{"busy", "dead"} {
			f.add(t, node, func(r request) []answer { return tells(values)(r) })
		}
		i := inspector(t, f, "busy")
		i.Inspect(t.Context(), "busy")
		i.Inspect(t.Context(), "dead")
		<-time.After(remote.MaxAge)
		values = nil
		for node, want := range map[string]string{
			"busy": "no answer from busy in 2 s: a solo worker answers only after its task", "dead": "no answer from dead in 2 s",
		} {
			if got := i.Inspect(t.Context(), node).Errors["active"]; got != want {
				t.Errorf("error = %q, want %q", got, want)
			}
		}
	})
}

func TestInspectionTakesTwoSecondsAtMost(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", mute)
		i := inspector(t, f)
		start := time.Now()
		got := i.Inspect(t.Context(), "w1")
		if took := time.Since(start); took != 2*time.Second || len(got.Errors) != len(idle()) || !got.At.IsZero() {
			t.Errorf("inspection of a mute worker took %v: %+v", took, got)
		}
	})
}

func TestInspectionWhileDisconnected(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.Refuse(errors.New("dial amqp://u:hunter2@h: refused"))
		i := inspector(t, f, "w1")
		got := i.Inspect(t.Context(), "w1")
		if want := "broker not connected: dial amqp://u:********@h: refused"; got.Errors["stats"] != want {
			t.Errorf("error = %q, want %q", got.Errors["stats"], want)
		}
		if diff := cmp.Diff([]string{"w1"}, i.Topology(t.Context()).Missing); diff != "" {
			t.Errorf("missing (-want +got):\n%s", diff)
		}
	})
}

func TestConnectionLostWhileInspecting(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", mute)
		i := inspector(t, f)
		cut := time.AfterFunc(100*ms, func() { f.Fail(errors.New("cable cut")) })
		defer cut.Stop()
		start := time.Now()
		got := i.Inspect(t.Context(), "w1")
		if want := "connection to the broker lost before w1 answered"; got.Errors["stats"] != want || time.Since(start) != 100*ms {
			t.Errorf("error = %q after %v, want %q after 100ms", got.Errors["stats"], time.Since(start), want)
		}
	})
}

func TestUndecodableWorker(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", func(request) []answer { return []answer{{mime: "application/x-python-serialize", plain: "cos\n."}} })
		i := inspector(t, f)
		got := i.Inspect(t.Context(), "w1")
		if want := "reply is a pickle (application/x-python-serialize): set accept_content and task_serializer to json"; got.Errors["conf"] != want {
			t.Errorf("error = %q, want %q", got.Errors["conf"], want)
		}
	})
}

func TestReportIsAskedForOnDemand(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		values := idle()
		values["report"] = `{"ok":"\nsoftware -> celery:5.6.3\nsettings -> transport:amqp results:redis://:hunter2@h/0\n\nbroker_url: 'amqp://u:hunter2@h//'\nmy_token: 'hunter2'\n"}`
		f.add(t, "w1", func(r request) []answer { return tells(values)(r) })
		i := inspector(t, f)
		i.Inspect(t.Context(), "w1")
		if n := heardOf(f)["report"]; n != 0 {
			t.Errorf("report was asked for %d times without demand", n)
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { i.Report(t.Context(), "w1") })
		}
		all.Wait()
		got := i.Peek("w1")
		want := "\nsoftware -> celery:5.6.3\nsettings -> transport:amqp results:redis://:********@h/0\n\nbroker_url: 'amqp://u:********@h//'\nmy_token: ********\n"
		if diff := cmp.Diff(want, got.Report); diff != "" || got.Stats == nil {
			t.Errorf("report (-want +got):\n%s", diff)
		}
		if n := heardOf(f)["report"]; n != 1 {
			t.Errorf("report was asked for %d times, want once", n)
		}
		delete(values, "report")
		<-time.After(remote.MaxAge)
		got = i.Report(t.Context(), "w1")
		if got.Report != want || got.Errors["report"] != "no answer from w1 in 2 s" {
			t.Errorf("report %q, error %q, want the older one and the reason", got.Report, got.Errors["report"])
		}
	})
}

func TestTopology(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		one := map[string]string{"registered": `["a [rate_limit=1/m]","b"]`, "active_queues": `[{"name":"q"},{"name":"r"},{"name":"q"}]`}
		two := map[string]string{"registered": `["b"]`, "active_queues": `[{"name":"q"}]`}
		f.add(t, "w2", func(r request) []answer { return tells(two)(r) })
		f.add(t, "w1", func(r request) []answer { return tells(one)(r) })
		i := inspector(t, f, "w2", "w1", "w3", "w1")
		check := func(when string, got remote.Topology, tasks, queues map[string][]string, missing []string) {
			t.Helper()
			if diff := cmp.Diff(tasks, got.Tasks); diff != "" {
				t.Errorf("%s: tasks (-want +got):\n%s", when, diff)
			}
			if diff := cmp.Diff(queues, got.Queues); diff != "" {
				t.Errorf("%s: queues (-want +got):\n%s", when, diff)
			}
			if diff := cmp.Diff(missing, got.Missing); diff != "" {
				t.Errorf("%s: missing (-want +got):\n%s", when, diff)
			}
		}
		both := []string{"w1", "w2"}
		tasks := map[string][]string{"a": {"w1"}, "b": both}
		queues := map[string][]string{"q": both, "r": {"w1"}}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { check("first", i.Topology(t.Context()), tasks, queues, []string{"w3"}) })
		}
		all.Wait()
		// w3 has just come up and may not have heard the first rounds.
		if n := len(f.requests()); n > 4*6 {
			t.Errorf("workers heard %d requests, want 12 each at most", n)
		}
		two = nil
		<-time.After(remote.MaxAge)
		got := i.Topology(t.Context())
		check("w2 is mute", got, tasks, queues, []string{"w2", "w3"})
		if diff := cmp.Diff([]string{"w1", "w2", "w3"}, got.Expected); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
		one = map[string]string{"registered": `[]`, "active_queues": `[]`}
		<-time.After(remote.MaxAge)
		check("w1 has nothing", i.Topology(t.Context()),
			map[string][]string{"b": {"w2"}}, map[string][]string{"q": {"w2"}}, []string{"w2", "w3"})
	})
}

func TestKnownDoesNotWait(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", tells(idle()))
		i := inspector(t, f, "w1")
		changed := i.Changed()
		if got := i.CachedTopology(); !got.At.IsZero() || got.Queues != nil {
			t.Errorf("known at first = %+v, want nothing", got)
		}
		<-changed
		if diff := cmp.Diff(map[string][]string{"celery": {"w1"}}, i.CachedTopology().Queues); diff != "" {
			t.Errorf("queues (-want +got):\n%s", diff)
		}
		<-time.After(time.Minute)
		if n := heardOf(f)["registered"]; n != 4 {
			t.Errorf("asked %d times, want 4: nobody looked any longer", n)
		}
	})
}

func TestWorkersThatDoNotExistAreForgotten(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w", tells(idle()))
		i := inspector(t, f)
		i.Inspect(t.Context(), "w")
		<-time.After(time.Second)
		for n := range 1100 {
			i.Cached(fmt.Sprintf("w%d", n))
			i.Cached("w")
			<-time.After(ms)
		}
		if got := i.Cached("w"); got.Stats == nil {
			t.Error("what is used is forgotten for what does not exist")
		}
	})
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
