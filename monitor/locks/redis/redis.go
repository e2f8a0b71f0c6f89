// Package redis reads the locks that applications keep in Redis. It changes nothing there but the lock that it releases.
package redis

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/redis"
	"github.com/umbelhq/umbel/monitor/locks"
)

const (
	timeout   = 5 * time.Second // of one call
	scanCount = 1_000           // keys that Redis examines for one reply
	perRead   = 500             // keys in one round trip
)

// Options of a Source. URL is required.
type Options struct {
	URL string // redis://, rediss://, redis+socket:// or a list of sentinel://
	TLS broker.TLS
	// MasterName is that of the sentinels' master; SentinelUsername and SentinelPassword are those of the sentinels.
	MasterName                         string
	SentinelUsername, SentinelPassword string
	Patterns                           []string // of keys, locks.DefaultPatterns if empty
	Version                            string
}

// Source is a Redis with locks. It is safe for concurrent use.
type Source struct {
	reader   *redis.Reader
	patterns []string
}

// New checks o and connects nowhere. Its errors contain no password.
func New(o Options) (*Source, error) {
	r, err := redis.NewReader(redis.Options{
		URL: o.URL, TLS: o.TLS, MasterName: o.MasterName, SentinelUsername: o.SentinelUsername, SentinelPassword: o.SentinelPassword,
		Version: o.Version,
	})
	if err != nil {
		return nil, err
	}
	if len(o.Patterns) == 0 {
		o.Patterns = locks.DefaultPatterns()
	}
	for _, p := range o.Patterns {
		if strings.Trim(p, "*?") == "" {
			return nil, fmt.Errorf("the pattern %q matches every key: name how the keys of locks begin", p)
		}
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("the pattern %q is malformed: it is a glob such as lock:*", p)
		}
	}
	return &Source{reader: r, patterns: o.Patterns}, nil
}

// String is the URL without its password.
func (s *Source) String() string { return s.reader.String() }

// Close ends the connection.
func (s *Source) Close() error { return s.reader.Close() }

// A cursor holds, for each pattern, the cursor of SCAN and whether its scan has ended, as two numbers.
const ended = 1

// Scan implements locks.Source: it takes one step for every pattern.
func (s *Source) Scan(ctx context.Context, at locks.Cursor) (keys []string, next locks.Cursor, err error) {
	if len(at) != 2*len(s.patterns) {
		at = make(locks.Cursor, 2*len(s.patterns))
	}
	next = make(locks.Cursor, len(at))
	copy(next, at)
	more := false
	err = s.do(ctx, "SCAN", func(ctx context.Context, c *client.Client) error {
		steps := make([]*client.ScanCmd, len(s.patterns))
		_, err := c.Pipelined(ctx, func(p client.Pipeliner) error {
			for i, pattern := range s.patterns {
				if at[2*i+1] != ended {
					steps[i] = p.Scan(ctx, at[2*i], pattern, scanCount)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i, step := range steps {
			if step == nil {
				continue
			}
			found, cursor := step.Val()
			keys, next[2*i] = append(keys, found...), cursor
			if cursor == 0 {
				next[2*i+1] = ended
			} else {
				more = true
			}
		}
		return nil
	})
	if err != nil || !more {
		next = nil
	}
	return keys, next, err
}

// Read implements locks.Source. It does not ask Redis for keys that match no pattern.
func (s *Source) Read(ctx context.Context, keys []string) ([]locks.Entry, error) {
	var asked []string
	for _, key := range keys {
		if locks.MatchAny(s.patterns, key) {
			asked = append(asked, key)
		}
	}
	found := make([]locks.Entry, 0, len(asked))
	for part := range slices.Chunk(asked, perRead) {
		err := s.do(ctx, "GETRANGE and PTTL", func(ctx context.Context, c *client.Client) error {
			return read(ctx, c, part, &found)
		})
		if err != nil {
			return nil, err
		}
	}
	list := make([]locks.Entry, len(keys))
	for i, key := range keys {
		list[i] = locks.Entry{Key: key, Missing: true}
		if len(found) > 0 && found[0].Key == key {
			list[i], found = found[0], found[1:]
		}
	}
	return list, nil
}

// read appends the entries of keys to list in one round trip.
func read(ctx context.Context, c client.Cmdable, keys []string, list *[]locks.Entry) error {
	values, ttls := make([]*client.StringCmd, len(keys)), make([]*client.DurationCmd, len(keys))
	_, err := c.Pipelined(ctx, func(p client.Pipeliner) error {
		for i, key := range keys {
			values[i], ttls[i] = p.GetRange(ctx, key, 0, locks.MaxValue), p.PTTL(ctx, key)
		}
		return nil
	})
	if err != nil && !wrongType(err) {
		return err
	}
	for i, key := range keys {
		value, err := values[i].Result()
		if err != nil && !wrongType(err) {
			return err
		}
		ttl, failed := ttls[i].Result()
		if failed != nil {
			return failed
		}
		*list = append(*list, entry(key, value, ttl, err != nil))
	}
	return nil
}

// entry makes an Entry of what Redis replied. Without a key, PTTL is -2.
func entry(key, value string, ttl time.Duration, other bool) locks.Entry {
	e := locks.Entry{Key: key, Missing: ttl == -2, Other: other, Value: value, TTL: ttl}
	if len(e.Value) > locks.MaxValue {
		e.Value, e.Long = e.Value[:locks.MaxValue], true
	}
	return e
}

func wrongType(err error) bool { return client.HasErrorPrefix(err, "WRONGTYPE") }

// release deletes a lock if it has a value, and remains at most some milliseconds, -1 for ever.
//
//nolint:gochecknoglobals // a constant
var release = client.NewScript(`
local ttl = redis.call("PTTL", KEYS[1])
if ttl == -2 then return "gone" end
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return "changed" end
local most = tonumber(ARGV[2])
if (most < 0) ~= (ttl < 0) or ttl > most then return "taken_again" end
redis.call("DEL", KEYS[1])
return "released"`)

// Release implements locks.Source. Where scripts are forbidden, it uses a transaction.
func (s *Source) Release(ctx context.Context, want locks.Expected) (outcome locks.Outcome, err error) {
	most := int64(-1)
	if want.MaxTTL >= 0 {
		most = want.MaxTTL.Milliseconds()
	}
	err = s.do(ctx, "EVAL and DEL", func(ctx context.Context, c *client.Client) error {
		text, err := release.Eval(ctx, c, []string{want.Key}, want.Value, most).Text()
		switch {
		case err == nil:
			outcome = locks.Outcome(text)
		case wrongType(err):
			outcome = locks.Changed
		case forbidden(err) || client.HasErrorPrefix(err, "unknown command"):
			outcome, err = watched(ctx, c, want)
			return err
		default:
			return err
		}
		return nil
	})
	return outcome, err
}

// watched releases a lock by a transaction that fails if the key changes.
func watched(ctx context.Context, c *client.Client, want locks.Expected) (outcome locks.Outcome, err error) {
	err = c.Watch(ctx, func(tx *client.Tx) error {
		var list []locks.Entry
		if err := read(ctx, tx, []string{want.Key}, &list); err != nil {
			return err
		}
		if outcome = want.Matches(list[0]); outcome != locks.Released {
			return nil
		}
		_, err := tx.TxPipelined(ctx, func(p client.Pipeliner) error { return p.Del(ctx, want.Key).Err() })
		return err
	}, want.Key)
	if errors.Is(err, client.TxFailedErr) {
		return locks.Changed, nil
	}
	return outcome, err
}

// do calls f with a connected client, for commands that an error may name.
func (s *Source) do(ctx context.Context, commands string, f func(context.Context, *client.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var denied error
	err := s.reader.Do(ctx, func(ctx context.Context, c *client.Client) error {
		err := f(ctx, c)
		if forbidden(err) {
			denied = fmt.Errorf("the user of %s may not use %s on the keys of locks: %w", s, commands, err)
		}
		return err
	})
	if denied != nil {
		return denied
	}
	return err
}

// forbidden reports whether the user lacks a permission.
func forbidden(err error) bool {
	return client.HasErrorPrefix(err, "NOPERM") || client.HasErrorPrefix(err, "EXECABORT") ||
		err != nil && strings.Contains(err.Error(), "can't run this command") // by a script
}
