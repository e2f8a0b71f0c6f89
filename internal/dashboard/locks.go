package dashboard

import (
	"errors"
	"fmt"
	"strings"

	"github.com/umbelhq/umbel/monitor/locks"
	"github.com/umbelhq/umbel/monitor/locks/redis"
)

// LocksNone is the LocksURL that shows no locks.
const LocksNone = "none"

// Locks returns the Redis with locks that o names: its own, else the broker, else the result backend, as far as they are Redis.
// It is nil if there is none, and connects nowhere yet.
func Locks(o Options) (locks.Source, error) {
	if o.Locks != nil {
		return o.Locks, nil
	}
	r := redis.Options{Patterns: o.LocksPatterns, Version: o.Version}
	switch {
	case o.LocksURL == LocksNone:
		return nil, nil //nolint:nilnil // there is none
	case o.LocksURL != "":
		scheme, _, ok := strings.Cut(o.LocksURL, "://")
		if !ok || strings.ContainsAny(scheme, ":@") { // what is before it could be a password
			return nil, errors.New("the URL of locks has no scheme: it begins with redis://, rediss://, redis+socket:// or sentinel://")
		}
		if !isRedis(o.LocksURL) {
			return nil, fmt.Errorf("locks in %s:// cannot be read: only those in Redis can", scheme)
		}
		r.URL, r.MasterName = o.LocksURL, o.LocksMaster
	case isRedis(o.BrokerURL) && o.Broker == nil:
		r.URL, r.TLS, r.MasterName = o.BrokerURL, o.TLS, o.Redis.MasterName
		r.SentinelUsername, r.SentinelPassword = o.Redis.SentinelUsername, o.Redis.SentinelPassword
	case isRedis(o.ResultBackend):
		r.URL, r.MasterName = o.ResultBackend, o.ResultMaster
		r.SentinelUsername, r.SentinelPassword = o.ResultSentinelUsername, o.ResultSentinelPassword
	case len(o.LocksPatterns) > 0:
		return nil, errors.New("patterns of locks need a URL of Redis")
	default:
		return nil, nil //nolint:nilnil // there is none
	}
	s, err := redis.New(r)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// isRedis reports whether a URL is one of Redis.
func isRedis(url string) bool {
	scheme, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(url)), "://")
	switch scheme {
	case "redis", "rediss", "redis+socket", "sentinel":
		return true
	}
	return false
}
