package redis_test

import (
	"context"
	"strings"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/redis"
)

// TestSentinel kills the master that a real sentinel watches.
func TestSentinel(t *testing.T) {
	t.Parallel()
	one, two, sentinel := freePort(t), freePort(t), freePort(t)
	config := "bind 127.0.0.1\nrequirepass inner\nmasterauth inner\nrepl-diskless-sync-delay 0\n"
	master := runServer(t, "tcp", "127.0.0.1:"+one, config+"port "+one)
	runServer(t, "tcp", "127.0.0.1:"+two, config+"port "+two+"\nreplicaof 127.0.0.1 "+one)
	runServer(t, "tcp", "127.0.0.1:"+sentinel, "bind 127.0.0.1\nrequirepass outer\nport "+sentinel+
		"\nsentinel monitor main 127.0.0.1 "+one+" 1\nsentinel auth-pass main inner\n"+
		"sentinel down-after-milliseconds main 300\nsentinel failover-timeout main 3000\n", "--sentinel")

	o := redis.Options{
		URL:        "sentinel://:inner@127.0.0.1:" + freePort(t) + "/2;sentinel://127.0.0.1:" + sentinel,
		MasterName: "nosuch", SentinelPassword: "outer",
	}
	_, err := newBroker(t, o).Subscribe(t.Context())
	expectError(t, err, "inner", `it knows no master "nosuch"`, "ask sentinel", "refused")
	o.MasterName = "main"
	o.SentinelPassword = "wrong"
	_, err = newBroker(t, o).OpenControl(t.Context())
	expectError(t, err, "inner", "WRONGPASS")
	o.SentinelPassword = "outer"

	b := newBroker(t, o)
	s, l := connect(t, b), open(t, b)
	hears(t, s, one)
	replica := login(t, two)
	eventually(t, "the replica to follow", func() bool {
		text, err := replica.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(text, "master_link_status:up")
	})
	sentinels := client.NewSentinelClient(&client.Options{Addr: "127.0.0.1:" + sentinel, Password: "outer", Protocol: 2})
	defer func() { _ = sentinels.Close() }()
	eventually(t, "the sentinel to know the replica", func() bool {
		found, err := sentinels.Replicas(t.Context(), "main").Result()
		return err == nil && len(found) == 1 && found[0]["flags"] == "slave"
	})

	master.kill()
	expectError(t, lost(t, s), "inner", "connection lost")
	if _, err := l.ReceiveReply(t.Context()); err == nil {
		t.Error("reply over a lost line: no error")
	}
	var again broker.EventStream
	eventually(t, "another master", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var err error
		again, err = b.Subscribe(ctx)
		return err == nil
	})
	defer func() { _ = again.Close() }()
	hears(t, again, two)
	eventually(t, "a line to the other master", func() bool {
		l, err := b.OpenControl(t.Context())
		if err != nil {
			return false
		}
		defer func() { _ = l.Close() }()
		return l.Publish(t.Context(), "q", broker.Publishing{Body: []byte("[]")}) == nil
	})
}

// login returns a client of a server of TestSentinel.
func login(t *testing.T, port string) *client.Client {
	t.Helper()
	c := client.NewClient(&client.Options{Addr: "127.0.0.1:" + port, Password: "inner", DB: 2, Protocol: 2})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// hears fails the test unless the event stream receives what is published on a server.
func hears(t *testing.T, s broker.EventStream, port string) {
	t.Helper()
	c := login(t, port)
	if err := publisher(c, "/2.celeryev")(t.Context(), broker.Message{Body: []byte(port)}); err != nil {
		t.Fatalf("publish: %v", err)
	}
	if got := string(receive(t, s, 1)[0].Body); got != port {
		t.Errorf("message = %q, want %q", got, port)
	}
}
