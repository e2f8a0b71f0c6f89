package amqp_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/monitor/transport"
)

func TestBroadcastOnTheWire(t *testing.T) {
	t.Parallel()
	o := options(t)
	s := connect(t, open(t, o))
	heard := mailbox(t, o.ControlExchange)
	tests := map[string]struct {
		command transport.Command
		want    map[string]any
	}{
		"heartbeat": {
			transport.Command{Method: "heartbeat"},
			map[string]any{
				"method": "heartbeat", "arguments": map[string]any{}, "destination": nil, "pattern": nil, "matcher": nil,
			},
		},
		"with arguments": {
			transport.Command{Method: "pool_grow", Arguments: map[string]any{"n": 2}},
			map[string]any{
				"method": "pool_grow", "arguments": map[string]any{"n": 2.0}, "destination": nil, "pattern": nil, "matcher": nil,
			},
		},
	}
	for name, test := range tests {
		if err := s.Broadcast(t.Context(), test.command); err != nil {
			t.Fatalf("broadcast %s: %v", name, err)
		}
		var got amqp091.Delivery
		select {
		case got = <-heard:
		case <-time.After(patience):
			t.Fatalf("command %s did not reach the mailbox", name)
		}
		var body map[string]any
		if err := json.Unmarshal(got.Body, &body); err != nil {
			t.Fatalf("decode %s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, body); diff != "" {
			t.Errorf("body of %s (-want +got):\n%s", name, diff)
		}
		properties := map[string]any{
			"content_type": got.ContentType, "content_encoding": got.ContentEncoding, "delivery_mode": got.DeliveryMode,
			"routing_key": got.RoutingKey, "headers": got.Headers,
		}
		want := map[string]any{
			"content_type": "application/json", "content_encoding": "utf-8", "delivery_mode": amqp091.Transient,
			"routing_key": "", "headers": amqp091.Table{"clock": int64(0), "expires": int64(0)},
		}
		if diff := cmp.Diff(want, properties); diff != "" {
			t.Errorf("properties of %s (-want +got):\n%s", name, diff)
		}
	}
}

func TestBroadcastRefusals(t *testing.T) {
	t.Parallel()
	o := options(t)
	s := connect(t, open(t, o))
	unwritable := transport.Command{Method: "rate_limit", Arguments: map[string]any{"limit": make(chan int)}}
	expectError(t, s.Broadcast(t.Context(), unwritable), "", "encode command rate_limit: ")

	exchange := o.ControlExchange + ".pidbox"
	if err := channel(t).ExchangeDeclare(exchange, "fanout", true, false, false, false, nil); err != nil {
		t.Fatalf("declare exchange: %v", err)
	}
	err := s.Broadcast(t.Context(), transport.Command{Method: "heartbeat"})
	expectError(t, err, "", "broadcast heartbeat: ", exchange, "inequivalent arg 'durable'", "not durable and of type fanout")

	if err := publisher(t, o.Exchange)(t.Context(), transport.Message{Body: []byte("1")}); err != nil {
		t.Fatalf("publish: %v", err)
	}
	receive(t, s, 1)
}
