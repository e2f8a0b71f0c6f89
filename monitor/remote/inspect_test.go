package remote_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/remote"
)

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
		const silence = "no reply from celery@w2 in 2 s"
		want := map[string]string{
			"stats": silence, "scheduled": silence, "revoked": silence, "registered": silence, "active_queues": silence,
			"conf":   "RuntimeError('redis://:********@h')",
			"active": "reply to active is not understood", "reserved": "reply to reserved is not understood",
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
			"busy": "no reply from busy in 2 s: a solo worker replies only after its task", "dead": "no reply from dead in 2 s",
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
		if want := "connection to the broker lost before w1 replied"; got.Errors["stats"] != want || time.Since(start) != 100*ms {
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
		if got.Report != want || got.Errors["report"] != "no reply from w1 in 2 s" {
			t.Errorf("report %q, error %q, want the older one and the reason", got.Report, got.Errors["report"])
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
