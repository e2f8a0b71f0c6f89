// Package goredis lets the locks of package idempotency use a client of go-redis.
package goredis

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/monitor/idempotency"
)

// Client is any client of go-redis: of one server, of a cluster, or behind sentinels.
type Client interface {
	Do(ctx context.Context, args ...any) *redis.Cmd
}

// New returns what runs commands by c, which remains the caller's to close.
func New(c Client) idempotency.Redis { return adapter{c} }

type adapter struct{ client Client }

// Do implements idempotency.Redis.
func (a adapter) Do(ctx context.Context, args ...any) (any, error) {
	reply, err := a.client.Do(ctx, args...).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil //nolint:nilnil // no reply
	}
	return reply, err
}
