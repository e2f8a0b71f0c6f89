package brokertest

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/umbelhq/umbel/monitor/broker"
)

func (c controlTest) publishProperties() {
	l, queue := c.open(), c.Queue(c.T, "properties")
	tests := map[string]broker.Publishing{
		"task": task("d2e9a1f0"),
		"every property": {
			ContentType: "application/json", ContentEncoding: "utf-8", CorrelationID: "ü-1", ReplyTo: "replies/1",
			Expiration: "600000", Priority: 5, Persistent: true, Body: []byte("[[],{},{}]"),
			Headers: map[string]any{
				"nothing": nil, "yes": true, "no": false, "int": int64(-1) << 53, "float": 1.5, "text": "grün ✓",
				"list":  []any{"a", int64(1), nil, []any{true}},
				"table": map[string]any{"depth": map[string]any{"2": "x"}}, "timelimit": []any{nil, nil},
			},
		},
		"nothing declared": {Body: []byte("?")},
		"binary":           {ContentType: "application/x-msgpack", ContentEncoding: "binary", Body: []byte{0x81, 0x00, 0xff}},
		"empty body":       {ContentType: "application/data", ContentEncoding: "binary"},
		"large": {
			ContentType: "text/plain", ContentEncoding: "utf-8", Body: bytes.Repeat([]byte("0123456789"), 100_000),
		},
	}
	for name, want := range tests {
		c.publish(l, queue, want)
		c.expectSame(name, want, c.take(queue))
	}
}

func (c controlTest) publishOrder() {
	const total = 100
	l, queue := c.open(), c.Queue(c.T, "order")
	c.publishTasks(l, queue, total)
	for i := range total {
		if got, want := c.take(queue).CorrelationID, strconv.Itoa(i); got != want {
			c.Fatalf("message %d = %q, want %q", i, got, want)
		}
	}
}

func (c controlTest) publishMissing() {
	if !c.MissesQueues {
		return // publishOrder shows that a queue begins with its first message
	}
	l, queue := c.open(), c.Queue(c.T, "there")
	ctx, cancel := c.soon()
	defer cancel()
	for range 3 {
		if err := l.Publish(ctx, queue+".not", task("lost")); !errors.Is(err, broker.ErrNoQueue) {
			c.Errorf("publish to a queue that is not there: error %v, want %v", err, broker.ErrNoQueue)
		}
		c.publish(l, queue, task("kept"))
	}
	if _, err := l.Purge(ctx, queue+".not"); !errors.Is(err, broker.ErrNoQueue) {
		c.Errorf("purge a queue that is not there: error %v, want %v", err, broker.ErrNoQueue)
	}
	if got := settle(c, "3", func() string { return c.ready(l, queue) }); got != "3" {
		c.Errorf("ready = %s, want 3", got)
	}
}

func (c controlTest) publishConcurrent() {
	const publishers, each = 8, 25
	l := c.open()
	queues := []string{c.Queue(c.T, "a"), c.Queue(c.T, "b"), c.Queue(c.T, "c")}
	missing := c.Queue(c.T, "gone") + ".not"
	mailbox := c.listen()
	ctx, cancel := c.soon()
	defer cancel()
	var wg sync.WaitGroup
	for p := range publishers {
		wg.Go(func() {
			for i := range each {
				id := strconv.Itoa(p) + "." + strconv.Itoa(i)
				if err := l.Publish(ctx, queues[(p+i)%len(queues)], task(id)); err != nil {
					c.Errorf("publish %s: %v", id, err)
				}
				if !c.MissesQueues {
					continue
				}
				if err := l.Publish(ctx, missing, task(id)); !errors.Is(err, broker.ErrNoQueue) {
					c.Errorf("publish %s to a queue that is not there: error %v, want %v", id, err, broker.ErrNoQueue)
				}
			}
		})
	}
	wg.Go(func() {
		for i := range each {
			if _, err := l.Request(ctx, request(strconv.Itoa(i))); err != nil {
				c.Errorf("request %d: %v", i, err)
			}
		}
	})
	wg.Wait()
	for i := range each {
		if got, want := string(c.hear(mailbox).Body), strconv.Itoa(i); got != want {
			c.Errorf("request = %s, want %s", got, want)
		}
	}
	c.expectAll(queues, publishers, each)
}

// expectAll takes from queues what publishConcurrent put there.
func (c controlTest) expectAll(queues []string, publishers, each int) {
	c.Helper()
	left := make(map[string]bool)
	for p := range publishers {
		for i := range each {
			left[strconv.Itoa(p)+"."+strconv.Itoa(i)] = true
		}
	}
	total := len(left)
	for i, queue := range queues {
		n := 0
		for p := range publishers {
			for k := range each {
				if (p+k)%len(queues) == i {
					n++
				}
			}
		}
		for range n {
			m := c.take(queue)
			if !left[m.CorrelationID] {
				c.Errorf("message %q arrived twice or was never sent", m.CorrelationID)
			}
			delete(left, m.CorrelationID)
		}
	}
	if len(left) > 0 {
		c.Errorf("%d of %d messages did not arrive", len(left), total)
	}
}

func (c controlTest) purge() {
	l, queue, other := c.open(), c.Queue(c.T, "purged"), c.Queue(c.T, "other")
	c.publishTasks(l, queue, 5)
	c.publishTasks(l, other, 2)
	ctx, cancel := c.soon()
	defer cancel()
	for _, want := range []int64{5, 0} {
		if got, err := l.Purge(ctx, queue); err != nil || got != want {
			c.Errorf("purge = %d, error %v, want %d", got, err, want)
		}
	}
	if got := settle(c, "2", func() string { return c.ready(l, other) }); got != "2" {
		c.Errorf("ready in another queue = %s, want 2", got)
	}
	c.publish(l, queue, task("next"))
	if got, want := c.take(queue).CorrelationID, "next"; got != want {
		c.Errorf("message after a purge = %q, want %q", got, want)
	}
}

// look reads the stats of one queue.
func (c controlTest) look(l broker.ControlConn, queue string) broker.Queue {
	c.Helper()
	ctx, cancel := c.soon()
	defer cancel()
	s, err := l.QueueStats(ctx, []string{queue})
	if err != nil {
		c.Fatalf("stats: %v", err)
	}
	return c.byName(s, queue)
}

// ready is the depth of a queue.
func (c controlTest) ready(l broker.ControlConn, queue string) string {
	c.Helper()
	return shown(c.look(l, queue).Ready)
}

func (c controlTest) queueStats() {
	l := c.open()
	long := strings.Repeat("x", 100)
	names := []string{c.Queue(c.T, "empty"), c.Queue(c.T, "a/b c%2F"), c.Queue(c.T, "größe"), c.Queue(c.T, long)}
	for i, name := range names {
		c.publishTasks(l, name, 2*i)
	}
	ctx, cancel := c.soon()
	defer cancel()
	asked := append([]string{names[0] + ".not"}, names...)
	s, err := l.QueueStats(ctx, append(asked, asked...))
	if err != nil {
		c.Fatalf("stats: %v", err)
	}
	seen := make(map[string]int)
	for _, q := range s.Queues {
		seen[q.Name]++
	}
	for _, name := range asked {
		if got := seen[name]; got != 1 {
			c.Errorf("queue %q is %d times in the stats, want once", name, got)
		}
	}
	for i, name := range names {
		want := strconv.Itoa(2 * i)
		if got := settle(c, want, func() string { return c.ready(l, name) }); got != want {
			c.Errorf("ready in %q = %s, want %s", name, got, want)
		}
	}
	if got := c.byName(s, asked[0]).Missing; got != c.MissesQueues {
		c.Errorf("a queue that is not there is missing = %t, want %t", got, c.MissesQueues)
	}
}

func (c controlTest) queueConsumers() {
	l, queue := c.open(), c.Queue(c.T, "consumed")
	if c.Consume != nil {
		c.Consume(c.T, queue)
		if got := settle(c, "1", func() string { return shown(c.look(l, queue).Consumers) }); got != "1" {
			c.Errorf("consumers = %s, want 1", got)
		}
	}
	if c.Hold == nil {
		return
	}
	held := c.Queue(c.T, "held")
	c.publishTasks(l, held, 3)
	c.Hold(c.T, held)
	if got := settle(c, "2", func() string { return c.ready(l, held) }); got != "2" {
		c.Errorf("ready = %s, want 2", got)
	}
	want := "unknown"
	if c.CountsUnacked {
		want = "1"
	}
	if got := settle(c, want, func() string { return shown(c.look(l, held).Unacked) }); got != want {
		c.Errorf("unacked = %s, want %s", got, want)
	}
	ctx, cancel := c.soon()
	defer cancel()
	if got, err := l.Purge(ctx, held); err != nil || got != 2 {
		c.Errorf("purge = %d, error %v, want 2: one is held", got, err)
	}
}

func (c controlTest) brokerInfo() {
	ctx, cancel := c.soon()
	defer cancel()
	s, err := c.open().QueueStats(ctx, nil)
	if err != nil {
		c.Fatalf("stats of nothing: %v", err)
	}
	if s.At.IsZero() || s.Source == "" || s.Broker.Kind == "" {
		c.Errorf("stats at %v by %q of a %q, want all three", s.At, s.Source, s.Broker.Kind)
	}
}

func (c controlTest) peek() {
	l, queue := c.open(), c.Queue(c.T, "peeked")
	ctx, cancel := c.soon()
	defer cancel()
	if !c.Browses {
		if _, err := l.Peek(ctx, queue, 1); !errors.Is(err, broker.ErrUnsupported) {
			c.Errorf("peek: error %v, want %v", err, broker.ErrUnsupported)
		}
		return
	}
	c.publishTasks(l, queue, 5)
	for _, limit := range []int{3, 10} {
		got, err := l.Peek(ctx, queue, limit)
		if want := min(limit, 5); err != nil || len(got) != want {
			c.Fatalf("peek at %d = %d messages, error %v, want %d", limit, len(got), err, want)
		}
		for i, m := range got {
			c.expectSame("peeked", task(strconv.Itoa(i)), m)
		}
	}
	if got, want := c.take(queue).CorrelationID, "0"; got != want {
		c.Errorf("message after a peek = %q, want %q", got, want)
	}
}

func (c controlTest) find() {
	l, one, two := c.open(), c.Queue(c.T, "one"), c.Queue(c.T, "two")
	ctx, cancel := c.soon()
	defer cancel()
	if !c.Browses {
		if _, err := l.Find(ctx, []string{one}, "0"); !errors.Is(err, broker.ErrUnsupported) {
			c.Errorf("find: error %v, want %v", err, broker.ErrUnsupported)
		}
		return
	}
	c.publishTasks(l, one, 3)
	c.publish(l, two, task("here"))
	queues := []string{one, two}
	if got, err := l.Find(ctx, queues, "nowhere"); err != nil || got != nil {
		c.Errorf("find a task that is not there = %v, error %v, want nil", got, err)
	}
	got, err := l.Find(ctx, queues, "here")
	if err != nil || got == nil {
		c.Fatalf("find = %v, error %v, want a message", got, err)
	}
	c.expectSame("found", task("here"), *got)
	if c.Hold == nil {
		return
	}
	c.Hold(c.T, two)
	if got, err = l.Find(ctx, queues, "here"); err != nil || got == nil {
		c.Fatalf("find what a worker holds = %v, error %v, want a message", got, err)
	}
	c.expectSame("found with a worker", task("here"), *got)
}
