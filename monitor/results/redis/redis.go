// Package redis reads results that Celery's workers store in Redis. It writes nothing there but that a task is aborted.
package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/broker/redis"
	"github.com/umbelhq/umbel/monitor/results"
)

// Bounds of one read: how long it takes, and the digits of a number.
const (
	readTimeout = 5 * time.Second
	maxCount    = 10
)

// Options of a Backend. URL is required.
type Options struct {
	URL string // the workers' result_backend: redis://, rediss://, redis+socket:// or a list of sentinel://
	// MasterName is that of the sentinels' master, master_name of result_backend_transport_options.
	MasterName string
	// KeyPrefix is global_keyprefix of result_backend_transport_options.
	KeyPrefix string
	// SentinelUsername and SentinelPassword log in to the sentinels.
	SentinelUsername, SentinelPassword string

	Version string
}

// Backend is a Redis that results are stored in. It is safe for concurrent use.
type Backend struct {
	reader *redis.Reader
	prefix string // of tasks
	groups string // of groups
}

// New checks o and connects nowhere. Its errors contain no password.
func New(o Options) (*Backend, error) {
	r, err := redis.NewReader(redis.Options{
		URL: o.URL, MasterName: o.MasterName, Version: o.Version,
		SentinelUsername: o.SentinelUsername, SentinelPassword: o.SentinelPassword,
	})
	if err != nil {
		return nil, err
	}
	prefix := prefixed(o.KeyPrefix)
	return &Backend{reader: r, prefix: prefix + "celery-task-meta-", groups: prefix + "celery-taskset-meta-"}, nil
}

// prefixed is the prefix of keys as result backends use it, other than brokers: set off by an underscore.
func prefixed(prefix string) string {
	if prefix == "" || strings.ContainsAny(prefix[len(prefix)-1:], ":_-.") {
		return prefix
	}
	return prefix + "_"
}

// String is the URL without its password.
func (b *Backend) String() string { return b.reader.String() }

// Result reads the record of a task, results.ErrMissing if there is none.
func (b *Backend) Result(ctx context.Context, taskID string) (results.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	value, size, err := b.reader.Get(ctx, b.prefix+taskID, results.MaxRecord)
	switch {
	case err != nil:
		return results.Result{}, fmt.Errorf("read result: %w", err)
	case size > results.MaxRecord:
		return results.TooLong(taskID, size), nil
	case size == 0:
		return results.Result{}, results.ErrMissing
	}
	return results.Parse(taskID, value)
}

// Group reads what is stored of a group, results.ErrMissing if that is nothing.
func (b *Backend) Group(ctx context.Context, id string) (g results.StoredGroup, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	value, size, err := b.reader.Get(ctx, b.groups+id, results.MaxRecord)
	if err != nil {
		return g, fmt.Errorf("read group: %w", err)
	}
	if size > 0 && size <= results.MaxRecord {
		if g.Members, err = results.ParseGroup(id, value); err != nil {
			return g, err
		}
	}
	count, _, err := b.reader.Get(ctx, b.groups+id+".s", maxCount)
	if err != nil {
		return g, fmt.Errorf("read size of a chord: %w", err)
	}
	g.Size, _ = strconv.Atoi(string(count)) // 0 is unknown
	if len(g.Members) == 0 && g.Size == 0 {
		return g, results.ErrMissing
	}
	return g, nil
}

// Close ends the connection.
func (b *Backend) Close() error { return b.reader.Close() }
