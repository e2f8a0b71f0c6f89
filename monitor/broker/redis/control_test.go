package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/redis"
	"github.com/umbelhq/umbel/monitor/celery"
)

func TestPriorities(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		steps     []int
		separator string
		want      map[string][]uint8 // priorities by list, in the order of publishing
	}{
		"Kombu's own": {nil, "", map[string][]uint8{
			"q": {0, 1, 2}, "q\x06\x163": {3, 4, 5}, "q\x06\x166": {6, 7, 8}, "q\x06\x169": {9},
		}},
		"others":     {[]int{5, 0}, ":", map[string][]uint8{"q": {0, 1, 2, 3, 4}, "q:5": {5, 6, 7, 8, 9}}},
		"one":        {[]int{0}, "", map[string][]uint8{"q": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}},
		"duplicates": {[]int{0, 0, 9, 9}, "", map[string][]uint8{"q": {0, 1, 2, 3, 4, 5, 6, 7, 8}, "q\x06\x169": {9}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			o.PrioritySteps, o.Separator = test.steps, test.separator
			c, l := dial(t, o), open(t, newBroker(t, o))
			for p := range uint8(10) {
				if err := l.Publish(t.Context(), "q", broker.Publishing{Priority: p, Body: []byte("[]")}); err != nil {
					t.Fatalf("publish: %v", err)
				}
			}
			for list, want := range test.want {
				var got []uint8
				for range want {
					text, err := c.RPop(t.Context(), o.KeyPrefix+list).Result()
					if err != nil {
						t.Fatalf("pop from %q: %v", list, err)
					}
					e, err := celery.ParseEnvelope([]byte(text))
					if err != nil {
						t.Fatalf("parse: %v", err)
					}
					got = append(got, e.Priority)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("priorities in %q (-want +got):\n%s", list, diff)
				}
			}
			if _, err := l.Purge(t.Context(), "q"); err != nil {
				t.Errorf("purge: %v", err)
			}
		})
	}
}

// keysOf returns what is left below a prefix.
func keysOf(t *testing.T, o redis.Options) []string {
	t.Helper()
	keys, err := dial(t, o).Keys(t.Context(), o.KeyPrefix+"*").Result()
	if err != nil {
		t.Fatalf("list keys: %v", err)
	}
	return keys
}

func TestControlConnsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	o := options(t)
	b := newBroker(t, o)
	l := open(t, b)
	if got := keysOf(t, o); len(got) != 2 {
		t.Errorf("keys of a line = %q, want its binding and its lease", got)
	}
	if err := l.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	if got := keysOf(t, o); len(got) != 0 {
		t.Errorf("keys after Close = %q, want none", got)
	}
}

func TestMailboxesOfTheDeadAreSwept(t *testing.T) {
	t.Parallel()
	o := options(t)
	c, b := dial(t, o), newBroker(t, o)
	alive := open(t, b)
	set := o.KeyPrefix + "_kombu.binding.reply.celery.pidbox"
	dead, list := "umbel-dead\x06\x16\x06\x16umbel-dead.reply.celery.pidbox", o.KeyPrefix+"umbel-dead.reply.celery.pidbox"
	foreign := "0b3d\x06\x16\x06\x160b3d.reply.celery.pidbox"
	if err := c.SAdd(t.Context(), set, dead, foreign).Err(); err != nil {
		t.Fatalf("bind: %v", err)
	}
	if err := c.LPush(t.Context(), list, "late", "later").Err(); err != nil {
		t.Fatalf("push: %v", err)
	}
	open(t, b)
	members := c.SMembers(t.Context(), set).Val()
	if got := strings.Join(members, "\n"); strings.Contains(got, dead) || !strings.Contains(got, foreign) ||
		!strings.Contains(got, alive.ReplyTo().RoutingKey) || len(members) != 3 {
		t.Errorf("bindings after another line was opened = %q, want all but the dead one", members)
	}
	if n := c.Exists(t.Context(), list).Val(); n != 0 {
		t.Error("replies to the dead one are left")
	}
}

// TestRepliesComeAfterTheBindingWasRemoved has Kombu's sweep of bindings happen at the wrong time.
func TestRepliesComeAfterTheBindingWasRemoved(t *testing.T) {
	t.Parallel()
	o := options(t)
	c := dial(t, o)
	w := worker{prefix: o.KeyPrefix, client: c}
	l := open(t, newBroker(t, o))
	if err := c.Del(t.Context(), o.KeyPrefix+"_kombu.binding.reply.celery.pidbox").Err(); err != nil {
		t.Fatalf("delete bindings: %v", err)
	}
	if _, err := l.Request(t.Context(), broker.Publishing{Body: []byte("{}")}); err != nil {
		t.Fatalf("request: %v", err)
	}
	if err := w.answer(t.Context(), l.ReplyTo(), broker.Publishing{Body: []byte("pong")}); err != nil {
		t.Fatalf("answer: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if m, err := l.ReceiveReply(ctx); err != nil || string(m.Body) != "pong" {
		t.Errorf("reply = %q, error %v, want pong", m.Body, err)
	}
}

func TestQueueStatsFindQueues(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.VisibilityTimeout = 2 * time.Hour
	c := dial(t, o)
	w := worker{prefix: o.KeyPrefix, client: c}
	l := open(t, newBroker(t, o))
	for exchange, members := range map[string][]string{
		"celery":        {"celery||celery", "mail.#|^mail\\..*$|mail"},
		"celery.pidbox": {"||w1@host.celery.pidbox"},
		"celeryev":      {"worker.#||celeryev.82ed66ec"},
		"odd":           {"a|b", "a|b|c|d", "||"},
	} {
		for _, m := range members {
			member := strings.ReplaceAll(m, "|", "\x06\x16")
			if err := c.SAdd(t.Context(), o.KeyPrefix+"_kombu.binding."+exchange, member).Err(); err != nil {
				t.Fatalf("bind: %v", err)
			}
		}
	}
	for i, p := range []uint8{0, 0, 3, 9} {
		m := broker.Publishing{CorrelationID: fmt.Sprint(i), Priority: p, Body: []byte("[]")}
		if err := l.Publish(t.Context(), "celery", m); err != nil {
			t.Fatalf("publish: %v", err)
		}
	}
	old := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
	w.holdSince(t, "celery", old.Add(time.Minute))
	w.holdSince(t, "celery", old)
	if err := c.Set(t.Context(), o.KeyPrefix+"string", "x", 0).Err(); err != nil {
		t.Fatalf("set: %v", err)
	}

	s, err := l.QueueStats(t.Context(), []string{"asked", "string", "celery"})
	if err != nil {
		t.Fatalf("stats: %v", err)
	}
	none := []broker.Step{{Priority: 0}, {Priority: 3}, {Priority: 6}, {Priority: 9}}
	want := []broker.Queue{
		{Name: "asked", Type: "list", Ready: new(int64(0)), Unacked: new(int64(0)), Steps: none},
		{
			Name: "celery", Type: "list", Ready: new(int64(2)), Unacked: new(int64(2)), OldestUnacked: &old,
			Steps: []broker.Step{{Priority: 0}, {Priority: 3, Ready: 1}, {Priority: 6}, {Priority: 9, Ready: 1}},
		},
		{Name: "mail", Type: "list", Ready: new(int64(0)), Unacked: new(int64(0)), Steps: none},
		{Name: "string", Error: "WRONGTYPE Operation against a key holding the wrong kind of value"},
	}
	if diff := cmp.Diff(want, s.Queues, cmpopts.EquateApproxTime(time.Millisecond)); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
	i := s.Broker
	if i.Kind != "Redis" || i.Version == "" || i.Memory == nil || i.Clients == nil || *i.VisibilityTimeout != 2*time.Hour {
		t.Errorf("broker = %+v, want all of it", i)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		settings map[string]string
		want     []string
	}{
		"nothing":        {},
		"evicts queues":  {map[string]string{"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"}, []string{"maxmemory-policy allkeys-lru"}},
		"evicts results": {map[string]string{"maxmemory": "100mb", "maxmemory-policy": "volatile-lru"}, nil},
		"has no limit":   {map[string]string{"maxmemory-policy": "allkeys-lru"}, nil},
		"is full":        {map[string]string{"maxmemory": "1kb"}, []string{"nothing can be published"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port := freePort(t)
			runServer(t, "tcp", "127.0.0.1:"+port, "bind 127.0.0.1\nport "+port)
			o := redis.Options{URL: "redis://127.0.0.1:" + port}
			for name, value := range test.settings {
				if err := dial(t, o).ConfigSet(t.Context(), name, value).Err(); err != nil {
					t.Fatalf("configure: %v", err)
				}
			}
			l := open(t, newBroker(t, o))
			s, err := l.QueueStats(t.Context(), nil)
			if err != nil {
				t.Fatalf("stats: %v", err)
			}
			if len(s.Broker.Warnings) != len(test.want) {
				t.Fatalf("warnings = %q, want %d", s.Broker.Warnings, len(test.want))
			}
			for i, want := range test.want {
				if !strings.Contains(s.Broker.Warnings[i], want) {
					t.Errorf("warning %q does not contain %q", s.Broker.Warnings[i], want)
				}
			}
		})
	}
}

// TestAFullRedis refuses what is published, but lets queues be purged.
func TestAFullRedis(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	runServer(t, "tcp", "127.0.0.1:"+port, "bind 127.0.0.1\nport "+port+"\nmaxmemory 1kb")
	l := open(t, newBroker(t, redis.Options{URL: "redis://127.0.0.1:" + port}))
	err := l.Publish(t.Context(), "q", broker.Publishing{Body: []byte("[]")})
	expectError(t, err, "", "OOM")
	if errors.Is(err, broker.ErrRefused) || errors.Is(err, broker.ErrClosed) {
		t.Errorf("error %v, want one that says to try again later", err)
	}
	if _, err := l.Purge(t.Context(), "q"); err != nil {
		t.Errorf("purge: %v", err)
	}
}

func TestReplicasAndClusters(t *testing.T) {
	t.Parallel()
	replica, cluster := freePort(t), freePort(t)
	runServer(t, "tcp", "127.0.0.1:"+replica, "bind 127.0.0.1\nport "+replica+"\nreplicaof 127.0.0.1 1")
	runServer(t, "tcp", "127.0.0.1:"+cluster, "bind 127.0.0.1\nport "+cluster+"\ncluster-enabled yes\ncluster-port "+freePort(t))
	_, err := newBroker(t, redis.Options{URL: "redis://127.0.0.1:" + replica}).OpenControl(t.Context())
	expectError(t, err, "", "READONLY")
	_, err = newBroker(t, redis.Options{URL: "redis://127.0.0.1:" + cluster}).OpenControl(t.Context())
	expectError(t, err, "", "Redis Cluster, which Celery does not work with")
}

// TestPermissions has users that may do little.
func TestPermissions(t *testing.T) {
	t.Parallel()
	o := options(t)
	c := dial(t, o)
	user, password := o.Version+"@/%", "p@:/%;s"
	grant := func(rules ...any) {
		t.Helper()
		words := append([]any{"ACL", "SETUSER", user, "reset", "on", ">" + password}, rules...)
		if err := c.Do(t.Context(), words...).Err(); err != nil {
			t.Fatalf("grant: %v", err)
		}
	}
	t.Cleanup(func() { _ = c.Do(context.Background(), "ACL", "DELUSER", user).Err() })
	u, err := url.Parse(o.URL)
	if err != nil {
		t.Fatalf("parse the URL of the broker: %v", err)
	}
	o.URL = "redis://" + url.PathEscape(user) + ":" + url.QueryEscape(password) + "@" + u.Host
	o.URL = strings.Replace(o.URL, ":"+url.QueryEscape(password), ":p%40%3A%2F%25%3Bs", 1)
	b := newBroker(t, o)

	grant("+ping")
	_, err = b.Subscribe(t.Context())
	expectError(t, err, password, "may not do that", "psubscribe", "give it the permission")
	_, err = b.OpenControl(t.Context())
	expectError(t, err, password, "may not do that", "give it the permission")

	grant("+ping", "+psubscribe", "&*")
	connect(t, b)

	grant("+ping", "+multi", "+exec", "+brpop", "+set", "+sadd", "+sscan", "+del", "+srem", "~"+o.KeyPrefix+"*")
	l := open(t, b)
	ctx := t.Context()
	for name, err := range map[string]error{
		"Publish": l.Publish(ctx, "q", broker.Publishing{Body: []byte("[]")}),
		"Request": func() error { _, err := l.Request(ctx, broker.Publishing{}); return err }(),
		"Purge":   func() error { _, err := l.Purge(ctx, "q"); return err }(),
		"Peek":    func() error { _, err := l.Peek(ctx, "q", 1); return err }(),
	} {
		if !errors.Is(err, broker.ErrRefused) {
			t.Errorf("%s without permission: error %v, want %v", name, err, broker.ErrRefused)
		}
		expectError(t, err, password, "give it the permission")
	}
	s, err := l.QueueStats(ctx, []string{"q"})
	if err != nil {
		t.Fatalf("stats without permissions: %v", err)
	}
	if q := s.Queues[0]; q.Ready != nil || !strings.Contains(q.Error, "NOPERM") || s.Broker.Kind != "Redis" {
		t.Errorf("queue = %+v, want it unknown and why", q)
	}

	grant("~*", "&*", "+ping", "+select", "+psubscribe", "+publish", "+set", "+sadd", "+srem", "+sscan", "+exists", "+del",
		"+brpop", "+lpush", "+llen", "+lrange", "+scan", "+zrange", "+hlen", "+hmget", "+hscan", "+info", "+multi", "+exec",
		"+client|setname") // as docs/guides/operations.md has it
	connect(t, b)
	l = open(t, b)
	if err := l.Publish(ctx, "q", broker.Publishing{CorrelationID: "1", Body: []byte("[]")}); err != nil {
		t.Errorf("publish: %v", err)
	}
	if _, err := l.Request(ctx, broker.Publishing{Body: []byte("{}")}); err != nil {
		t.Errorf("request: %v", err)
	}
	if _, err := l.Find(ctx, []string{"q"}, "2"); err != nil {
		t.Errorf("find: %v", err)
	}
	if s, err := l.QueueStats(ctx, nil); err != nil || len(s.Queues) != 1 || s.Broker.Version == "" {
		t.Errorf("stats = %+v, error %v, want one queue, and the broker's version", s, err)
	}
	if n, err := l.Purge(ctx, "q"); err != nil || n != 1 {
		t.Errorf("purge = %d, error %v, want 1", n, err)
	}
}
