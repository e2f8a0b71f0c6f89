package redis

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Reader reads single keys of a Redis server that may differ from the broker: the result backend. It connects on
// first use and again after the connection was lost. It is safe for concurrent use.
type Reader struct {
	broker *Broker

	mu   sync.Mutex // guards what follows
	conn *conn      // nil while there is none
}

// NewReader checks o and connects nowhere. Of o only URL, TLS, the sentinels' and DialTimeout matter.
func NewReader(o Options) (*Reader, error) {
	b, err := New(o)
	if err != nil {
		return nil, err
	}
	return &Reader{broker: b}, nil
}

// String returns the URLs with their passwords masked.
func (r *Reader) String() string { return r.broker.String() }

// Get returns the value of a key, nil if there is none, but nothing longer than limit bytes: the value is then nil and
// size says how long it is.
func (r *Reader) Get(ctx context.Context, key string, limit int64) (value []byte, size int64, err error) {
	l, err := r.connected(ctx)
	if err != nil {
		return nil, 0, err
	}
	size, err = l.client.StrLen(ctx, key).Result()
	if err == nil && size <= limit {
		value, err = l.client.Get(ctx, key).Bytes()
	}
	switch {
	case errors.Is(err, redis.Nil):
		return nil, 0, nil
	case err != nil:
		if !isRefusal(err) && ctx.Err() == nil {
			r.drop(l)
		}
		return nil, 0, connectError(ctx, l.endpoint, err)
	}
	return value, size, nil
}

// connected returns the connection, a new one if there is none.
func (r *Reader) connected(ctx context.Context) (*conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil {
		return r.conn, nil
	}
	l, err := first(ctx, r.broker, func(ctx context.Context, l *conn) (*conn, error) {
		return l, l.client.Ping(ctx).Err()
	})
	if err != nil {
		return nil, err
	}
	r.conn = l
	return l, nil
}

// drop discards a connection that failed, since another server may be the master now.
func (r *Reader) drop(l *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn == l {
		r.conn = nil
	}
	l.close()
}

// Close ends the connection.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil {
		r.conn.close()
		r.conn = nil
	}
	return nil
}

// Do calls f with a client that is connected. What other packages send is up to them; an error that is no reply of Redis
// ends the connection.
func (r *Reader) Do(ctx context.Context, f func(ctx context.Context, c *redis.Client) error) error {
	l, err := r.connected(ctx)
	if err != nil {
		return err
	}
	if err = f(ctx, l.client); err == nil {
		return nil
	}
	if !isRefusal(err) && ctx.Err() == nil {
		r.drop(l)
	}
	return connectError(ctx, l.endpoint, err)
}
