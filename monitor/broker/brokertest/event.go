package brokertest

import (
	"bytes"
	"slices"

	"github.com/umbelhq/umbel/monitor/broker"
)

// event publishes events by a control connection, and receives them by an event stream of the same broker.
func (c controlTest) event() {
	ctx, cancel := c.soon()
	defer cancel()
	s, err := c.Broker.Subscribe(ctx)
	if err != nil {
		c.Fatalf("connect to %s: %v", c.Broker, err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			c.Errorf("close stream: %v", err)
		}
	}()
	l := c.open()
	want := [][]byte{[]byte(`{"type":"task-sent","n":1}`), []byte(`{"type":"task-sent","n":2}`)}
	for _, body := range want {
		m := broker.Publishing{
			ContentType: "application/json", ContentEncoding: "utf-8", Headers: map[string]any{"hostname": "gen1@host"}, Body: body,
		}
		if err := l.PublishEvent(ctx, "task.sent", m); err != nil {
			c.Fatalf("publish event: %v", err)
		}
	}
	var got [][]byte
	for len(got) < len(want) {
		batch, err := s.Receive(ctx)
		if err != nil {
			c.Fatalf("receive: %v", err)
		}
		for _, m := range batch {
			if m.ContentType != "application/json" || m.ContentEncoding != "utf-8" || m.RoutingKey != "task.sent" {
				c.Errorf("event has content type %q, encoding %q, routing key %q", m.ContentType, m.ContentEncoding, m.RoutingKey)
			}
			got = append(got, bytes.Clone(m.Body))
		}
	}
	if !slices.EqualFunc(got, want, bytes.Equal) {
		c.Errorf("received %q, want %q", got, want)
	}
}
