package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/web"
)

// stocked is a backend with an outbox.
type storeBackend struct {
	web.Backend
	db *sqlite.DB
}

func (k storeBackend) History() view.History { return k.db }

// actingWorkers are two workers that carry out commands, with two tasks and one queue, and what they received.
type actingWorkers struct {
	*inproc.Broker
	commands *command.Service

	mu       sync.Mutex
	received []string       // method and ids
	answers  map[string]any // to inspections, by method
	replies  sync.WaitGroup
}

// startWorkers starts workers for o that run until the test ends.
func startWorkers(t *testing.T, o *web.Options, backend results.Backend) *actingWorkers {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	s := &actingWorkers{Broker: inproc.New(inproc.Options{})}
	s.Declare("celery")
	for _, node := range []string{"celery@a", "celery@b/1%20ü"} {
		t.Cleanup(s.Listen(func(m broker.Publishing) { s.receive(node, m) }))
	}
	o.Backend = storeBackend{o.Backend, db}
	s.commands, err = command.New(command.Options{
		Client: controlClient(t, s.Broker), Outbox: db, Tasks: o.Backend, Results: backend, ReadOnly: o.ReadOnly,
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Commands = s.commands
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.commands.Client.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		s.replies.Wait()
		_ = db.Close()
	})
	s.ready(t)
	// Asked before there is a line, workers would count as silent for a while.
	running.Go(func() { _ = s.commands.Inspector.Run(ctx) })
	if s.commands.Relay != nil {
		running.Go(func() { _ = s.commands.Relay.Run(ctx) })
	}
	return s
}

// answer sets what the workers reply to inspections by a method.
func (s *actingWorkers) answer(method string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		s.answers = make(map[string]any)
	}
	s.answers[method] = value
}

// ready waits for the control connection.
func (s *actingWorkers) ready(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(timeout); !s.commands.Client.Connected(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal("no control connection")
		}
	}
}

// receive replies to a request as a worker does.
func (s *actingWorkers) receive(node string, m broker.Publishing) {
	var r struct {
		Method      string          `json:"method"`
		Arguments   map[string]any  `json:"arguments"`
		Destination []string        `json:"destination"`
		Ticket      string          `json:"ticket"`
		ReplyTo     *broker.ReplyTo `json:"reply_to"`
	}
	if json.Unmarshal(m.Body, &r) != nil || len(r.Destination) > 0 && !slices.Contains(r.Destination, node) || r.ReplyTo == nil {
		return
	}
	var value any
	switch r.Method {
	case "registered":
		value = []string{"billing.charge", "mail.send"}
	case "active_queues":
		value = []any{map[string]any{"name": "celery", "routing_key": "celery", "exchange": map[string]any{"name": "celery", "type": "direct"}}}
	case "revoke":
		value = map[string]string{"ok": "flagged as revoked"}
		ids, _ := json.Marshal(r.Arguments["task_id"])
		s.mu.Lock()
		s.received = append(s.received, node+" "+r.Method+" "+string(ids))
		s.mu.Unlock()
	default:
		s.mu.Lock()
		value = s.answers[r.Method]
		s.mu.Unlock()
		if value == nil {
			value = map[string]any{}
		}
	}
	body, _ := json.Marshal(map[string]any{node: value})
	s.replies.Go(func() {
		s.Reply(*r.ReplyTo, broker.Publishing{
			ContentType: "application/json", ContentEncoding: "utf-8", Headers: map[string]any{"ticket": r.Ticket}, Body: body,
		})
	})
}

// requests returns what the workers received, sorted.
func (s *actingWorkers) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.received))
}

// published takes the messages that wait in the queue.
func (s *actingWorkers) published(t *testing.T, want int) []celery.Message {
	t.Helper()
	c := s.Consume("celery")
	defer c.Close()
	var list []celery.Message
	for {
		patient := timeout
		if len(list) >= want {
			patient = 50 * time.Millisecond // for one too many
		}
		ctx, cancel := context.WithTimeout(t.Context(), patient)
		p, err := c.Take(ctx)
		cancel()
		if err != nil {
			return list
		}
		m, err := celery.ParseMessage(p)
		if err != nil {
			t.Fatalf("parse what was published: %v", err)
		}
		_ = c.Done()
		list = append(list, m)
	}
}

// hiddenFields are the fields that a page repeats in its form to path.
func hiddenFields(page, path string) url.Values {
	v := url.Values{}
	for _, form := range strings.Split(page, "<form")[1:] {
		form, _, _ = strings.Cut(form, "</form>")
		if !strings.Contains(form, `action="`+path+`"`) {
			continue
		}
		names := find(`<input type="hidden" name="([^"]*)" value="[^"]*">`, form)
		values := find(`<input type="hidden" name="[^"]*" value="([^"]*)">`, form)
		for i := range names {
			v.Add(names[i], values[i])
		}
	}
	return v
}

// acting is a dashboard by which people may act, with what it acts on.
func acting(t *testing.T, b *backend, o web.Options) (http.Handler, *actingWorkers) {
	t.Helper()
	o.Backend, o.Prefix, o.Version = b, "/ops", "v1"
	s := startWorkers(t, &o, nil)
	h, err := web.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return h, s
}
