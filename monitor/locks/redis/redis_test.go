package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/locks"
	"github.com/umbelhq/umbel/monitor/locks/lockstest"
	"github.com/umbelhq/umbel/monitor/locks/redis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// database is one of the server of the tests, empty at the start.
type database struct {
	*client.Client
	url url.URL
}

func open(t *testing.T, number int) database {
	t.Helper()
	u, err := url.Parse(testenv.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = fmt.Sprint("/", number)
	o, err := client.ParseURL(u.String())
	if err != nil {
		t.Fatal(err)
	}
	c := client.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	if err := c.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return database{c, *u}
}

func (d database) Set(t *testing.T, key, value string, ttl time.Duration) {
	t.Helper()
	if err := d.Client.Set(t.Context(), key, value, ttl).Err(); err != nil {
		t.Fatal(err)
	}
}

func (d database) Get(t *testing.T, key string) (string, bool) {
	t.Helper()
	value, err := d.Client.Get(t.Context(), key).Result()
	if err != nil && !errors.Is(err, client.Nil) {
		t.Fatal(err)
	}
	return value, err == nil
}

// source returns a source for a user who may do what rules say, or for the default one if they are empty.
func (d database) source(t *testing.T, rules string) *redis.Source {
	t.Helper()
	u := d.url
	if rules != "" {
		name := fmt.Sprint("locks", time.Now().UnixNano())
		args := []any{"ACL", "SETUSER", name, "on", ">s3cret", "~*"}
		for rule := range strings.FieldsSeq(rules) {
			args = append(args, rule)
		}
		if err := d.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(name, "s3cret")
	}
	s, err := redis.New(redis.Options{URL: u.String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestRedis(t *testing.T) {
	t.Parallel()
	d := open(t, 10)
	lockstest.Run(t, d.source(t, ""), d)
}

// The permissions that the guide names are enough. Without EVAL, releases are transactions.
func TestUsersWithFewPermissions(t *testing.T) {
	t.Parallel()
	d := open(t, 12)
	for _, rules := range []string{
		"+@connection +scan +getrange +pttl +eval +get +del",
		"+@connection +scan +getrange +pttl +watch +multi +exec +del",
		"+@all -eval -evalsha",
	} {
		if err := d.FlushDB(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		lockstest.Run(t, d.source(t, rules), d)
	}
}

func TestMissingPermissionsAreNamed(t *testing.T) {
	t.Parallel()
	d := open(t, 13)
	d.Set(t, "qo_a", "v", 0)
	for name, tt := range map[string]struct {
		rules string
		call  func(s *redis.Source) error
		want  []string
	}{
		"SCAN": {"+@all -scan", func(s *redis.Source) error {
			_, _, err := s.Scan(t.Context(), nil)
			return err
		}, []string{"may not use SCAN", "scan"}},
		"GETRANGE": {"+@all -getrange", func(s *redis.Source) error {
			_, err := s.Read(t.Context(), []string{"qo_a"})
			return err
		}, []string{"may not use GETRANGE and PTTL", "getrange"}},
		"keys": {"+@all resetkeys ~other:*", func(s *redis.Source) error {
			_, err := s.Read(t.Context(), []string{"qo_a"})
			return err
		}, []string{"may not use GETRANGE and PTTL"}},
		"DEL": {"+@all -del -eval -evalsha", func(s *redis.Source) error {
			_, err := s.Release(t.Context(), locks.Expected{Key: "qo_a", Value: "v", MaxTTL: -1})
			return err
		}, []string{"may not use EVAL and DEL"}},
		"DEL in a script": {"+@all -del", func(s *redis.Source) error {
			_, err := s.Release(t.Context(), locks.Expected{Key: "qo_a", Value: "v", MaxTTL: -1})
			return err
		}, []string{"may not use EVAL and DEL"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tt.call(d.source(t, tt.rules))
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\n") {
					t.Errorf("error = %v, want one sentence with %q and without the password", err, want)
				}
			}
		})
	}
	t.Cleanup(func() {
		if n, err := d.Exists(context.WithoutCancel(t.Context()), "qo_a").Result(); n == 0 || err != nil {
			t.Errorf("the lock is there: %d, %v, want 1", n, err)
		}
	})
}

func TestOtherTypesAreNoLocks(t *testing.T) {
	t.Parallel()
	d := open(t, 14)
	d.Set(t, "qo_text", "v", 0)
	if err := errors.Join(d.HSet(t.Context(), "qo_hash", "a", "b").Err(), d.RPush(t.Context(), "qo_list", "a").Err()); err != nil {
		t.Fatal(err)
	}
	s := d.source(t, "")
	list, err := s.Read(t.Context(), []string{"qo_hash", "qo_text", "qo_list"})
	if err != nil || len(list) != 3 || !list[0].Other || list[1].Other || list[1].Value != "v" || !list[2].Other {
		t.Errorf("Read = %+v, %v, want the two that are not strings marked", list, err)
	}
	outcome, err := s.Release(t.Context(), locks.Expected{Key: "qo_hash", Value: "", MaxTTL: -1})
	if err != nil || outcome != locks.Changed {
		t.Errorf("Release of a hash = %q, %v, want %q", outcome, err, locks.Changed)
	}
}

// A database of many keys is examined in steps, each of which Redis answers at once.
func TestScanIsBounded(t *testing.T) {
	t.Parallel()
	d := open(t, 15)
	const others, held = 20_000, 1_500
	pipe := d.Pipeline()
	for i := range others {
		pipe.Set(t.Context(), fmt.Sprint("celery-task-meta-", i), "", 0)
	}
	for i := range held {
		pipe.Set(t.Context(), fmt.Sprint("qo_", i), "v", 0)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := d.source(t, "+@all -keys")
	seen, steps := make(map[string]bool), 0
	var at locks.Cursor
	for {
		keys, next, err := s.Scan(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		steps++
		for _, key := range keys {
			seen[key] = true
		}
		if at = next; at == nil {
			break
		}
	}
	if len(seen) != held || steps < 10 {
		t.Errorf("%d keys in %d steps, want %d in 10 or more", len(seen), steps, held)
	}
}

func TestUnreachableRedisKeepsItsPassword(t *testing.T) {
	t.Parallel()
	s, err := redis.New(redis.Options{URL: "redis://:s3cret@127.0.0.1:1/0"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err = s.Scan(t.Context(), nil); err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(s.String(), "s3cret") {
		t.Errorf("scan of %s: error %v, want one without the password", s, err)
	}
}

func TestPatternsThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"*", "", "**", "?*", "lock:[a"} {
		if _, err := redis.New(redis.Options{URL: "redis://cache", Patterns: []string{"qo_*", p}}); err == nil {
			t.Errorf("pattern %q was accepted", p)
		}
	}
}
