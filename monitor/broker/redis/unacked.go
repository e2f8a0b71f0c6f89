package redis

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
)

// Bounds of reading unacknowledged messages, which Kombu stores in one hash for all queues.
const (
	maxUnacked      = 1000    // deliveries looked at, the oldest first
	unackedChunk    = 50      // of them read at once
	maxUnackedBytes = 8 << 20 // read in all
)

// unackedScan is what is unacknowledged, by queue.
type unackedScan struct {
	complete bool // there are no other unacknowledged messages
	queues   map[string]unackedStats
}

type unackedStats struct {
	count  int64
	oldest time.Time
}

// addTo sets what is known of the queue in q.
func (h unackedScan) setIn(q *broker.Queue) {
	if q.Error != "" {
		return
	}
	known, ok := h.queues[q.Name]
	if h.complete {
		q.Unacked = &known.count
	}
	if ok && !known.oldest.IsZero() {
		q.OldestUnacked = &known.oldest
	}
}

// unacked reads the oldest deliveries that no worker has acknowledged.
func (c *controlConn) unacked(ctx context.Context, routes []route) (unackedScan, error) {
	h := unackedScan{queues: make(map[string]unackedStats)}
	deliveries, total, err := c.deliveries(ctx)
	switch {
	case errors.Is(err, broker.ErrRefused): // unknown
		return h, nil
	case err != nil:
		return h, err
	}
	to := make(map[[2]string]string, len(routes))
	for _, r := range routes {
		to[[2]string{r.exchange, r.key}] = r.queue
	}
	read, size := 0, 0
	for read < len(deliveries) && size < maxUnackedBytes {
		chunk := deliveries[read:min(read+unackedChunk, len(deliveries))]
		messages, err := c.messages(ctx, chunk)
		if err != nil {
			return h, err
		}
		for i, m := range messages {
			size += len(m)
			held, ok := celery.ParseUnacked(m)
			if !ok { // acknowledged meanwhile, or not Kombu's
				continue
			}
			queue, bound := to[[2]string{held.Exchange, held.RoutingKey}]
			if !bound {
				queue = held.RoutingKey
			}
			known := h.queues[queue]
			known.count++
			if at := moment(chunk[i].Score); known.oldest.IsZero() || at.Before(known.oldest) {
				known.oldest = at
			}
			h.queues[queue] = known
		}
		read += len(chunk)
	}
	h.complete = int64(read) >= total
	return h, nil
}

// deliveries returns the tags of the oldest, with their times, and the number of all.
func (c *controlConn) deliveries(ctx context.Context) ([]redis.Z, int64, error) {
	k := c.conn.keys
	var oldest *redis.ZSliceCmd
	var total *redis.IntCmd
	err := c.do(ctx, "read deliveries", func() error {
		_, err := c.conn.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			oldest = p.ZRangeWithScores(ctx, k.index, 0, maxUnacked-1)
			total = p.HLen(ctx, k.unacked)
			return nil
		})
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return oldest.Val(), total.Val(), nil
}

// messages reads the messages of deliveries, empty if acknowledged since.
func (c *controlConn) messages(ctx context.Context, deliveries []redis.Z) ([]string, error) {
	tags := make([]string, len(deliveries))
	for i, d := range deliveries {
		tags[i], _ = d.Member.(string)
	}
	var values []any
	err := c.do(ctx, "read deliveries", func() (err error) {
		values, err = c.conn.client.HMGet(ctx, c.conn.keys.unacked, tags...).Result()
		return err
	})
	messages := make([]string, len(deliveries))
	for i := range values {
		messages[i], _ = values[i].(string)
	}
	return messages, err
}

// moment is a time in seconds as Python has it, zero if it is none.
func moment(seconds float64) time.Time {
	if !(seconds > 0 && seconds < 1<<32) {
		return time.Time{}
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9))
}
