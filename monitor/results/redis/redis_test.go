package redis_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/results/redis"
	"github.com/umbelhq/umbel/monitor/results/resultstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, o redis.Options) *redis.Backend {
	t.Helper()
	b, err := redis.New(o)
	if err != nil {
		t.Fatalf("open %s: %v", o.URL, err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

func TestRedis(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(testenv.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/9"
	for name, test := range map[string]struct {
		prefix  string
		python  string
		options resultstest.Options
	}{
		"JSON":   {prefix: "json", python: "{}", options: resultstest.Options{Aborts: true, Groups: true}},
		"pickle": {prefix: "pickle:", python: "{'result_serializer': 'pickle', 'accept_content': ['pickle', 'json']}", options: resultstest.Options{Objects: true, Groups: true}},
		"yaml":   {prefix: "yaml", python: "{'result_serializer': 'yaml'}", options: resultstest.Options{Foreign: "stored as yaml, not decoded"}},
		"msgpack": {
			prefix: "msgpack", python: "{'result_serializer': 'msgpack', 'accept_content': ['msgpack']}",
			options: resultstest.Options{Foreign: "stored as msgpack, not decoded"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// An underscore sets the prefix off, unless it ends in what does.
			prefix := fmt.Sprintf("umbel%d%s", time.Now().UnixNano(), test.prefix)
			settings := fmt.Sprintf("{'result_backend_transport_options': {'global_keyprefix': '%s'}, 'result_expires': 60, **%s}", prefix, test.python)
			b := open(t, redis.Options{URL: u.String(), KeyPrefix: prefix})
			o := test.options
			o.URL, o.Settings = u.String(), settings
			resultstest.Run(t, o, b)
		})
	}
}

func TestUnreachableRedisKeepsItsPassword(t *testing.T) {
	t.Parallel()
	b := open(t, redis.Options{URL: "redis://:s3cret@127.0.0.1:1/0"})
	_, err := b.Result(t.Context(), "a")
	if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(b.String(), "s3cret") {
		t.Errorf("read from %s: error %v, want one without the password", b, err)
	}
}
