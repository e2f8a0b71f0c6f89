package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/view"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// redelivering is a broker that gives deliveries to somebody else after an hour, as Redis does.
type redelivering struct{ *inproc.Broker }

func (b redelivering) OpenControl(ctx context.Context) (broker.ControlConn, error) {
	l, err := b.Broker.OpenControl(ctx)
	return redeliveringConn{l}, err
}

type redeliveringConn struct{ broker.ControlConn }

func (l redeliveringConn) QueueStats(ctx context.Context, names []string) (broker.QueueStats, error) {
	s, err := l.ControlConn.QueueStats(ctx, names)
	s.Broker.VisibilityTimeout = new(time.Hour)
	return s, err
}

// answer lets a worker tell that it consumes from one queue.
func answer(t *testing.T, b *inproc.Broker, worker, queue string) {
	t.Helper()
	t.Cleanup(b.Listen(func(m broker.Publishing) {
		var request struct {
			Method, Ticket string
			ReplyTo        broker.ReplyTo `json:"reply_to"`
		}
		if err := json.Unmarshal(m.Body, &request); err != nil {
			t.Errorf("decode request: %v", err)
		}
		value := "[]"
		if request.Method == "active_queues" {
			value = fmt.Sprintf(`[{"name":%q}]`, queue)
		}
		b.Reply(request.ReplyTo, broker.Publishing{
			ContentType: "application/json", ContentEncoding: "utf-8",
			Headers: map[string]any{"ticket": request.Ticket, "clock": int64(1)},
			Body:    fmt.Appendf(nil, `{%q:%s}`, worker, value),
		})
	}))
}

// watch ingests from a broker and runs a command service on it until the test ends.
func watch(t *testing.T, b broker.Broker, with ...func(o *command.Options)) *command.Service {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	m, err := ingest.New(ingest.Options{Broker: b, Store: db})
	if err != nil {
		t.Fatalf("new ingester: %v", err)
	}
	r, err := view.New(m, db, nil)
	if err != nil {
		t.Fatalf("new reader: %v", err)
	}
	client, err := remote.New(remote.Options{Broker: b})
	if err != nil {
		t.Fatalf("new client: %v", err)
	}
	o := command.Options{
		Client: client, Outbox: db, Tasks: r, QueueCounters: m.QueueCounters, HiddenQueues: []string{"umbel-events"},
	}
	for _, set := range with {
		set(&o)
	}
	p, err := command.New(o)
	if err != nil {
		t.Fatalf("new service: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var g errgroup.Group
	g.Go(func() error { return m.Run(ctx) })
	g.Go(func() error { return p.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		if err := g.Wait(); err != nil {
			t.Errorf("run: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return p
}

// TestQueuesAreNamedByBrokerWorkersAndEvents joins what the broker, workers and events tell of queues.
func TestQueuesAreNamedByBrokerWorkersAndEvents(t *testing.T) {
	t.Parallel()
	b := redelivering{inproc.New(inproc.Options{})}
	for _, name := range []string{"mail", "video", "umbel-events"} {
		b.Declare(name)
	}
	answer(t, b.Broker, "w1@test", "mail")
	p := watch(t, b)
	now := time.Now()
	event := func(clock int, kind, host, more string) {
		body := fmt.Appendf(nil, `{"type":%q,"hostname":%q,"pid":1,"clock":%d,"timestamp":%d%s}`,
			kind, host, clock, now.Unix(), more)
		if err := b.Publish(t.Context(), broker.Message{Body: body, ContentType: "application/json"}); err != nil {
			t.Fatalf("publish event: %v", err)
		}
	}
	event(1, "worker-online", "w1@test", `,"freq":2.0`)
	event(1, "task-sent", "gen@test", `,"uuid":"a","name":"t","queue":"sent-only"`)
	event(2, "task-received", "w1@test", `,"uuid":"b","name":"t","eta":"`+now.Add(2*time.Hour).UTC().Format(time.RFC3339)+`"`)

	var s queues.Snapshot
	find := func(name string) *queues.Queue {
		i := slices.IndexFunc(s.Queues, func(q queues.Queue) bool { return q.Name == name })
		if i < 0 {
			return nil
		}
		return &s.Queues[i]
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for {
		changed := p.Queues.Changed()
		s = p.Queues.Snapshot()
		sent, mail := find("sent-only"), find("mail")
		if sent != nil && mail != nil && slices.Equal(mail.Workers, []string{"w1@test"}) && len(s.Warnings) == 1 {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("queues = %+v, warnings %q, want those that workers and events tell of", s.Queues, s.Warnings)
		}
	}
	if !find("sent-only").Missing {
		t.Error("a queue that only events tell of is not missing")
	}
	if video := find("video"); !video.WorkersKnown || len(video.Workers) != 0 {
		t.Errorf("workers of video = %v, asked %t, want none of all that were asked", video.Workers, video.WorkersKnown)
	}
	if !find("umbel-events").Hidden {
		t.Error("Umbel's own queue is not hidden")
	}
	if !strings.Contains(s.Warnings[0], "longer than the visibility timeout of 1 h") {
		t.Errorf("warning = %q, want one of the visibility timeout", s.Warnings[0])
	}
}
