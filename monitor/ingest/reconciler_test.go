package ingest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/state"
)

// celeryWorker is a worker that runs the task b, sends heartbeats that say so, and answers when it is asked.
type celeryWorker struct {
	*inproc.Broker
	monitor *ingest.Ingester

	mu    sync.Mutex // guards what follows
	clock int
	asked []time.Time // for what is active
	early int         // how often while the monitor was not connected for 30 s
}

// newCeleryWorker returns a worker that a Reconciler inspects, unless it has results to ask for instead.
func newCeleryWorker(t *testing.T, backend results.Backend) *celeryWorker {
	t.Helper()
	w := &celeryWorker{Broker: inproc.New(inproc.Options{})}
	client, err := remote.New(remote.Options{Broker: w.Broker})
	if err != nil {
		t.Fatal(err)
	}
	inspector, err := remote.NewInspector(remote.InspectorOptions{Client: client, Alive: func() []string { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	w.monitor = run(t, ingest.Options{Broker: w.Broker, Store: memoryStore(t)}).Ingester
	r := ingest.NewReconciler(w.monitor, inspector, nil)
	if backend != nil {
		r = ingest.NewReconciler(w.monitor, nil, backend)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var g errgroup.Group
	g.Go(func() error { return client.Run(ctx) })
	g.Go(func() error { return inspector.Run(ctx) })
	g.Go(func() error { return r.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		_ = g.Wait()
	})
	t.Cleanup(w.Listen(w.answer))
	return w
}

func (w *celeryWorker) answer(m broker.Publishing) {
	var request struct {
		Method, Ticket string
		ReplyTo        broker.ReplyTo `json:"reply_to"`
	}
	if err := json.Unmarshal(m.Body, &request); err != nil {
		panic(err)
	}
	link := w.monitor.Health().Broker
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock++
	value := "[]"
	switch request.Method {
	case "active":
		value = `[{"id":"b","name":"t"}]`
		w.asked = append(w.asked, time.Now())
		if !link.Connected || time.Since(link.Since) < 30*time.Second {
			w.early++
		}
	case "stats":
		value = `{"pid":7}`
	case "clock":
		value = fmt.Sprintf(`{"clock":%d}`, w.clock)
	case "conf":
		value = "{}"
	}
	w.Reply(request.ReplyTo, broker.Publishing{
		ContentType: "application/json", ContentEncoding: "utf-8",
		Headers: map[string]any{"ticket": request.Ticket, "clock": int64(w.clock)}, Body: fmt.Appendf(nil, `{"w1@test":%s}`, value),
	})
}

// send sends an event.
func (w *celeryWorker) send(t *testing.T, kind, more string) {
	t.Helper()
	w.mu.Lock()
	w.clock++
	body := fmt.Appendf(nil, `{"type":%q,"hostname":"w1@test","pid":7,"clock":%d,"timestamp":%d%s}`, kind, w.clock, time.Now().Unix(), more)
	w.mu.Unlock()
	if err := w.Publish(t.Context(), broker.Message{Body: body, ContentType: "application/json"}); err != nil {
		t.Fatalf("publish event: %v", err)
	}
}

// begin sends that tasks have started.
func (w *celeryWorker) begin(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		w.send(t, "task-received", fmt.Sprintf(`,"uuid":%q,"name":"t"`, id))
		w.send(t, "task-started", fmt.Sprintf(`,"uuid":%q`, id))
	}
}

// live lets time pass, with a heartbeat every 2 s.
func (w *celeryWorker) live(t *testing.T, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		w.send(t, "worker-heartbeat", `,"freq":2.0,"active":1,"processed":2`)
		<-time.After(2 * time.Second)
	}
	synctest.Wait()
}

// questions returns when it was asked.
func (w *celeryWorker) questions() []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

func (w *celeryWorker) lost(t *testing.T, id string) *state.Conclusion {
	t.Helper()
	var task state.Task
	var ok bool
	w.monitor.View(func(c state.View) { task, ok = c.Task(id) })
	if !ok {
		t.Fatalf("task %s is not known", id)
	}
	return task.Lost
}

// TestWorkersAreAskedAboutTasksTheyMayNotHave has a worker whose task a has ended unseen.
func TestWorkersAreAskedAboutTasksTheyMayNotHave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newCeleryWorker(t, nil)
		w.begin(t, "a", "b")
		w.live(t, 80*time.Second)
		if n := len(w.questions()); n != 1 {
			t.Errorf("asked %d times in 80 s, want once", n)
		}
		if k := w.lost(t, "a"); k != nil {
			t.Errorf("lost after one answer: %+v", k)
		}
		w.Fail(errors.New("cable cut"))
		w.live(t, 3*time.Minute)
		asked := w.questions()
		if w.early > 0 || len(asked) < 2 {
			t.Errorf("asked %d times, %d of them within 30 s of a connection, want two or more, and none", len(asked), w.early)
		}
		for i := range asked[1:] {
			if pause := asked[i+1].Sub(asked[i]); pause < time.Minute {
				t.Errorf("asked again after %v", pause)
			}
		}
		if k := w.lost(t, "a"); k == nil || k.Reason != state.ReasonNotRunning {
			t.Errorf("a, which the worker does not have: %+v, want not running", k)
		}
		if k := w.lost(t, "b"); k != nil {
			t.Errorf("b, which runs, is lost: %+v", k)
		}
		w.live(t, 5*time.Minute)
		if n := len(w.questions()); n != len(asked) {
			t.Errorf("asked %d times more although all is known", n-len(asked))
		}
	})
}

// backend knows that done has succeeded.
type backend struct {
	results.Backend

	mu    sync.Mutex
	looks map[string][]time.Time
}

func (b *backend) Result(_ context.Context, id string) (results.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.looks[id] = append(b.looks[id], time.Now())
	if id == "done" {
		return results.Result{TaskID: id, Status: "SUCCESS"}, nil
	}
	return results.Result{}, results.ErrMissing
}

// TestTheResultBackendIsAskedAboutTasksThatWait is read-only, so that no worker is asked.
func TestTheResultBackendIsAskedAboutTasksThatWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stored := &backend{looks: make(map[string][]time.Time)}
		w := newCeleryWorker(t, stored)
		w.begin(t, "a", "b")
		for _, id := range []string{"done", "waits"} {
			w.send(t, "task-sent", fmt.Sprintf(`,"uuid":%q,"name":"t"`, id))
		}
		w.live(t, 10*time.Minute)
		if n := len(stored.looks); n != 0 {
			t.Errorf("looked at %d tasks within 10 min", n)
		}
		w.live(t, time.Minute)
		if k := w.lost(t, "done"); k != nil {
			t.Errorf("lost when seen once, while its event may be on its way: %+v", k)
		}
		w.live(t, 8*time.Minute)
		if k := w.lost(t, "done"); k == nil || k.Reason != state.ReasonBackend || k.Evidence != "the result backend says SUCCESS" {
			t.Errorf("done: %+v, want what the backend says", k)
		}
		for id, want := range map[string]int{"done": 2, "waits": 1} {
			if n := len(stored.looks[id]); n != want {
				t.Errorf("looked at %s %d times in 9 min, want %d", id, n, want)
			}
		}
		for _, id := range []string{"a", "b", "waits"} {
			if k := w.lost(t, id); k != nil {
				t.Errorf("%s is lost: %+v", id, k)
			}
		}
		if n := len(w.questions()); n != 0 {
			t.Errorf("asked a worker %d times though read-only", n)
		}
	})
}
