package rabbitmq_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/broker"
)

func TestNamedQueueKeepsEventsWhileAway(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Queue = o.Exchange + ".queue"
	b := open(t, o)
	if err := connect(t, b).Close(); err != nil {
		t.Fatalf("close session: %v", err)
	}
	publish := publisher(t, o.Exchange)
	for i := range 10 {
		m := broker.Message{Body: []byte(strconv.Itoa(i)), RoutingKey: "task.sent"}
		if err := publish(t.Context(), m); err != nil {
			t.Fatalf("publish message %d: %v", i, err)
		}
	}
	for i, m := range receive(t, connect(t, b), 10) {
		want := broker.Message{Body: []byte(strconv.Itoa(i)), RoutingKey: "task.sent", Tag: uint64(i + 1)}
		if diff := cmp.Diff(want, m); diff != "" {
			t.Errorf("message %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestNamedQueueDropsOldestWhenFull(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Queue, o.MaxLength = o.Exchange+".queue", 3
	b := open(t, o)
	if err := connect(t, b).Close(); err != nil {
		t.Fatalf("close session: %v", err)
	}
	publish := publisher(t, o.Exchange)
	for i := range 5 {
		if err := publish(t.Context(), broker.Message{Body: []byte(strconv.Itoa(i))}); err != nil {
			t.Fatalf("publish message %d: %v", i, err)
		}
	}
	var got []string
	for _, m := range receive(t, connect(t, b), 3) {
		got = append(got, string(m.Body))
	}
	if diff := cmp.Diff([]string{"2", "3", "4"}, got); diff != "" {
		t.Errorf("bodies (-want +got):\n%s", diff)
	}
}

func TestOneReaderOfANamedQueue(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Queue = o.Exchange + ".queue"
	b := open(t, o)
	first := connect(t, b)
	_, err := b.Subscribe(t.Context())
	expectError(t, err, "", "read queue", o.Queue, "in exclusive use", "stop the other one, or choose another --queue")

	if err := publisher(t, o.Exchange)(t.Context(), broker.Message{Body: []byte("1")}); err != nil {
		t.Fatalf("publish: %v", err)
	}
	receive(t, first, 1)
}

func TestTransientQueuesAreIndependent(t *testing.T) {
	t.Parallel()
	o := options(t)
	b := open(t, o)
	one, other := connect(t, b), connect(t, b)
	if err := publisher(t, o.Exchange)(t.Context(), broker.Message{Body: []byte("1")}); err != nil {
		t.Fatalf("publish: %v", err)
	}
	receive(t, one, 1)
	receive(t, other, 1)
}

func TestQueueOrExchangeWithOtherProperties(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		declare func(ch *amqp091.Channel, exchange, queue string) error
		want    []string
	}{
		"length of the queue": {
			func(ch *amqp091.Channel, _, queue string) error {
				_, err := ch.QueueDeclare(queue, true, false, false, false, amqp091.Table{"x-max-length": int64(7)})
				return err
			},
			[]string{"declare queue", "inequivalent arg 'x-", "delete it, or choose another --queue"},
		},
		"durability of the queue": {
			func(ch *amqp091.Channel, _, queue string) error {
				_, err := ch.QueueDeclare(queue, false, false, false, false, nil)
				return err
			},
			[]string{"declare queue", "inequivalent arg 'durable'", "delete it, or choose another --queue"},
		},
		"owner of the queue": {
			func(ch *amqp091.Channel, _, queue string) error {
				_, err := ch.QueueDeclare(queue, false, true, true, false, nil)
				return err
			},
			[]string{"declare queue", "belongs to another connection: choose another --queue"},
		},
		"type of the exchange": {
			func(ch *amqp091.Channel, exchange, _ string) error {
				return ch.ExchangeDeclare(exchange, "fanout", true, false, false, false, nil)
			},
			[]string{"declare exchange", "inequivalent arg 'type'", "durable and of type topic"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			o.Queue = o.Exchange + ".queue"
			b := open(t, o)
			if err := test.declare(channel(t), o.Exchange, o.Queue); err != nil {
				t.Fatalf("declare: %v", err)
			}
			_, err := b.Subscribe(t.Context())
			expectError(t, err, "", test.want...)
		})
	}
}

func TestDeletedQueueEndsTheStream(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Queue = o.Exchange + ".queue"
	s := connect(t, open(t, o))
	if _, err := channel(t).QueueDelete(o.Queue, false, false, false); err != nil {
		t.Fatalf("delete queue: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for range 2 {
		_, err := s.Receive(ctx)
		expectError(t, err, "", "connection closed: queue", o.Queue, "was deleted")
		if !errors.Is(err, broker.ErrClosed) {
			t.Errorf("error %v is not %v", err, broker.ErrClosed)
		}
	}
}

func TestQueueProperties(t *testing.T) {
	t.Parallel()
	named, transient := options(t), options(t)
	named.Queue, named.Expires = named.Exchange+".queue", time.Hour
	transient.MaxLength = 5000
	connect(t, open(t, named))
	connect(t, open(t, transient))

	type queue struct {
		Durable    bool            `json:"durable"`
		AutoDelete bool            `json:"auto_delete"`
		Exclusive  bool            `json:"exclusive"`
		Name       string          `json:"name"`
		Arguments  json.RawMessage `json:"arguments"`
	}
	type binding struct {
		Exchange string `json:"source"`
		Queue    string `json:"destination"`
		Key      string `json:"routing_key"`
	}
	queues := list[queue](t, "/api/queues/%2F")
	bindings := list[binding](t, "/api/bindings/%2F")

	tests := map[string]struct {
		exchange  string
		want      queue
		arguments []string
	}{
		"named": {
			named.Exchange,
			queue{Durable: true},
			[]string{`"x-expires"`, "3600000", `"x-max-length"`, "1000000", `"drop-head"`, `"classic"`},
		},
		"transient": {
			transient.Exchange,
			queue{AutoDelete: true, Exclusive: true},
			[]string{`"x-expires"`, "60000", `"x-max-length"`, "5000", `"drop-head"`, `"classic"`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(bindings, func(b binding) bool { return b.Exchange == test.exchange })
			if i < 0 || bindings[i].Key != "#" {
				t.Fatalf("no queue is bound to %s by #: %v", test.exchange, bindings)
			}
			j := slices.IndexFunc(queues, func(q queue) bool { return q.Name == bindings[i].Queue })
			if j < 0 {
				t.Fatalf("queue %s is not listed", bindings[i].Queue)
			}
			got := queues[j]
			for _, want := range test.arguments {
				if !strings.Contains(string(got.Arguments), want) {
					t.Errorf("arguments %s do not contain %s", got.Arguments, want)
				}
			}
			if strings.Contains(string(got.Arguments), "x-message-ttl") {
				t.Errorf("arguments %s make messages expire", got.Arguments)
			}
			got.Name, got.Arguments = "", nil
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("queue (-want +got):\n%s", diff)
			}
		})
	}
}

// list returns a list of the management API.
func list[T any](t *testing.T, path string) []T {
	t.Helper()
	var all []T
	if err := json.Unmarshal(testenv.Manage(t, http.MethodGet, path, ""), &all); err != nil {
		t.Fatalf("decode %s: %v", path, err)
	}
	return all
}

// addUser adds a user without permissions until the test ends.
func addUser(t *testing.T, user, password string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"password": password, "tags": ""})
	if err != nil {
		t.Fatal(err)
	}
	path := "/api/users/" + url.PathEscape(user)
	testenv.Manage(t, http.MethodPut, path, string(body))
	t.Cleanup(func() { testenv.Manage(t, http.MethodDelete, path, "") })
}

// setPermissions sets the permissions of a user on the virtual host /.
func setPermissions(t *testing.T, user, configure, write, read string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"configure": configure, "write": write, "read": read})
	if err != nil {
		t.Fatal(err)
	}
	testenv.Manage(t, http.MethodPut, "/api/permissions/%2F/"+url.PathEscape(user), string(body))
}

// closeConnection closes a connection of the Umbel of a version once the broker lists one.
func closeConnection(t *testing.T, version, reason string) {
	t.Helper()
	type connection struct {
		Name       string          `json:"name"`
		Properties json.RawMessage `json:"client_properties"`
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, c := range list[connection](t, "/api/connections") {
			if strings.Contains(string(c.Properties), "umbel "+version) {
				testenv.Manage(t, http.MethodDelete, "/api/connections/"+url.PathEscape(c.Name), "", "X-Reason", reason)
				return
			}
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("no connection of umbel %s", version)
		}
	}
}
