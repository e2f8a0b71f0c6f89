package redis_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/monitor/broker/redis"
)

const (
	benchRounds   = 16
	benchMessages = 12_800 // per round, whole batches; Redis holds 32 MiB for a subscriber
)

// event is a task-received of Celery 5.7, as Kombu 5.7 publishes it: 387 bytes in an envelope of 846.
const event = `{"body": "` +
	"eyJob3N0bmFtZSI6ICJjZWxlcnlAd29ya2VyLTMiLCAidXRjb2Zmc2V0IjogMCwgInBpZCI6IDE2NzI0LCAiY2xvY2siOiAyNTAwLCAidXVpZC" +
	"I6ICI4MmVkNjZlYy02ZjYxLTRhNjQtOWUxZi0wZDRjY2QxZjliN2EiLCAibmFtZSI6ICJiaWxsaW5nLnRhc2tzLmNoYXJnZV9jYXJkIiwgImFy" +
	"Z3MiOiAiKDIwNDg4LCAnRVVSJykiLCAia3dhcmdzIjogInsncmV0cnknOiBUcnVlfSIsICJyb290X2lkIjogIjgyZWQ2NmVjLTZmNjEtNGE2NC" +
	"05ZTFmLTBkNGNjZDFmOWI3YSIsICJwYXJlbnRfaWQiOiBudWxsLCAicmV0cmllcyI6IDAsICJldGEiOiBudWxsLCAiZXhwaXJlcyI6IG51bGws" +
	"ICJ0aW1lc3RhbXAiOiAxNzk1MjIyMTUzLjk2MzUxNywgInR5cGUiOiAidGFzay1yZWNlaXZlZCJ9" +
	`", "content-encoding": "utf-8", "content-type": "application/json", "headers": {"hostname": "celery@worker-3"}, ` +
	`"properties": {"delivery_mode": 1, "delivery_info": {"exchange": "celeryev", "routing_key": "task.received"}, ` +
	`"priority": 0, "body_encoding": "base64", "delivery_tag": "7c6b1f0e-0f4c-4d8b-9f0f-6d3f5a1f9b11"}}`

// publishMany has Redis itself publish a message many times, so that nothing but the subscriber is measured.
const publishMany = `for i = 1, tonumber(ARGV[2]) do redis.call('PUBLISH', KEYS[1], ARGV[1]) end`

// BenchmarkSubscribe receives messages through an event stream, which decodes their envelopes, and through the bare library,
// which discards them. They take turns, and the medians of their rounds count, so that what else the machine does
// weighs little. ratio is the stream's rate over the library's.
func BenchmarkSubscribe(b *testing.B) {
	o := options(b)
	broker, c := newBroker(b, o), dial(b, o)
	channel := o.KeyPrefix + "/0.celeryev/task.received"
	var stream, bare []time.Duration
	for b.Loop() {
		for range benchRounds {
			stream = append(stream, subscribeStream(b, broker, c, channel))
			bare = append(bare, subscribeBare(b, c, channel))
		}
	}
	b.ReportMetric(0, "ns/op") // covers connecting, and so says nothing
	b.ReportMetric(benchMessages/median(stream), "stream-msgs/s")
	b.ReportMetric(benchMessages/median(bare), "bare-msgs/s")
	b.ReportMetric(median(bare)/median(stream), "ratio")
}

// median is that of d, in seconds.
func median(d []time.Duration) float64 { return slices.Sorted(slices.Values(d))[len(d)/2].Seconds() }

// fill has Redis publish benchMessages, and returns when it has.
func fill(b *testing.B, c *client.Client, channel string) time.Time {
	b.Helper()
	if err := c.Eval(b.Context(), publishMany, []string{channel}, event, benchMessages).Err(); err != nil && !errors.Is(err, client.Nil) {
		b.Fatalf("publish: %v", err)
	}
	return time.Now()
}

// subscribeStream receives benchMessages through the package under test.
func subscribeStream(b *testing.B, broker *redis.Broker, c *client.Client, channel string) time.Duration {
	b.Helper()
	s, err := broker.Subscribe(b.Context())
	if err != nil {
		b.Fatalf("connect: %v", err)
	}
	start := fill(b, c, channel)
	for n := 0; n < benchMessages; {
		batch, err := s.Receive(b.Context())
		if err != nil {
			b.Fatalf("receive: %v", err)
		}
		n += len(batch)
	}
	took := time.Since(start)
	if err := s.Close(); err != nil {
		b.Fatalf("close stream: %v", err)
	}
	return took
}

// subscribeBare receives benchMessages with nothing but the library.
func subscribeBare(b *testing.B, c *client.Client, channel string) time.Duration {
	b.Helper()
	s := c.PSubscribe(b.Context(), channel)
	if _, err := s.Receive(b.Context()); err != nil {
		b.Fatalf("subscribe: %v", err)
	}
	start := fill(b, c, channel)
	for range benchMessages {
		if _, err := s.ReceiveMessage(context.Background()); err != nil {
			b.Fatalf("receive: %v", err)
		}
	}
	took := time.Since(start)
	if err := s.Close(); err != nil {
		b.Fatalf("close: %v", err)
	}
	return took
}
