package main_test

import (
	"encoding/json"
	"fmt"
	"syscall"
	"testing"

	"github.com/umbelhq/umbel/internal/testenv"
)

// TestEndToEndNodesSendEachCommand has two Umbels send the commands of one outbox, and kills each amid that. Every command is sent, each queue's
// in order, and again only if a killed node had it in hand.
func TestEndToEndNodesSendEachCommand(t *testing.T) {
	t.Parallel()
	const queues, perQueue = 10, 30
	const inHand = 64 // of one node, at most
	n := newNodes(t, testenv.VirtualHost(t))
	for _, name := range []string{"a", "b"} {
		n.start(name)
	}
	channel := n.bus.(*rabbitBus).Channel //nolint:forcetypeassert // it is RabbitMQ
	queue := func(i int) string { return fmt.Sprint("shop-", i%queues) }
	for i := range queues {
		if _, err := channel.QueueDeclare(queue(i), true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	n.eachProxy((*proxy).cut) // so that they all wait
	for i := range queues * perQueue {
		n.nodes["a"].post(t, "publish", fmt.Sprintf(`{"name": "shop.pay", "args": [%d], "queue": %q, "force": true}`, i, queue(i)))
	}
	n.eachProxy(func(p *proxy) { p.restore(t) })

	sent := make([][]int, queues) // what is in each queue
	total := 0
	read := func() {
		for q := range queues {
			for m, ok, err := channel.Get(queue(q), true); ok || err != nil; m, ok, err = channel.Get(queue(q), true) {
				var call []json.RawMessage
				var args []int
				if err == nil {
					err = json.Unmarshal(m.Body, &call)
				}
				if err == nil {
					err = json.Unmarshal(call[0], &args)
				}
				if err != nil || len(args) != 1 {
					t.Fatalf("a message %s: %v", m.Body, err)
				}
				sent[q] = append(sent[q], args[0])
				total++
			}
		}
	}
	for i, killed := range []string{"b", "a"} {
		eventually(t, timeout, func() error {
			if read(); total < (i+1)*queues*perQueue/4 {
				return fmt.Errorf("%d messages", total)
			}
			return nil
		})
		n.nodes[killed].end(t, syscall.SIGKILL)
		t.Logf("%s killed after %d messages", killed, total)
		n.start(killed)
	}
	eventually(t, timeout, func() error {
		var open int
		n.ask(`SELECT count(*) FROM outbox WHERE state IN ('pending', 'in_flight')`, &open)
		if open > 0 {
			return fmt.Errorf("%d commands are not sent", open)
		}
		return nil
	})
	read()
	again := 0
	for q := range queues {
		next := q // that is to be in the queue for the first time
		for _, i := range sent[q] {
			switch {
			case i == next:
				next += queues
			case i < next:
				again++
			default:
				t.Fatalf("%s has %v: %d came before %d", queue(q), sent[q], i, next)
			}
		}
		if next != q+queues*perQueue {
			t.Errorf("%s lacks %d and what follows", queue(q), next)
		}
	}
	if again > 2*inHand {
		t.Errorf("%d commands were sent again, want at most what killed nodes had in hand", again)
	}
	t.Logf("%d of %d commands were sent again", again, queues*perQueue)
}

// eachProxy calls f with the way of each node to the broker.
func (n *nodes) eachProxy(f func(*proxy)) {
	for _, p := range n.toBroker {
		f(p)
	}
}
