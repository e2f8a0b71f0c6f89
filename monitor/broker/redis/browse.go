package redis

import (
	"context"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
)

// Bounds of a search for one message.
const (
	findChunk = 100
	maxSearch = 10_000 // messages of a list, and of those that workers hold
)

// Peek implements broker.ControlConn. What is not an envelope is returned as a body without properties.
func (c *controlConn) Peek(ctx context.Context, queue string, limit int) ([]broker.Publishing, error) {
	var found []broker.Publishing
	for _, list := range c.conn.keys.queues(queue) {
		if len(found) >= limit {
			break
		}
		texts, err := c.next(ctx, list, 0, limit-len(found))
		if err != nil {
			return nil, err
		}
		for _, text := range texts {
			e, err := celery.ParseEnvelope([]byte(text))
			if err != nil {
				e.Publishing = broker.Publishing{Body: []byte(text)}
			}
			found = append(found, e.Publishing)
		}
	}
	return found, nil
}

// next returns n messages of a list after the first skip, next to be delivered first: that is the last of the list.
func (c *controlConn) next(ctx context.Context, list string, skip, n int) ([]string, error) {
	var texts []string
	err := c.do(ctx, "read queue", func() (err error) {
		texts, err = c.conn.client.LRange(ctx, list, int64(-skip-n), int64(-skip-1)).Result()
		return err
	})
	slices.Reverse(texts)
	return texts, err
}

// Find implements broker.ControlConn.
func (c *controlConn) Find(ctx context.Context, queues []string, taskID string) (*broker.Publishing, error) {
	for _, queue := range queues {
		for _, list := range c.conn.keys.queues(queue) {
			for skip := 0; skip < maxSearch; skip += findChunk {
				texts, err := c.next(ctx, list, skip, findChunk)
				if err != nil {
					return nil, err
				}
				for _, text := range texts {
					if m := task(text, taskID); m != nil {
						return m, nil
					}
				}
				if len(texts) < findChunk {
					break
				}
			}
		}
	}
	return c.findUnacked(ctx, taskID)
}

// findHeld searches what workers hold.
func (c *controlConn) findUnacked(ctx context.Context, taskID string) (*broker.Publishing, error) {
	var cursor uint64
	for seen := 0; seen < maxSearch; {
		var pairs []string
		err := c.do(ctx, "read deliveries", func() (err error) {
			pairs, cursor, err = c.conn.client.HScan(ctx, c.conn.keys.unacked, cursor, "", findChunk).Result()
			return err
		})
		if err != nil {
			return nil, err
		}
		for i := 1; i < len(pairs); i += 2 {
			held, _ := celery.ParseUnacked(pairs[i])
			if m := task(held.Envelope, taskID); m != nil {
				return m, nil
			}
		}
		seen += len(pairs) / 2
		if cursor == 0 {
			break
		}
	}
	return nil, nil
}

// task returns the message in an envelope if it is of the task with this id.
func task(envelope, taskID string) *broker.Publishing {
	if !strings.Contains(envelope, taskID) { // most are not
		return nil
	}
	e, err := celery.ParseEnvelope([]byte(envelope))
	if err != nil || e.CorrelationID != taskID && e.Headers["id"] != taskID {
		return nil
	}
	return &e.Publishing
}
