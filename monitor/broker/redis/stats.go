package redis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/monitor/broker"
)

// Bounds of one QueueStats call.
const (
	maxQueues  = 2000
	scanCalls  = 20 // of SCAN, which walks over all keys of the database
	scanCount  = 1000
	maxMembers = 1000 // bindings of an exchange
)

// exchangeScan finds exchanges by their bindings, scanning a part of the database with every call of QueueStats.
type exchangeScan struct {
	cursor    uint64
	exchanges map[string]bool
}

// route is one binding of an exchange.
type route struct{ exchange, key, queue string }

// QueueStats implements broker.ControlConn. It also reports queues that are bound to an exchange.
func (c *controlConn) QueueStats(ctx context.Context, queues []string) (broker.QueueStats, error) {
	s := broker.QueueStats{At: time.Now(), Source: "LLEN"}
	var err error
	if s.Broker, err = c.info(ctx); err != nil {
		return s, err
	}
	routes, err := c.routes(ctx)
	if err != nil {
		return s, err
	}
	names := slices.Clone(queues)
	for _, r := range routes {
		names = append(names, r.queue)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxQueues {
		names = names[:maxQueues]
		s.Broker.Warnings = append(s.Broker.Warnings, "There are more than 2,000 queues: only the first by name are shown.")
	}
	if s.Queues, err = c.depths(ctx, names); err != nil {
		return s, err
	}
	held, err := c.unacked(ctx, routes)
	if err != nil {
		return s, err
	}
	for i := range s.Queues {
		held.setIn(&s.Queues[i])
	}
	return s, nil
}

// depths counts what waits in queues.
func (c *controlConn) depths(ctx context.Context, names []string) ([]broker.Queue, error) {
	k := c.conn.keys
	counts := make([][]*redis.IntCmd, len(names))
	err := c.do(ctx, "count messages", func() error {
		_, err := c.conn.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, name := range names {
				for _, list := range k.queues(name) {
					counts[i] = append(counts[i], p.LLen(ctx, list))
				}
			}
			return nil
		})
		if code(err) == "WRONGTYPE" || code(err) == "NOPERM" { // reported queue by queue
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	queues := make([]broker.Queue, len(names))
	for i, name := range names {
		queues[i] = depth(name, k.steps, counts[i])
	}
	return queues, nil
}

func depth(name string, steps []int, counts []*redis.IntCmd) broker.Queue {
	q := broker.Queue{Name: name, Type: "list", Ready: new(int64)}
	for i, n := range counts {
		if err := n.Err(); err != nil {
			return broker.Queue{Name: name, Error: refusal(err)}
		}
		*q.Ready += n.Val()
		q.Steps = append(q.Steps, broker.Step{Priority: steps[i], Ready: n.Val()})
	}
	return q
}

// routes returns the bindings of exchanges that tasks go through, as far as the search has come.
func (c *controlConn) routes(ctx context.Context) ([]route, error) {
	exchanges, err := c.discover(ctx)
	switch {
	case errors.Is(err, broker.ErrRefused): // only the queues asked for are reported
		return nil, nil
	case err != nil:
		return nil, err
	}
	k := c.conn.keys
	members := make([]*redis.ScanCmd, len(exchanges))
	err = c.do(ctx, "read bindings", func() error {
		_, err := c.conn.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, exchange := range exchanges {
				members[i] = p.SScan(ctx, k.binding(exchange), 0, "", maxMembers)
			}
			return nil
		})
		if code(err) == "WRONGTYPE" || code(err) == "NOPERM" { // they are left out
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var routes []route
	for i, exchange := range exchanges {
		found, _ := members[i].Val()
		for _, member := range found {
			parts := strings.Split(member, k.separator)
			if len(parts) != 3 || !c.shown(parts[2]) {
				continue
			}
			routes = append(routes, route{exchange, parts[0], parts[2]})
		}
	}
	return routes, nil
}

// discover walks over a stretch of the database and returns the exchanges that it has seen there or before.
func (c *controlConn) discover(ctx context.Context) ([]string, error) {
	c.mu.Lock()
	cursor := c.search.cursor
	c.mu.Unlock()
	prefix := c.conn.keys.binding("")
	var found []string
	err := c.do(ctx, "search queues", func() error {
		for range scanCalls {
			keys, next, err := c.conn.client.Scan(ctx, cursor, glob(prefix)+"*", scanCount).Result()
			if err != nil {
				return err
			}
			found = append(found, keys...)
			if cursor = next; cursor == 0 {
				break
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.search.cursor = cursor
	for _, key := range found {
		if exchange := strings.TrimPrefix(key, prefix); c.shown(exchange) && len(c.search.exchanges) < maxQueues {
			c.search.exchanges[exchange] = true
		}
	}
	all := make([]string, 0, len(c.search.exchanges))
	for exchange := range c.search.exchanges {
		all = append(all, exchange)
	}
	slices.Sort(all)
	return all, nil
}

// shown reports whether an exchange or queue may be one of tasks: mailboxes and the queues of other monitors are not.
func (c *controlConn) shown(name string) bool {
	events := c.conn.keys.events
	return name != "" && !strings.HasSuffix(name, ".pidbox") && name != events && !strings.HasPrefix(name, events+".")
}

// Purge implements broker.ControlConn. A full Redis takes no transactions, but deletes.
func (c *controlConn) Purge(ctx context.Context, queue string) (int64, error) {
	n, err := c.purge(ctx, queue, c.conn.client.TxPipelined)
	if code(err) == "OOM" {
		n, err = c.purge(ctx, queue, c.conn.client.Pipelined)
	}
	return n, err
}

// batcher sends what belongs together.
type batcher func(context.Context, func(redis.Pipeliner) error) ([]redis.Cmder, error)

func (c *controlConn) purge(ctx context.Context, queue string, send batcher) (n int64, err error) {
	lists := c.conn.keys.queues(queue)
	counts := make([]*redis.IntCmd, len(lists))
	err = c.do(ctx, "purge queue", func() error {
		sent, err := send(ctx, func(p redis.Pipeliner) error {
			for i, list := range lists {
				counts[i] = p.LLen(ctx, list)
			}
			p.Del(ctx, lists...)
			return nil
		})
		for _, cmd := range sent { // a transaction only says that one of them was refused
			if code(err) == "EXECABORT" && isRefusal(cmd.Err()) {
				err = cmd.Err()
			}
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, count := range counts {
		n += count.Val()
	}
	return n, nil
}
