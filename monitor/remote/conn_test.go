package remote_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/remote"
)

func TestConnectionLostDuringCall(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", says(pong, 10*ms))
		f.add(t, "w2", says(pong, time.Second))
		c := newClient(t, f)
		run(t, c.Run)
		cut := time.AfterFunc(100*ms, func() { f.Fail(errors.New("cable cut")) })
		defer cut.Stop()
		got, err := c.Call(t.Context(), remote.Request{Method: "ping", Destination: []string{"w1", "w2"}})
		if err != nil {
			t.Fatalf("ask: %v", err)
		}
		want := summary{Replies: map[string]string{"w1": "pong"}, Missing: []string{"w2"}, Lost: true, Waited: 100 * ms}
		if diff := cmp.Diff(want, summarize(got)); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		_, err = c.Call(t.Context(), remote.Request{Method: "ping"})
		if !errors.Is(err, remote.ErrUnavailable) || !strings.Contains(err.Error(), "cable cut") {
			t.Errorf("ask without a line: error %v, want %v with its cause", err, remote.ErrUnavailable)
		}
		<-time.After(time.Second) // the bound of the first try
		if got, err = c.Call(t.Context(), remote.Request{Method: "ping", Destination: []string{"w1"}}); err != nil || len(got.Items) != 1 {
			t.Errorf("answers on the next line = %+v, error %v, want one", got, err)
		}
	})
}

func TestNothingIsSentWhileDisconnected(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", says(pong, 0))
		f.Refuse(errors.New("dial amqp://guest:hunter2@broker:5672/: connection refused"))
		c := newClient(t, f)
		ctx := t.Context()
		check := func(when string) {
			t.Helper()
			_, ask := c.Call(ctx, remote.Request{Method: "ping"})
			_, purge := c.Purge(ctx, "q")
			_, peek := c.Peek(ctx, "q", 1)
			_, find := c.Find(ctx, []string{"q"}, "id")
			_, stats := c.QueueStats(ctx, nil)
			for name, err := range map[string]error{
				"ask": ask, "purge": purge, "peek": peek, "find": find, "stats": stats,
				"publish": c.Publish(ctx, "q", broker.Publishing{}),
			} {
				if !errors.Is(err, remote.ErrUnavailable) {
					t.Errorf("%s %s: error %v, want %v", name, when, err, remote.ErrUnavailable)
				}
			}
		}
		check("before Run")
		end := run(t, c.Run)
		check("with the broker away")
		if c.Connected() {
			t.Error("connected while the broker refuses")
		}
		f.Refuse(nil)
		<-time.After(time.Minute)
		if !c.Connected() {
			t.Error("not connected a minute after the broker accepts again")
		}
		end()
		check("after Run")
		if got := f.requests(); len(got) != 0 {
			t.Errorf("workers heard %v, want nothing", got)
		}
	})
}

func TestBroadcastWaitsForAConnection(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", mute)
		f.Refuse(errors.New("broker is down"))
		c := newClient(t, f)
		run(t, c.Run)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := c.Broadcast(ctx, "heartbeat"); !errors.Is(err, remote.ErrUnavailable) || !strings.Contains(err.Error(), "broker is down") {
			t.Errorf("broadcast while the broker is down: error %v, want %v with the cause", err, remote.ErrUnavailable)
		}
		up := time.AfterFunc(time.Second, func() { f.Refuse(nil) })
		defer up.Stop()
		if err := c.Broadcast(t.Context(), "heartbeat"); err != nil {
			t.Errorf("broadcast: %v", err)
		}
		want := []request{{Method: "heartbeat", Arguments: map[string]any{}}}
		if diff := cmp.Diff(want, f.requests()); diff != "" {
			t.Errorf("workers heard (-want +got):\n%s", diff)
		}
	})
}

// dials notes when a broker was dialled, and refuses.
type dials struct {
	broker.Broker
	at []time.Time
}

func (d *dials) OpenControl(context.Context) (broker.ControlConn, error) {
	d.at = append(d.at, time.Now())
	return nil, errors.New("no")
}

func (d *dials) String() string { return "test://" }

func TestRedialsLessAndLessOften(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		d := &dials{}
		c := newClient(t, d)
		end := run(t, c.Run)
		<-time.After(10 * time.Minute)
		end()
		bound := 500 * ms
		for i := 1; i < len(d.at); i++ {
			if wait := d.at[i].Sub(d.at[i-1]); wait < 500*ms || wait > bound {
				t.Errorf("wait %d took %v, want 500ms to %v", i, wait, bound)
			}
			bound = min(2*bound, 30*time.Second)
		}
		if len(d.at) < 20 {
			t.Errorf("dialled %d times in 10 minutes, want one in 30 s at least", len(d.at))
		}
		last := len(d.at)
		<-time.After(time.Minute)
		if len(d.at) != last {
			t.Error("dialled after Run had ended")
		}
	})
}

func TestQueuesUseTheSameConnection(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		c := newClient(t, f)
		run(t, c.Run)
		ctx := t.Context()
		f.Declare("q")
		if err := c.Publish(ctx, "q", broker.Publishing{CorrelationID: "id"}); err != nil {
			t.Errorf("publish: %v", err)
		}
		if got, err := c.Peek(ctx, "q", 5); err != nil || len(got) != 1 {
			t.Errorf("peek = %v, error %v, want one message", got, err)
		}
		if got, err := c.Find(ctx, []string{"q"}, "id"); err != nil || got == nil {
			t.Errorf("find = %v, error %v, want the message", got, err)
		}
		if got, err := c.QueueStats(ctx, []string{"q"}); err != nil || len(got.Queues) != 1 || *got.Queues[0].Ready != 1 {
			t.Errorf("stats = %+v, error %v, want one message in q", got, err)
		}
		if got, err := c.Purge(ctx, "q"); err != nil || got != 1 {
			t.Errorf("purged %d, error %v, want 1", got, err)
		}
	})
}

func TestNewWantsABroker(t *testing.T) {
	t.Parallel()
	if _, err := remote.New(remote.Options{}); err == nil {
		t.Error("client without a broker: no error")
	}
	if _, err := remote.NewInspector(remote.InspectorOptions{}); err == nil {
		t.Error("inspector without a client: no error")
	}
}
