package relay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
)

const (
	outage   = 3 * time.Second
	commands = 120
)

// away is a broker that can be stopped.
type away struct {
	url           string
	stop, restart func(t *testing.T)
	// ids returns the ids of the tasks in a queue, in order of delivery.
	ids func(t *testing.T, queue string) []string
}

// TestEndToEndBrokerStoppedAmidCommands stops a broker for a while in the middle of commands.
func TestEndToEndBrokerStoppedAmidCommands(t *testing.T) {
	t.Parallel()
	queues := []string{"umbel-a", "umbel-b", "umbel-c", "umbel-d"}
	for kind, begin := range map[string]func(t *testing.T) away{
		"redis killed": func(t *testing.T) away {
			s := newServer(t)
			return away{
				url: s.url, stop: func(*testing.T) { s.kill() }, restart: func(t *testing.T) { s.start(t) }, ids: s.ids,
			}
		},
		"rabbitmq out of reach": func(t *testing.T) away {
			broker := testenv.VirtualHost(t)
			channel := declare(t, broker, queues)
			p := newProxy(t, broker)
			return away{
				url: p.url, stop: func(*testing.T) { p.cut() }, restart: func(t *testing.T) { p.restore(t) },
				ids: func(t *testing.T, queue string) []string { return consume(t, channel, queue) },
			}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := begin(t)
			d := openHistory(t)
			broker, err := dial(b.url)
			if err != nil {
				t.Fatal(err)
			}
			p, err := newService(d, broker)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- p.Run(ctx) }()
			defer func() {
				cancel()
				if err := <-ended; err != nil {
					t.Errorf("Run returned %v", err)
				}
			}()

			want := make(map[string][]string)
			for n := range commands {
				if n == commands/3 {
					eventually(t, func() error {
						if sent := p.Relay.Status().Sent; sent < commands/6 {
							return fmt.Errorf("%d commands sent", sent)
						}
						return nil
					})
					b.stop(t)
				}
				queue := queues[n%len(queues)]
				want[queue] = append(want[queue], publish(t, p, queue))
			}
			eventually(t, func() error {
				if p.Relay.Status().Deferred == 0 {
					return errors.New("no command deferred")
				}
				return nil
			})
			<-time.After(outage)
			b.restart(t)
			all := history.CommandFilter{Limit: 500}
			eventually(t, func() error {
				stats, err := d.OutboxStats(t.Context())
				if err == nil && stats.States[history.CommandDone] < commands {
					err = fmt.Errorf("%v", stats)
				}
				return err
			})
			list, _, err := d.Commands(t.Context(), all)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range list {
				if c.Attempts > 0 {
					t.Errorf("command %d has %d failed attempts", c.ID, c.Attempts)
				}
			}
			if s := p.Relay.Status(); s.DeadLettered+s.Retried > 0 {
				t.Errorf("status is %+v, want deferrals alone", s)
			} else {
				t.Logf("%d commands deferred %d times", commands, s.Deferred)
			}
			for _, queue := range queues {
				if diff := cmp.Diff(want[queue], firsts(b.ids(t, queue))); diff != "" {
					t.Errorf("tasks in %s (-want +got):\n%s", queue, diff)
				}
			}
		})
	}
}

// publish has a task sent and returns its id.
func publish(t *testing.T, p *command.Service, queue string) string {
	t.Helper()
	receipt, err := p.Publish(t.Context(), command.Caller{Actor: "ann"}, command.TaskRequest{Name: "shop.pay", Queue: queue, Force: true})
	if err != nil {
		t.Fatalf("publish: %v", err)
	}
	return receipt.Commands[0].TaskID
}

// firsts leaves out what was there before: what was sent twice since the confirmation was lost.
func firsts(ids []string) []string {
	var list []string
	for _, id := range ids {
		if !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}

// ids returns the ids of the tasks in a queue, next to be delivered first.
func (s *server) ids(t *testing.T, queue string) []string {
	t.Helper()
	messages, err := s.client.LRange(t.Context(), queue, 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(messages) // they are pushed from the left and popped from the right
	var ids []string
	for _, text := range messages {
		var m struct {
			Headers struct{ ID string }
		}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.Headers.ID)
	}
	return ids
}

// declare makes queues and returns a channel for as long as the test takes.
func declare(t *testing.T, broker string, queues []string) *amqp091.Channel {
	t.Helper()
	conn, err := amqp091.Dial(broker)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	for _, queue := range queues {
		if _, err := channel.QueueDeclare(queue, true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	return channel
}

// consume takes the tasks of a queue and returns their ids.
func consume(t *testing.T, channel *amqp091.Channel, queue string) []string {
	t.Helper()
	var ids []string
	for {
		m, ok, err := channel.Get(queue, true)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return ids
		}
		id, ok := m.Headers["id"].(string)
		if !ok {
			t.Fatal(errors.New("a message without an id"))
		}
		ids = append(ids, id)
	}
}
