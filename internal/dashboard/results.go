package dashboard

import (
	"errors"
	"fmt"
	"strings"

	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/monitor/results/database"
	"github.com/umbelhq/umbel/monitor/results/redis"
)

// Results returns the result backend that o.ResultBackend names, nil if it names none. It connects nowhere yet.
func Results(o Options) (results.Backend, error) {
	if o.ResultBackend == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	scheme, _, ok := strings.Cut(o.ResultBackend, "://")
	if !ok || strings.ContainsAny(scheme, ":@") { // what is before it could be a password
		return nil, errors.New("the result backend has no scheme: it begins with redis://, rediss://, sentinel:// or db+postgresql://")
	}
	kind, _, _ := strings.Cut(strings.ToLower(scheme), "+")
	var b results.Backend
	var err error
	switch kind {
	case "redis", "rediss", "sentinel":
		b, err = redis.New(redis.Options{
			URL: o.ResultBackend, MasterName: o.ResultMaster, KeyPrefix: o.ResultKeyPrefix, Version: o.Version,
			SentinelUsername: o.ResultSentinelUsername, SentinelPassword: o.ResultSentinelPassword,
		})
	case "db", "django-db":
		b, err = database.New(database.Options{URL: o.ResultBackend, Table: o.ResultTable})
	case "rpc", "amqp":
		err = errors.New("results of rpc:// go to who sent the task, and nobody else can read them")
	default:
		err = fmt.Errorf("results of %s:// cannot be read: only those in Redis, SQLite and PostgreSQL can", scheme)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}
